"""Writes shared state: one entry, or many in a batch. Not here: reads (entry_views)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.db import transaction

from state_admin.domain import patches, scopes, tokens, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import JSON, Raw
from state_admin.models import Entry, EntryRevision, Operation, entries_sql
from state_admin.models.entries_sql import NewEntry

from . import journal, quotas
from .actors import require, require_open
from .conflicts import collide, compare, read_base, show_sides
from .entry_views import EntryView, read_entry, read_past
from .errors import (
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    VersionConflict,
)
from .namespaces import Definition, definition

# A write is repeated this often when the namespace's schema changed between check and store.
_ATTEMPTS = 4

PatchKind = Literal["merge", "json", "update"]


@dataclass(frozen=True)
class WriteResult:
    """The outcome of a write. `created`: the entry did not exist; `changed`: a version was made."""

    entry: EntryView
    created: bool
    changed: bool = True


@dataclass(frozen=True)
class Precondition:
    """What must hold for a write to land. `version` 0 means "does not exist"; `merge` lets a write
    whose version is stale land all the same when nobody changed the same paths. `changed` skips a
    write that would leave value, tags and pin as they are and sets no time to live."""

    version: int | None = None
    changed: bool = False
    merge: bool = False


ANY = Precondition()


def check_address(namespace: str, key: str) -> None:
    """Refuse a namespace or key that no entry can have."""
    try:
        scopes.check_name(namespace)
        scopes.check_key(key)
    except scopes.BadName as bad:
        raise BadRequest(f"invalid address: {bad}") from bad


def put_entry(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    value: Raw,
    precondition: Precondition = ANY,
    ttl_seconds: int | None = None,
    tags: Sequence[str] | None = None,
    pinned: bool | None = None,
    reason: str = "",
    operation: Operation = Operation.PUT,
) -> WriteResult:
    """Store `value`. One SQL statement beside the lookup of a definition that is not cached yet.

    Without `ttl_seconds` the namespace's applies; 0 is no expiry, whatever the namespace says. Tags
    and pinned stay as they are unless given.
    Raises NotRegistered, Invalid (schema, limits), TooLarge, VersionConflict.
    """
    require(actor, Role.EDITOR)
    require_open(namespace)
    attributes = {
        "ttl": ttl_seconds,
        "expires_at": None,
        "tags": list(tags) if tags is not None else None,
        "pinned": pinned,
    }
    return store_value(actor, namespace, key, value, precondition, attributes, reason, operation)


def put_entries(
    *, actor: Actor, puts: Sequence[tuple[str, str, Raw]], reason: str = ""
) -> list[WriteResult] | None:
    """Store many values at distinct (namespace, key), unconditionally, in one statement.

    None: a namespace changed meanwhile, or a quota must be watched, and nothing was written;
    write one by one instead. Raises what put_entry raises, with the `index` of the first that is
    refused.
    """
    require(actor, Role.EDITOR)
    if quotas.limited(actor):
        return None
    known: list[Definition] = []
    for index, (namespace, _, value) in enumerate(puts):
        try:
            require_open(namespace)
            known.append(definition_for(actor, namespace, value))
        except Problem as problem:
            problem.data["index"] = index
            raise
    rows = [
        new_entry(found, key, value.text)
        for found, (_, key, value) in zip(known, puts, strict=True)
    ]
    parameters = {**journal.parameters(actor, reason), "operation": Operation.PUT.value}
    written = entries_sql.put_entries(parameters, rows)
    if not written:
        return None
    outcomes = [written[found.id, key] for found, (_, key, _) in zip(known, puts, strict=True)]
    return [
        WriteResult(written_view(actor, new, row), row.created)
        for new, row in zip(rows, outcomes, strict=True)
    ]


def new_entry(known: Definition, key: str, text: str) -> NewEntry:
    """What entries_sql.put_entries takes, from a value that check_value has passed."""
    return NewEntry(
        namespace_id=known.id,
        namespace=known.name,
        schema_version=known.schema_version,
        key=key,
        value=text,
        size=len(text.encode()),
        tokens=tokens.estimate_value(text),
        ttl=known.ttl_seconds,
    )


def patch_entry(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    kind: PatchKind,
    operations: JSON,
    precondition: Precondition = ANY,
    reason: str = "",
) -> WriteResult:
    """Change the stored value on the server, so that no write is lost; start from the default when
    it is missing. Raises Invalid (the patch, or its result), Conflict (`test` failed)."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    known = definition(actor, namespace)

    def change(before: EntryView) -> Raw:
        text = values.dump(apply_patch(kind, values.load(before.value), operations))
        return Raw(text, values.load(text))

    return rewrite_value(
        actor, known, key, precondition, change, reason, Operation.PATCH, pure=True
    )


