"""Stores the entries that several calls write at the same moment, together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import JSON, Raw
from state_admin.models import Operation, entries_sql, hot, idempotency_sql
from state_admin.models.entries_sql import JoinedPut
from state_admin.models.hot_async import Session

from . import entry_views, idempotency, journal, quotas
from .actors import require, require_open
from .entries import PatchKind, WriteResult, apply_patch, check_value, new_entry, written_view
from .entry_views import EntryView
from .errors import Problem
from .groups import is_undone, take_turns
from .idempotency import Key, StoredResponse
from .namespaces import cached_definition

# Patching a larger value would delay the other calls.
_LARGEST_PATCHED = 64 * 1024


@dataclass(frozen=True)
class JoinedWrite:
    """A write by one call. `expected`: the version that the entry must have, None for any. `once`:
    the parsed Idempotency-Key, None without one."""

    actor: Actor
    namespace: str
    key: str
    expected: int | None
    reason: str
    once: Key | None


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


# The response to a write that was stored.
Respond = Callable[[WriteResult], StoredResponse]


async def store_joined(
    writes: Sequence[JoinedWrite], respond: Respond, session: Session
) -> list[StoredResponse | Exception | None]:
    """Store as many of the writes as possible and return the responses. One statement updates the
    entries that exist, another creates those that do not. Further writes of the same entry follow
    in later statements. The response to a write with an Idempotency-Key is stored with it.

    A result is None if nothing was written: the call would be refused or is a repeat, or the
    entry is locked. The caller must then use put_entry or patch_entry. A result is an exception
    if the database failed and it is unknown whether the entry was written.
    """
    responses: list[StoredResponse | Exception | None] = [None] * len(writes)
    for turn in take_turns((w.actor.workspace_id, w.namespace, w.key) for w in writes):
        rows = await _prepare_all({index: writes[index] for index in turn}, session)
        for putting in (entries_sql.putting_existing, entries_sql.putting_absent):
            if not rows:
                break
            try:
                stored = await _store_once(putting, rows, writes, respond, session)
            except (DatabaseError, InterfaceError) as error:
                if not is_undone(error):
                    for index in rows:
                        responses[index] = error
                return responses
            for index, response in stored.items():
                responses[index] = response
            rows = {
                index: row
                for index, row in rows.items()
                if index not in stored and row.expected is None
            }
    return responses


async def _store_once(
    putting: Callable[[Sequence[JoinedPut]], hot.Call],
    rows: Mapping[int, JoinedPut],
    writes: Sequence[JoinedWrite],
    respond: Respond,
    session: Session,
) -> dict[int, StoredResponse]:
    """What the statement writes, and in its transaction the responses to keep for idempotency keys."""
    keys = {index: once for index in rows if (once := writes[index].once) is not None}
    first = idempotency.first_of(keys)
    mine = {i: row for i, row in rows.items() if i not in keys or first[keys[i].scope] == i}
    statement = putting(list(mine.values()))
    if not keys:
        return _respond_to(await session.fetch_each([statement]), mine, writes, respond)
    async with session.transaction():
        # The key is locked by a statement of its own, so that the next one sees what the last holder
        # of the lock has committed.
        found = await session.fetch_each([idempotency_sql.locking(first), statement])
        responses = _respond_to(found, mine, writes, respond)
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
    respond: Respond,
) -> dict[int, StoredResponse]:
    """The responses to the writes of which the last statement has returned rows."""
    written = entries_sql.written_by_address(found[-1])
    responses = {}
    for index, row in rows.items():
        each = written.get((row.entry.namespace_id, row.entry.key))
        if each is not None:
            entry = written_view(writes[index].actor, row.entry, each)
            responses[index] = respond(WriteResult(entry, each.created))
    return responses


async def _prepare_all(writes: Mapping[int, JoinedWrite], session: Session) -> dict[int, JoinedPut]:
    """The rows to store. Left out are writes that would be refused, that may count against a quota,
    that need a query, or that take long."""
    patched = {i: (w.actor, w.namespace, w.key) for i, w in writes.items() if isinstance(w, Patch)}
    found = await entry_views.read_joined(list(patched.values()), session)
    views = dict(zip(patched, found, strict=True))
    rows = {}
    for index, write in writes.items():
        try:
            row = _prepare(write, views.get(index))
        except Problem:
            continue
        if row is not None:
            rows[index] = row
    return rows


def _prepare(write: JoinedWrite, before: EntryView | None) -> JoinedPut | None:
    require(write.actor, Role.EDITOR)
    require_open(write.namespace)
    definition = cached_definition(write.actor, write.namespace)
    if definition is None or not quotas.known_unlimited(write.actor):
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
    if not definition.validator.is_light(value.value):
        return None
    check_value(definition, value)
    new = new_entry(definition, write.key, value.text)
    if ttl is not None:
        new = new._replace(ttl=ttl or None)
    operation = Operation.PUT if isinstance(write, Put) else Operation.PATCH
    stamp = journal.parameters(write.actor, write.reason)
    scope = None if write.once is None else write.once.scope
    return JoinedPut(new, operation.value, expected, expires_at, stamp, scope)


def _is_patchable(patch: Patch, before: EntryView) -> bool:
    return (
        before.exists
        and patch.expected in (None, before.version)
        and before.size_bytes <= _LARGEST_PATCHED
    )
