"""The config registry: providers, models and agents as entries of reserved namespaces.

Secrets are stored separately (config_secrets.py). Writes to the registry of a workspace are
serialized, so that a record cannot be deleted while another one that names it is being written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from msgspec.structs import asdict

from state_admin.contract.config import Dependent
from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.config import Kind, Secret
from state_admin.domain.ids import uuid7
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON, Fault, Raw
from state_admin.models import Entry, Namespace, Operation

from . import entries, entry_views
from .actors import require
from .config_secrets import find_live_record, keep_secrets
from .entries import ANY, Precondition, WriteResult, lock_entry
from .entry_views import EntryView
from .errors import BadRequest, Conflict, Invalid, NotFound, check_storable
from .finding import checked, refuse
from .namespaces import find_definition


@dataclass(frozen=True)
class ConfigDeletion:
    """`version`: that of the deletion; 0 if there was no record, or in a dry run. `dependents`: the
    records that name it. `hidden`: how many more do that the actor may not see."""

    version: int
    dependents: list[Dependent]
    hidden: int


def check_id(identity: str) -> None:
    """Refuse an id that no record can have."""
    checked("id", config.check_id, identity, BadRequest)


def read_record(*, actor: Actor, kind: Kind, identity: str) -> EntryView:
    """A record, with markers in place of its secrets. Raises NotFound."""
    check_id(identity)
    entry = entry_views.read_entry(actor=actor, namespace=kind.namespace, key=identity)
    if not entry.exists:
        raise NotFound(f"config not found: {kind}/{identity}")
    return entry


def put_record(
    *,
    actor: Actor,
    kind: Kind,
    identity: str,
    value: Raw,
    precondition: Precondition = ANY,
    reason: str = "",
) -> WriteResult:
    """Create or replace a record. In place of a secret, a string sets it, the marker that was read
    keeps it, and null or absence clears it. A missing `id` is filled in.

    Raises Invalid (the schema, a reference to a missing record, a malformed secret) and what
    entries.put_entry raises. No message contains a value.
    """
    require(actor, Role.ADMIN)
    check_id(identity)
    check_storable(value, "the value")
    document = values.load(value.text)
    with transaction.atomic():
        _lock_registry(actor, kind)
        lock_entry(actor, kind.namespace, identity)
        before = entry_views.read_entry(actor=actor, namespace=kind.namespace, key=identity)
        markers = _markers(kind, before)
        sealed, fresh = _seal(actor, kind, identity, document, markers)
        attributes = {"ttl": None, "expires_at": None, "tags": None, "pinned": None}
        result = entries.store_value(
            actor, kind.namespace, identity, sealed, precondition, attributes, reason, Operation.PUT
        )
        _settle(actor, kind, identity, result, fresh)
    return result


def check_record(*, actor: Actor, kind: Kind, identity: str, value: Raw) -> None:
    """Raise what put_record would raise for `value`, without writing. No message contains a value."""
    require(actor, Role.ADMIN)
    check_id(identity)
    markers = _markers(
        kind, entry_views.read_entry(actor=actor, namespace=kind.namespace, key=identity)
    )
    sealed, _ = _seal(actor, kind, identity, values.load(value.text), markers)
    entries.check_value(find_definition(actor, kind.namespace, fresh=True), sealed)


def patch_record(
    *,
    actor: Actor,
    kind: Kind,
    identity: str,
    patch: PatchKind,
    operations: JSON,
    precondition: Precondition = ANY,
    reason: str = "",
) -> WriteResult:
    """Change a record on the server. A patch sees markers, never secrets. Raises NotFound, what
    put_record raises, and what entries.patch_entry raises."""
    require(actor, Role.ADMIN)
    check_id(identity)

    def change(before: EntryView) -> JSON:
        return entries.apply_patch(patch, values.load(before.value), operations)

    return _change(actor, kind, identity, precondition, change, reason, Operation.PATCH)


def restore_record(
    *,
    actor: Actor,
    kind: Kind,
    identity: str,
    version: int,
    precondition: Precondition = ANY,
    reason: str = "",
) -> WriteResult:
    """Write a new version with an old value and the current secrets: a restore neither sets nor
    clears a secret. A restored record that was deleted has none. Raises NotFound, and what
    put_record raises."""
    require(actor, Role.ADMIN)
    check_id(identity)

    def read_value() -> JSON:
        old = entry_views.read_past(
            actor=actor, namespace=kind.namespace, key=identity, at_version=version
        )
        if not old.exists:
            raise NotFound(f"version {version} of {kind}/{identity} has no value")
        return values.load(old.value)

    read_value()

    def change(before: EntryView) -> JSON:
        # Read again now that the row is locked: the version may have been redacted meanwhile.
        lock_entry(actor, kind.namespace, identity)
        return config.reseal(kind, read_value(), _markers(kind, before))

    reason = reason or f"restored version {version}"
    return _change(
        actor, kind, identity, precondition, change, reason, Operation.RESTORE, revive=True
    )


def delete_record(
    *,
    actor: Actor,
    kind: Kind,
    identity: str,
    precondition: Precondition = ANY,
    force: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> ConfigDeletion:
    """Delete a record and its secrets. Its history is kept, without them.

    Raises Conflict with `dependents` if other records name it, unless `force`. `hidden` counts
    those that the actor may not see. `dry_run`: only return them.
    """
    require(actor, Role.ADMIN)
    check_id(identity)
    with transaction.atomic():
        _lock_registry(actor, kind)
        dependents, hidden = _dependents(actor, kind, identity)
        if dry_run:
            return ConfigDeletion(0, dependents, hidden)
        if (dependents or hidden) and not force:
            raise Conflict(
                f"{kind}/{identity} is referenced by other records: {len(dependents) + hidden}",
                hint=(
                    "Change them first, or delete with force=true, which leaves their references "
                    "dangling."
                ),
                dependents=[asdict(each) for each in dependents],
                hidden=hidden,
            )
        version = entries.delete_value(actor, kind.namespace, identity, precondition, reason)
        if entry := _entry(actor, kind, identity):
            keep_secrets(entry, kind, [])
    return ConfigDeletion(version, dependents, hidden)


def find_dependents(*, actor: Actor, kind: Kind, identity: str) -> list[Dependent]:
    """The live records that name a record, as far as the actor may see them. Raises NotFound."""
    read_record(actor=actor, kind=kind, identity=identity)
    return _dependents(actor, kind, identity)[0]


def find_spec(workspace_id: int, kind: Kind, identity: str) -> dict[str, Any]:
    """The value of a live record, without its secrets (config_secrets). Raises NotFound, also for a
    value that a redaction made invalid."""
    row = find_live_record(workspace_id, kind, identity)
    spec: dict[str, Any] = values.load(row.value or "null")
    if config.faults(kind, identity, spec):
        raise NotFound(
            f"the stored value of config {kind}/{identity} is not a valid record of {kind}"
        )
    return spec


def _change(
    actor: Actor,
    kind: Kind,
    identity: str,
    precondition: Precondition,
    change: Callable[[EntryView], JSON],
    reason: str,
    operation: Operation,
    *,
    revive: bool = False,
) -> WriteResult:
    written: list[Secret] = []

    def rewrite(before: EntryView) -> Raw:
        if not (before.exists or revive):
            raise NotFound(f"config not found: {kind}/{identity}")
        markers = _markers(kind, before)
        sealed, fresh = _seal(actor, kind, identity, change(before), markers)
        written[:] = fresh
        return sealed

    with transaction.atomic():
        _lock_registry(actor, kind)
        definition = find_definition(actor, kind.namespace, fresh=True)
        result = entries.rewrite_value(
            actor, definition, identity, precondition, rewrite, reason, operation
        )
        _settle(actor, kind, identity, result, written)
    return result


def _lock_registry(actor: Actor, kind: Kind) -> None:
    """Keep other writes of the workspace's registry out until the end of the transaction. Raises
    NotRegistered for a kind that the actor does not see."""
    find_definition(actor, kind.namespace)
    rows = Namespace.objects.filter(workspace_id=actor.workspace_id, name__in=config.NAMESPACES)
    list(rows.order_by("name").select_for_update(no_key=True).values_list("pk"))


def _entry(actor: Actor, kind: Kind, identity: str) -> Entry | None:
    rows = Entry.objects.visible_to(actor).select_related("namespace")
    return rows.filter(namespace__name=kind.namespace, key=identity).first()


def _markers(kind: Kind, entry: EntryView) -> dict[str, JSON]:
    return config.markers(kind, values.load(entry.value)) if entry.exists else {}


def _seal(
    actor: Actor, kind: Kind, identity: str, value: JSON, markers: dict[str, JSON]
) -> tuple[Raw, list[Secret]]:
    """The value as it may be stored, checked, and the secrets that were taken out of it."""
    if isinstance(value, dict):
        value = {"id": identity, **value}
    try:
        value, fresh = config.seal(kind, value, markers, uuid7)
    except config.BadSecret as bad:
        raise Invalid("a secret is not valid", bad.faults) from bad
    faults = config.faults(kind, identity, value)
    if not faults:
        faults = _dangling(actor, kind, identity, value)
    refuse(faults, f"the value is not a valid record of {kind}")
    return values.stored(values.dump(value)), fresh


def _dangling(actor: Actor, kind: Kind, identity: str, value: JSON) -> list[Fault]:
    """Return a fault for each reference to a missing record. A record may refer to itself."""
    named = [
        each for each in config.references(kind, value) if (each.kind, each.id) != (kind, identity)
    ]
    found = set[tuple[str, str]]()
    for target in {each.kind for each in named}:
        rows = Entry.objects.visible_to(actor).live().filter(namespace__name=target.namespace)
        ids = [each.id for each in named if each.kind is target]
        found |= {(target, key) for key in rows.filter(key__in=ids).values_list("key", flat=True)}
    return [
        Fault(each.pointer, f"{each.kind}/{each.id} does not exist")
        for each in named
        if (each.kind, each.id) not in found
    ]


def _dependents(actor: Actor, kind: Kind, identity: str) -> tuple[list[Dependent], int]:
    """Return the dependents that the actor may see, and the number of the others."""
    dependents: list[Dependent] = []
    for other in config.NAMED_BY[kind]:
        rows = Entry.objects.filter(namespace__workspace_id=actor.workspace_id).live()
        rows = rows.filter(namespace__name=other.namespace)
        if other is kind:
            rows = rows.exclude(key=identity)
        for key, text in rows.order_by("key").values_list("key", "value"):
            dependents += [
                Dependent(kind=other, id=key, pointer=each.pointer)
                for each in config.references(other, values.load(text or "null"))
                if (each.kind, each.id) == (kind, identity)
            ]
    visible = [each for each in dependents if actor.sees_namespace(Kind(each.kind).namespace)]
    return visible, len(dependents) - len(visible)


def _settle(
    actor: Actor, kind: Kind, identity: str, result: WriteResult, fresh: list[Secret]
) -> None:
    if result.changed and (entry := _entry(actor, kind, identity)):
        keep_secrets(entry, kind, fresh)