def restore_entry(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    version: int,
    precondition: Precondition = ANY,
    reason: str = "",
) -> WriteResult:
    """Write a new version whose value equals an old one. What is the entry's and not the value's
    stays, as under a patch: tags, pin and expiry. Without an expiry the namespace's applies, as to
    any write. NotFound when that version held no value."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    old = read_past(actor=actor, namespace=namespace, key=key, at_version=version)
    if not old.exists:
        raise NotFound(f"version {version} of {namespace}/{key} has no value")
    value = Raw(old.value, values.load(old.value))
    reason = reason or f"restored version {version}"
    known = definition(actor, namespace)
    return rewrite_value(
        actor, known, key, precondition, lambda _: value, reason, Operation.RESTORE, pure=True
    )


def delete_entry(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    precondition: Precondition = ANY,
    reason: str = "",
    operation: Operation = Operation.DELETE,
) -> int:
    """Delete if it is there; answers the version that the deletion made, or 0 for no change."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    return delete_value(actor, namespace, key, precondition, reason, operation)


def delete_value(
    actor: Actor,
    namespace: str,
    key: str,
    precondition: Precondition,
    reason: str,
    operation: Operation = Operation.DELETE,
) -> int:
    """delete_entry for services that may write reserved namespaces."""
    known = definition(actor, namespace)
    expected = precondition.version
    for _ in range(_ATTEMPTS):
        written = entries_sql.delete_entry(
            {
                **journal.parameters(actor, reason),
                "namespace_id": known.id,
                "namespace": known.name,
                "key": key,
                "operation": operation.value,
                "expected": precondition.version,
                "expired": False,
                "orphans": False,
            }
        )
        if written is not None:
            return written.version
        now = read_entry(actor=actor, namespace=namespace, key=key)
        if precondition.version is not None and now.version != precondition.version:
            collision = collide(actor, known, now, precondition.version, None)
            if not precondition.merge or not collision.mergeable:
                raise VersionConflict(expected or 0, now.version, collision=collision)
            # The value is still the one that was read, or deleted as wanted.
            precondition = replace(precondition, version=now.version)
        if precondition.version is None or not now.exists:
            return 0
    raise Conflict("the entry changes too often; retry")


