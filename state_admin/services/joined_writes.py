"""Stores the entries that several calls write at the same moment, together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import DatabaseError, InterfaceError

from state_admin.domain.access import Actor, Role
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON, Raw
from state_admin.models import Operation, entries_sql, hot, idempotency_sql
from state_admin.models.entries_sql import JoinedEntry, JoinedPut
from state_admin.models.hot_async import Session

from . import entry_views, idempotency, journal, quotas
from .actors import require, require_open
from .entries import WriteResult, check_value, new_entry, patch_text, results_of
from .entry_views import EntryView
from .errors import Problem
from .groups import is_undone, note_fault, take_turns
from .idempotency import Key, StoredResponse
from .namespaces import cached_definition

# Ids of the namespaces in which the last write of this process created an entry.
_growing: set[int] = set()
# Patching a larger value would delay the other calls.
_LARGEST_PATCHED = 64 * 1024


# The response to a write that was stored, from its results.
Respond = Callable[[Sequence[WriteResult]], StoredResponse]
Address = tuple[int, str, str]


@dataclass(frozen=True)
class JoinedWrite:
    """A write by one call. `once`: the parsed Idempotency-Key, None without one."""

    actor: Actor
    reason: str
    once: Key | None
    respond: Respond


class Item(NamedTuple):
    """What put_entry takes. `expected`: the version that the entry must have, None for any."""

    namespace: str
    key: str
    value: Raw
    expected: int | None = None
    ttl_seconds: int | None = None


@dataclass(frozen=True)
class PutWrite(JoinedWrite):
    """One or more items with distinct addresses. All are stored, or none."""

    items: Sequence[Item]


@dataclass(frozen=True)
class PatchWrite(JoinedWrite):
    """What patch_entry takes. `expected`: as in Item."""

    namespace: str
    key: str
    expected: int | None
    kind: PatchKind
    operations: JSON


async def store_joined(
    writes: Sequence[PutWrite | PatchWrite], session: Session
) -> list[StoredResponse | Exception | None]:
    """Store as many of the writes as possible and return the responses. One statement updates the
    entries that exist, another creates those that do not. The second one is only sent if the first
    one has left something. Further writes of the same entry follow in later statements. The response
    to a write with an Idempotency-Key is stored with it.

    A result is None if nothing was written: the call would be refused or is a repeat, an entry is
    locked, or some of its entries exist and others do not. The caller must then use put_entry,
    patch_entry or run_batch. A result is an exception if the database failed and it is unknown
    whether the entries were written.
    """
    responses: list[StoredResponse | Exception | None] = [None] * len(writes)
    for turn in take_turns(map(_addresses_of, writes)):
        rows = await _prepare_all({index: writes[index] for index in turn}, session)
        for creates in _order(rows):
            due = {i: row for i, row in rows.items() if not (creates and _expects_version(row))}
            if not due:
                continue
            try:
                stored = await _store_once(due, writes, session, creates=creates)
            except (DatabaseError, InterfaceError) as error:
                if not is_undone(error):
                    for index in due:
                        responses[index] = error
                return responses
            for index, response in stored.items():
                responses[index] = response
                written = _namespaces_of(rows.pop(index))
                if creates:
                    _growing.update(written)
                else:
                    _growing.difference_update(written)
    return responses


def _order(rows: Mapping[int, JoinedPut]) -> tuple[bool, bool]:
    """Whether each of the two statements creates entries: first the one that the calls probably need."""
    if all(_namespaces_of(row) <= _growing for row in rows.values()):
        return True, False
    return False, True


def _namespaces_of(row: JoinedPut) -> set[int]:
    return {each.entry.namespace_id for each in row.entries}


def _expects_version(row: JoinedPut) -> bool:
    return any(each.expected is not None for each in row.entries)


async def _store_once(
    rows: Mapping[int, JoinedPut],
    writes: Sequence[JoinedWrite],
    session: Session,
    *,
    creates: bool,
) -> dict[int, StoredResponse]:
    """What the statement writes, and in its transaction the responses to keep for idempotency keys."""
    keys = {index: once for index in rows if (once := writes[index].once) is not None}
    first = idempotency.first_of(keys)
    mine = {i: row for i, row in rows.items() if i not in keys or first[keys[i].scope] == i}
    putting = entries_sql.putting_absent if creates else entries_sql.putting_existing
    statement = putting(list(mine.values()))
    if not keys:
        return _respond_to(await session.fetch_each([statement]), mine, writes)
    async with session.transaction():
        # The key is locked by a separate statement, so that the next one sees what the previous
        # holder of the lock has committed.
        found = await session.fetch_each([idempotency_sql.locking(first), statement])
        responses = _respond_to(found, mine, writes)
        kept = [
            (keys[index], writes[index].actor.workspace_id, response)
            for index, response in responses.items()
            if index in keys
        ]
        if responses:
            await session.fetch_each([idempotency.keeping(kept)] if kept else [], commit=True)
    return responses


def _respond_to(
    found: Sequence[Sequence[hot.Row]],
    rows: Mapping[int, JoinedPut],
    writes: Sequence[JoinedWrite],
) -> dict[int, StoredResponse]:
    """The responses to the writes of which the last statement has returned rows."""
    written = entries_sql.written_by_address(found[-1])
    responses = {}
    for index, row in rows.items():
        entries = [each.entry for each in row.entries]
        if (entries[0].namespace_id, entries[0].key) in written:
            write = writes[index]
            responses[index] = write.respond(results_of(write.actor, entries, written))
    return responses


async def _prepare_all(
    writes: Mapping[int, PutWrite | PatchWrite], session: Session
) -> dict[int, JoinedPut]:
    """The rows to store. Left out are writes that would be refused, that may count against a quota,
    that need a query, or that take long."""
    patched = {
        i: (w.actor, w.namespace, w.key) for i, w in writes.items() if isinstance(w, PatchWrite)
    }
    found = await entry_views.read_joined(list(patched.values()), session)
    views = dict(zip(patched, found, strict=True))
    rows = {}
    for index, write in writes.items():
        try:
            row = _prepare(write, views.get(index))
        except Problem:
            continue
        except Exception as error:
            note_fault(error)
            continue
        if row is not None:
            rows[index] = row
    return rows


def _prepare(write: PutWrite | PatchWrite, before: EntryView | None) -> JoinedPut | None:
    require(write.actor, Role.EDITOR)
    if not quotas.known_unlimited(write.actor):
        return None
    if isinstance(write, PutWrite):
        operation = Operation.PUT
        found = [_prepare_item(write.actor, item) for item in write.items]
    else:
        operation = Operation.PATCH
        found = [_prepare_patch(write, before)]
    entries = [each for each in found if each is not None]
    if len(entries) < len(found):
        return None
    stamp = journal.parameters(write.actor, write.reason)
    scope = None if write.once is None else write.once.scope
    return JoinedPut(entries, operation.value, stamp, scope)


def _prepare_item(
    actor: Actor, item: Item, expires_at: datetime | None = None
) -> JoinedEntry | None:
    require_open(item.namespace)
    definition = cached_definition(actor, item.namespace)
    if definition is None or not definition.validator.is_light(item.value.value):
        return None
    check_value(definition, item.value)
    new = new_entry(definition, item.key, item.value.text)
    if item.ttl_seconds is not None:
        new = new._replace(ttl=item.ttl_seconds or None)
    return JoinedEntry(new, item.expected, expires_at)


def _prepare_patch(patch: PatchWrite, before: EntryView | None) -> JoinedEntry | None:
    require_open(patch.namespace)
    if before is None or not _is_patchable(patch, before):
        return None
    value = patch_text(patch.kind, before.value, patch.operations)
    item = Item(patch.namespace, patch.key, value, before.version)
    return _prepare_item(patch.actor, item, before.expires_at)


def _is_patchable(patch: PatchWrite, before: EntryView) -> bool:
    return (
        before.exists
        and patch.expected in (None, before.version)
        and before.size_bytes <= _LARGEST_PATCHED
    )


def _addresses_of(write: PutWrite | PatchWrite) -> set[Address]:
    places = write.items if isinstance(write, PutWrite) else [write]
    return {(write.actor.workspace_id, each.namespace, each.key) for each in places}
