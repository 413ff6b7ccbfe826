"""Stores the entries that several calls write at the same moment, together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import JSON, Raw
from state_admin.models import Operation, entries_sql
from state_admin.models.entries_sql import JoinedPut

from . import entry_views, journal, quotas
from .actors import require, require_open
from .entries import PatchKind, WriteResult, apply_patch, definition_for, new_entry, written_view
from .entry_views import EntryView
from .errors import Problem
from .namespaces import find_definition

# Patching a larger value would delay the other calls.
_LARGEST_PATCHED = 64 * 1024


@dataclass(frozen=True)
class JoinedWrite:
    """A write by one call. `expected`: the version that the entry must have, None for any."""

    actor: Actor
    namespace: str
    key: str
    expected: int | None
    reason: str


@dataclass(frozen=True)
class Put(JoinedWrite):
    """What put_entry takes."""

    value: Raw
    ttl_seconds: int | None = None


@dataclass(frozen=True)
class Patch(JoinedWrite):
    """What patch_entry takes."""

    kind: PatchKind
    operations: JSON


def store_joined(writes: Sequence[JoinedWrite]) -> list[WriteResult | Exception | None]:
    """Store as many of the writes as possible, with one statement for the entries that exist and one
    for those that do not. Further writes of the same entry follow in statements of their own.

    A result is None if nothing was written, because the call would be refused or the entry is locked:
    put_entry or patch_entry then has the answer. It is an exception if the database failed and it is
    unknown whether the entry was written."""
    results: list[WriteResult | Exception | None] = [None] * len(writes)
    for turn in _turns(writes):
        rows = dict(_prepare_all({index: writes[index] for index in turn}))
        for store in (entries_sql.put_existing, entries_sql.put_absent):
            if not rows:
                break
            try:
                written = store(list(rows.values()))
            except (DatabaseError, InterfaceError) as error:
                if not _is_undone(error):
                    for index in rows:
                        results[index] = error
                return results
            for index, row in list(rows.items()):
                found = written.get((row.entry.namespace_id, row.entry.key))
                if found is not None:
                    entry = written_view(writes[index].actor, row.entry, found)
                    results[index] = WriteResult(entry, found.created)
                    del rows[index]
            rows = {index: row for index, row in rows.items() if row.expected is None}
    return results


def _turns(writes: Sequence[JoinedWrite]) -> list[list[int]]:
    """The indexes of the writes in turns: each turn writes an entry at most once, and the writes of one
    entry keep their order over the turns."""
    turns: list[list[int]] = []
    seen: Counter[tuple[int, str, str]] = Counter()
    for index, write in enumerate(writes):
        address = (write.actor.workspace_id, write.namespace, write.key)
        if seen[address] == len(turns):
            turns.append([])
        turns[seen[address]].append(index)
        seen[address] += 1
    return turns


def _prepare_all(writes: Mapping[int, JoinedWrite]) -> Iterator[tuple[int, JoinedPut]]:
    """The rows to store. Left out are writes that would be refused, that count against a quota, or
    that take long."""
    patched = {i: (w.actor, w.namespace, w.key) for i, w in writes.items() if isinstance(w, Patch)}
    views = dict(zip(patched, entry_views.read_entries(list(patched.values())), strict=True))
    for index, write in writes.items():
        try:
            row = _prepare(write, views.get(index))
        except Problem:
            continue
        if row is not None:
            yield index, row


def _prepare(write: JoinedWrite, before: EntryView | None) -> JoinedPut | None:
    require(write.actor, Role.EDITOR)
    require_open(write.namespace)
    if quotas.limited(write.actor):
        return None
    value, expected, expires_at, ttl = None, write.expected, None, None
    if isinstance(write, Put):
        value, ttl = write.value, write.ttl_seconds
    elif isinstance(write, Patch) and before is not None and _is_patchable(write, before):
        changed = apply_patch(write.kind, values.load(before.value), write.operations)
        text = values.dump(changed)
        value, expected, expires_at = (
            Raw(text, values.load(text)),
            before.version,
            before.expires_at,
        )
    if value is None:
        return None
    if not find_definition(write.actor, write.namespace).validator.is_light(value.value):
        return None
    known = definition_for(write.actor, write.namespace, value)
    new = new_entry(known, write.key, value.text)
    if ttl is not None:
        new = new._replace(ttl=ttl or None)
    operation = Operation.PUT if isinstance(write, Put) else Operation.PATCH
    stamp = journal.parameters(write.actor, write.reason)
    return JoinedPut(new, operation.value, expected, expires_at, stamp)


def _is_patchable(patch: Patch, before: EntryView) -> bool:
    return (
        before.exists
        and patch.expected in (None, before.version)
        and before.size_bytes <= _LARGEST_PATCHED
    )


def _is_undone(error: Exception) -> bool:
    """Whether the database refused the statement and rolled it back. If the connection was lost (class
    08) or closed by an operator (class 57P), it may have committed before."""
    sqlstate: str | None = getattr(error.__cause__, "sqlstate", None)
    return sqlstate is not None and not sqlstate.startswith(("08", "57P"))