def store_value(
    actor: Actor,
    namespace: str,
    key: str,
    value: Raw,
    precondition: Precondition,
    attributes: dict[str, Any],
    reason: str,
    operation: Operation,
    *,
    explain_conflict: bool = True,
) -> WriteResult:
    """put_entry for services that may write reserved namespaces, with all attributes given.

    Without `explain_conflict` a VersionConflict comes without the values, and nothing is merged.
    """
    expected = precondition.version
    changed = precondition.changed and attributes["ttl"] is None
    for attempt in range(_ATTEMPTS):
        known = definition_for(actor, namespace, value, fresh=attempt > 0)
        new = new_entry(known, key, value.text)
        only = "missing" if precondition.version == 0 else "changed" if changed else "any"
        parameters = {
            **journal.parameters(actor, reason),
            **new._asdict(),
            **attributes,
            "ttl": new.ttl if attributes["ttl"] is None else attributes["ttl"] or None,
            "operation": operation.value,
            "expected": precondition.version,
            "only": only,
        }
        limited = quotas.limited(actor)
        if limited:
            _check_quota(actor, namespace, key, new.size)
        write = entries_sql.replace_entry if precondition.version else entries_sql.put_entry
        written = write(parameters)
        if written is not None:
            if limited:
                _count(actor, new, written)
            return WriteResult(written_view(actor, new, written), written.created)
        # Nothing was written: the schema changed meanwhile, or the precondition does not hold.
        if definition(actor, namespace, fresh=True).schema_version != known.schema_version:
            continue
        # A second statement: the snapshot of the first may be older than the winner's commit.
        now = read_entry(actor=actor, namespace=namespace, key=key)
        if precondition.version is not None and now.version != precondition.version:
            if not explain_conflict:
                raise VersionConflict(expected or 0, now.version)
            collision = collide(actor, known, now, precondition.version, value.text)
            if precondition.merge and collision.mergeable:
                # Nobody touched the same paths: both land, on top of what is there now.
                value = Raw(values.dump(collision.merged), collision.merged)
                precondition = replace(precondition, version=now.version)
                continue
            raise VersionConflict(expected or 0, now.version, collision=collision)
        if changed and now.exists:
            return WriteResult(now, created=False, changed=False)
    raise Conflict("the namespace or the entry changes too often; retry")


def rewrite_value(
    actor: Actor,
    known: Definition,
    key: str,
    precondition: Precondition,
    change: Callable[[EntryView], Raw],
    reason: str,
    operation: Operation,
    *,
    pure: bool = False,
) -> WriteResult:
    """Read, compute, store, so that nobody can write between. Keeps the expiry.

    A `pure` change is computed without a lock first and stored if the entry is still the same, so
    that nobody waits for the computation. Where another write came between, and for every other
    change, the row is locked while `change` runs.

    With a version that is stale, `change` is computed on that one, to explain the conflict or,
    with `merge`, to join it with what others wrote since.
    """

    def compute(before: EntryView) -> Raw:
        if precondition.version is None or before.version == precondition.version:
            return change(before)
        return _join(actor, known, before, precondition, change)

    def store(before: EntryView, value: Raw, *, explain_conflict: bool) -> WriteResult:
        attributes = {"ttl": None, "expires_at": before.expires_at, "tags": None, "pinned": None}
        return store_value(
            actor,
            known.name,
            key,
            value,
            Precondition(before.version, precondition.changed),
            attributes,
            reason,
            operation,
            explain_conflict=explain_conflict,
        )

    if pure:
        before = read_entry(actor=actor, namespace=known.name, key=key)
        value = compute(before)
        with contextlib.suppress(VersionConflict):
            return store(before, value, explain_conflict=False)
    for _ in range(_ATTEMPTS):
        with transaction.atomic():
            held = (
                Entry.objects.filter(namespace_id=known.id, key=key)
                .live()
                .select_for_update()
                .exists()
            )
            before = read_entry(actor=actor, namespace=known.name, key=key)
            if before.exists and not held:
                continue  # created between the two statements: lock it and read it again
            value = compute(before)
            try:
                return store(before, value, explain_conflict=True)
            except VersionConflict:
                if held:
                    raise  # it expired while we held it; the next attempt is the caller's
    raise Conflict("the entry changes too often; retry")


def _join(
    actor: Actor,
    known: Definition,
    before: EntryView,
    precondition: Precondition,
    change: Callable[[EntryView], Raw],
) -> Raw:
    """What a change to the version of `precondition` makes of the current entry. VersionConflict unless
    they are to be joined and can be."""
    version = precondition.version or 0
    base = read_base(actor, known, before.key, version)
    shown = show_sides(base=base, theirs=before.value if before.exists else None)
    if base is None:  # the change cannot be computed
        raise VersionConflict(version, before.version, mergeable=False, **shown)
    try:
        yours = change(replace(before, exists=True, value=base, version=version))
    except Problem:  # it does not apply to its own base
        raise VersionConflict(version, before.version, **shown) from None
    collision = compare(base, before, yours.text)
    if precondition.merge and collision.mergeable:
        return Raw(values.dump(collision.merged), collision.merged)
    raise VersionConflict(version, before.version, collision=collision)


