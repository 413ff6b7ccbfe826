"""Writes shared state: one entry, or many in a batch. Not here: reads (entry_views)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import transaction

from state_admin.domain import patches, scopes, tokens, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON, Raw
from state_admin.models import Entry, Operation, bulk_sql, entries_sql
from state_admin.models.entries_sql import NewEntry

from . import journal, quotas
from .actors import require, require_open
from .conflicts import ConflictSides, collide, compare, read_base, show_sides
from .entry_views import EntryView, read_entry, read_past
from .errors import (
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    VersionConflict,
    check_storable,
)
from .namespaces import Definition, find_definition

# Attempts of a write if the schema of the namespace, or the entry, changes between check and store. With
# four, one of a hundred merges of twelve concurrent writers of an entry ran out of them.
_ATTEMPTS = 16


class WriteResult(NamedTuple):
    """The result of a write. `created`: the entry did not exist. `changed`: a version was created."""

    entry: EntryView
    created: bool
    changed: bool = True


@dataclass(frozen=True)
class Precondition:
    """The condition of a write. `version`: the version that the entry must have; 0: it must not exist.
    `merge`: accept an older version if nobody has changed the same paths since. `changed`: skip a
    write that would not change value, tags or pin and sets no time to live."""

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
    """Store `value`, in one SQL statement if the definition of the namespace is cached.

    `ttl_seconds` None: that of the namespace; 0: no expiry. `tags` and `pinned` None: unchanged.
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

    None: nothing was written, because a namespace changed meanwhile or a quota applies; write them
    one by one instead. Raises what put_entry raises, with the `index` of the first refused value.
    """
    require(actor, Role.EDITOR)
    if quotas.limited(actor):
        return None
    rows: list[NewEntry] = []
    for index, (namespace, key, value) in enumerate(puts):
        try:
            require_open(namespace)
            rows.append(new_entry(definition_for(actor, namespace, value), key, value.text))
        except Problem as problem:
            problem.data["index"] = index
            raise
    parameters = {**journal.parameters(actor, reason), "operation": Operation.PUT.value}
    written = entries_sql.put_entries(parameters, rows)
    if not written:
        return None
    return results_of(actor, rows, written)


def new_entry(definition: Definition, key: str, text: str) -> NewEntry:
    """The row for entries_sql.put_entries. The value must have passed check_value."""
    return NewEntry(
        namespace_id=definition.id,
        namespace=definition.name,
        schema_version=definition.schema_version,
        key=key,
        value=text,
        size=len(text.encode()),
        tokens=tokens.estimate_text(text),
        ttl=definition.ttl_seconds,
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
    """Change the stored value on the server, so that no concurrent write is lost. An absent entry
    starts with the default. Raises Invalid (the patch, or its result) and Conflict (`test` failed)."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    definition = find_definition(actor, namespace)

    def change(before: EntryView) -> Raw:
        return patch_text(kind, before.value, operations)

    return rewrite_value(
        actor, definition, key, precondition, change, reason, Operation.PATCH, pure=True
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
    """Write a new version with the value of an old one. Tags, pin and expiry of the entry do not
    change. Without an expiry, the time to live of the namespace applies, as to any write. Raises
    NotFound if that version has no value."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    with transaction.atomic():
        lock_entry(actor, namespace, key)  # a version that is redacted meanwhile is not written
        old = read_past(actor=actor, namespace=namespace, key=key, at_version=version)
        if not old.exists:
            raise NotFound(f"version {version} of {namespace}/{key} has no value")
        value = values.stored(old.value)
        reason = reason or f"restored version {version}"
        definition = find_definition(actor, namespace)
        return rewrite_value(
            actor,
            definition,
            key,
            precondition,
            lambda _: value,
            reason,
            Operation.RESTORE,
            pure=True,
        )


def lock_entry(actor: Actor, namespace: str, key: str) -> None:
    """Lock the row of an entry, even if it is deleted, against redaction and erasure."""
    rows = Entry.objects.visible_to(actor).filter(namespace__name=namespace, key=key)
    list(rows.select_for_update(of=("self",)).values_list("pk"))


def delete_entry(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    precondition: Precondition = ANY,
    reason: str = "",
) -> int:
    """Delete the entry if it exists. Returns the version of the deletion, or 0 if it did not exist."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    return delete_value(actor, namespace, key, precondition, reason)


def delete_entries(
    *, actor: Actor, namespace: str, versions: Mapping[str, int], reason: str = ""
) -> dict[str, int]:
    """Delete the entries that have these versions, by key, in one statement. Returns the versions of the
    deletions; the other entries are left out. Raises NotRegistered.

    Deletes nothing if a quota applies: delete_entry counts the room that each deletion makes.
    """
    require(actor, Role.EDITOR)
    require_open(namespace)
    if quotas.limited(actor):
        return {}
    changed = bulk_sql.change_entries(
        "delete",
        {
            **journal.parameters(actor, reason),
            "operation": Operation.DELETE.value,
            "namespaces": [find_definition(actor, namespace).id] * len(versions),
            "keys": list(versions),
            "versions": list(versions.values()),
            "moments": [None] * len(versions),
        },
    )
    return {row.key: row.version for row in changed}


def delete_value(
    actor: Actor, namespace: str, key: str, precondition: Precondition, reason: str
) -> int:
    """delete_entry for services that may write reserved namespaces."""
    definition = find_definition(actor, namespace)
    expected = precondition.version
    limited = quotas.limited(actor)
    for _ in range(_ATTEMPTS):
        stored = _stored_size(definition.id, key) if limited else None
        written = entries_sql.delete_entry(
            {
                **journal.parameters(actor, reason),
                "namespace_id": definition.id,
                "namespace": definition.name,
                "key": key,
                "operation": Operation.DELETE.value,
                "expected": precondition.version,
                "tracked": definition.tracked,
            }
        )
        if written is not None:
            if stored is not None:
                quotas.add_usage(actor, entries=-1, bytes=-stored)
            return written.version
        current = read_entry(actor=actor, namespace=namespace, key=key)
        if precondition.version is not None and current.version != precondition.version:
            collision = collide(actor, definition, current, precondition.version, None)
            _check_mergeable(collision, precondition, expected)
            # The value has not changed, or is deleted already.
            precondition = replace(precondition, version=current.version)
        if precondition.version is None or not current.exists:
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
    """put_entry for services that may write reserved namespaces. `attributes` must be complete.

    Without `explain_conflict`, a VersionConflict has no values and nothing is merged.
    """
    expected = precondition.version
    changed = precondition.changed and attributes["ttl"] is None
    for attempt in range(_ATTEMPTS):
        definition = definition_for(actor, namespace, value, fresh=attempt > 0)
        new = new_entry(definition, key, value.text)
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
        write = entries_sql.replace_entry if precondition.version else entries_sql.put_entry
        with quotas.undo_additions() as undo:
            _take_quota(actor, new)
            written = write(parameters)
            if written is None:
                undo()
        if written is not None:
            return _result_of(actor, new, written)
        # Nothing was written: the schema changed meanwhile, or the precondition does not hold.
        if (
            find_definition(actor, namespace, fresh=True).schema_version
            != definition.schema_version
        ):
            continue
        # A second statement: the snapshot of the first may be older than the winner's commit.
        current = read_entry(actor=actor, namespace=namespace, key=key)
        if precondition.version is not None and current.version != precondition.version:
            if not explain_conflict:
                raise VersionConflict(expected or 0, current.version)
            collision = collide(actor, definition, current, precondition.version, value.text)
            _check_mergeable(collision, precondition, expected)
            # Nobody changed the same paths: write the merged value over the current version.
            value = Raw(values.dump(collision.merged), collision.merged)
            precondition = replace(precondition, version=current.version)
            continue
        if changed and current.exists:
            return WriteResult(current, created=False, changed=False)
    raise Conflict("the namespace or the entry changes too often; retry")


def _check_mergeable(
    collision: ConflictSides, precondition: Precondition, expected: int | None
) -> None:
    """Raise VersionConflict unless the server may merge both sides. `expected`: the version that the
    caller expects."""
    if not (precondition.merge and collision.mergeable):
        raise VersionConflict(expected or 0, collision.current.version, collision=collision)


def rewrite_value(
    actor: Actor,
    definition: Definition,
    key: str,
    precondition: Precondition,
    change: Callable[[EntryView], Raw],
    reason: str,
    operation: Operation,
    *,
    pure: bool = False,
) -> WriteResult:
    """Read, compute and store, without a write of others between. Keeps the expiry.

    A `pure` change is first computed without a lock and stored if the entry is unchanged, so that no
    one waits for the computation. After a concurrent write, and for any other change, the row is
    locked while `change` runs.

    If the version of `precondition` is not the current one, `change` is computed on that version, to
    explain the conflict or, with `merge`, to merge it with the later writes.
    """

    def compute(before: EntryView) -> Raw:
        if precondition.version is None or before.version == precondition.version:
            return change(before)
        return _join(actor, definition, before, precondition, change)

    def store(before: EntryView, value: Raw, *, explain_conflict: bool) -> WriteResult:
        attributes = {"ttl": None, "expires_at": before.expires_at, "tags": None, "pinned": None}
        return store_value(
            actor,
            definition.name,
            key,
            value,
            Precondition(before.version, precondition.changed),
            attributes,
            reason,
            operation,
            explain_conflict=explain_conflict,
        )

    if pure:
        before = read_entry(actor=actor, namespace=definition.name, key=key)
        value = compute(before)
        with contextlib.suppress(VersionConflict):
            return store(before, value, explain_conflict=False)
    for _ in range(_ATTEMPTS):
        with transaction.atomic():
            locked = (
                Entry.objects.filter(namespace_id=definition.id, key=key)
                .live()
                .select_for_update()
                .exists()
            )
            before = read_entry(actor=actor, namespace=definition.name, key=key)
            if before.exists and not locked:
                continue  # created between the two statements: lock it and read it again
            value = compute(before)
            try:
                return store(before, value, explain_conflict=True)
            except VersionConflict:
                if locked:
                    raise  # it expired while it was locked; the caller may retry
    raise Conflict("the entry changes too often; retry")


def _join(
    actor: Actor,
    definition: Definition,
    before: EntryView,
    precondition: Precondition,
    change: Callable[[EntryView], Raw],
) -> Raw:
    """Merge a change, made to the version of `precondition`, with the current entry. Raises
    VersionConflict if they cannot be merged, or `precondition` does not ask for it."""
    version = precondition.version or 0
    base = read_base(actor, definition, before.key, version)
    sides = show_sides(base=base, theirs=before.value if before.exists else None)
    if base is None:  # the change cannot be computed
        raise VersionConflict(version, before.version, mergeable=False, **sides)
    try:
        yours = change(before._replace(exists=True, value=base, version=version))
    except Problem:  # it does not apply to its own base
        raise VersionConflict(version, before.version, **sides) from None
    collision = compare(base, before, yours.text)
    _check_mergeable(collision, precondition, version)
    return Raw(values.dump(collision.merged), collision.merged)


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


def patch_text(kind: PatchKind, text: str, operations: JSON) -> Raw:
    """The patched value of stored JSON text. Raises as apply_patch does."""
    changed = apply_patch(kind, values.load(text), operations)
    return Raw(values.dump(changed), changed)


def _take_quota(actor: Actor, new: NewEntry) -> None:
    """Count a write against the quotas. Raises QuotaExceeded."""
    if quotas.limited(actor):
        stored = _stored_size(new.namespace_id, new.key)
        quotas.take(actor, entries=int(stored is None), size=new.size - (stored or 0))


def _stored_size(namespace_id: int, key: str) -> int | None:
    """The size of the entry. None: there is none. One that has expired counts until the sweep."""
    rows = Entry.objects.filter(namespace_id=namespace_id, key=key, deleted=False)
    return rows.values_list("size_bytes", flat=True).first()


def check_entry(*, actor: Actor, namespace: str, value: Raw) -> None:
    """Raise what put_entry would raise for `value` (NotRegistered, Invalid, TooLarge), without writing."""
    require(actor, Role.EDITOR)
    require_open(namespace)
    check_value(find_definition(actor, namespace, fresh=True), value)


def definition_for(actor: Actor, namespace: str, value: Raw, *, fresh: bool = False) -> Definition:
    """The definition of the namespace, which `value` satisfies. Raises NotRegistered and what
    check_value raises, but only after a look at the database: the cached definition may be old."""
    definition = find_definition(actor, namespace, fresh=fresh)
    try:
        check_value(definition, value)
    except (Invalid, TooLarge):
        newest = definition if fresh else find_definition(actor, namespace, fresh=True)
        if newest == definition:
            raise
        check_value(newest, value)
        return newest
    return definition


def check_value(definition: Definition, value: Raw) -> None:
    """Refuse a value that is too large, cannot be stored, or does not satisfy the schema."""
    size = len(value.text.encode())
    if size > definition.max_value_bytes:
        raise TooLarge(
            (
                f"the value has {size} bytes; the limit of {definition.name} is "
                f"{definition.max_value_bytes} bytes"
            ),
            hint="Split the value into several entries, or ask an admin to raise max_value_bytes.",
            limit=definition.max_value_bytes,
            actual=size,
        )
    check_storable(value, "the value")
    faults = definition.validator.faults(value.value)
    if faults:
        raise Invalid(
            f"the value does not satisfy the schema of {definition.name}",
            faults,
            schema_version=definition.schema_version,
        )


def results_of(
    actor: Actor,
    entries: Sequence[NewEntry],
    written: Mapping[tuple[int, str], entries_sql.WrittenEntry],
) -> list[WriteResult]:
    """The results of writes that one statement has stored, by (namespace id, key)."""
    return [_result_of(actor, new, written[new.namespace_id, new.key]) for new in entries]


def _result_of(actor: Actor, new: NewEntry, written: entries_sql.WrittenEntry) -> WriteResult:
    entry = EntryView(
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
    return WriteResult(entry, written.created)