def apply_patch(kind: PatchKind, document: JSON, operations: JSON) -> JSON:
    try:
        if kind == "merge":
            return patches.merge_patch(document, operations)
        if kind == "json":
            return patches.json_patch(document, operations)
        return patches.update(document, operations)
    except patches.PatchTestFailed as failed:
        raise Conflict(
            f"test failed at {failed.pointer or '/'}",
            hint="The value differs from the one in the test operation. Nothing was changed.",
            pointer=failed.pointer,
        ) from failed
    except patches.PatchRefused as refused:
        raise Invalid("the patch cannot be applied", refused.faults) from refused


def _check_quota(actor: Actor, namespace: str, key: str, size: int) -> None:
    """Refuse what would not fit. Only when room is short does it look whether the write replaces
    something: a replacement that does not grow always fits."""
    entries_left, bytes_left = quotas.room(actor, "entries"), quotas.room(actor, "bytes")
    if (entries_left is None or entries_left >= 1) and (bytes_left is None or bytes_left >= size):
        return
    held = read_entry(actor=actor, namespace=namespace, key=key)
    if not held.exists:
        quotas.check_room(actor, "entries", 1)
    if size > held.size_bytes:
        quotas.check_room(actor, "bytes", size - held.size_bytes)


def _count(actor: Actor, new: NewEntry, written: entries_sql.Written) -> None:
    """Add what a write made to the usage. The version before it is always kept, with its size."""
    grown = new.size
    if not written.created:
        rows = EntryRevision.objects.filter(entry_id=written.entry_id, version=written.version - 1)
        grown -= rows.values_list("size_bytes", flat=True).first() or 0
    quotas.add_usage(actor, entries=int(written.created), bytes=grown)


def check_entry(*, actor: Actor, namespace: str, value: Raw) -> None:
    """Raise what put_entry would say of `value`, without writing. NotRegistered, Invalid, TooLarge."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    check_value(definition(actor, namespace, fresh=True), value)


def definition_for(actor: Actor, namespace: str, value: Raw, *, fresh: bool = False) -> Definition:
    """The definition that `value` satisfies. Raises NotRegistered, and what check_value raises, as
    the database has it: another process may have changed what is cached here."""
    known = definition(actor, namespace, fresh=fresh)
    try:
        check_value(known, value)
    except (Invalid, TooLarge):
        newest = known if fresh else definition(actor, namespace, fresh=True)
        if newest == known:
            raise
        check_value(newest, value)
        return newest
    return known


def check_value(known: Definition, value: Raw) -> None:
    """Refuse a value that is too large, cannot be kept, or does not satisfy the schema."""
    size = len(value.text.encode())
    if size > known.max_value_bytes:
        raise TooLarge(
            (
                f"the value has {size} bytes; the limit of {known.name} is "
                f"{known.max_value_bytes} bytes"
            ),
            limit=known.max_value_bytes,
            actual=size,
        )
    try:
        values.check(value)
    except values.RefusedJSON as refused:
        raise Invalid("the value cannot be stored", refused.faults) from refused
    faults = known.validator.faults(value.value)
    if faults:
        raise Invalid(
            f"the value does not satisfy the schema of {known.name}",
            faults,
            schema_version=known.schema_version,
        )


def written_view(actor: Actor, new: NewEntry, written: entries_sql.Written) -> EntryView:
    return EntryView(
        namespace=new.namespace,
        key=new.key,
        exists=True,
        value=new.value,
        version=written.version,
        schema_version=new.schema_version,
        created_at=written.created_at,
        updated_at=written.updated_at,
        expires_at=written.expires_at,
        tags=written.tags,
        pinned=written.pinned,
        size_bytes=new.size,
        estimated_tokens=new.tokens,
        actor=actor.name,
    )
