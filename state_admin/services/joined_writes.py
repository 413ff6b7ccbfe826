"""Stores entries that were written by several calls at the same moment, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError

from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import Operation, entries_sql
from state_admin.models.entries_sql import JoinedPut

from . import journal, quotas
from .actors import require, require_open
from .entries import WriteResult, definition_for, new_entry, written_view
from .errors import Problem
from .namespaces import definition


@dataclass(frozen=True)
class Put:
    """What put_entry takes, of one call. `expected`: the version that the entry must have."""

    actor: Actor
    namespace: str
    key: str
    value: Raw
    ttl_seconds: int | None = None
    expected: int | None = None
    reason: str = ""


def put_joined(puts: Sequence[Put]) -> list[WriteResult | Exception | None]:
    """Store what can be stored at once; writes of the same entry in their order, one transaction
    each. None: nothing was written, and put_entry says why: the call is refused, or the entry is
    locked. An exception of the database: whether it was written is not known."""
    rows = [_prepare(put) for put in puts]
    results: list[WriteResult | Exception | None] = [None] * len(puts)
    for turn in _turns(rows):
        try:
            written = entries_sql.put_joined(Operation.PUT.value, list(turn.values()))
        except (DatabaseError, InterfaceError) as error:
            if _is_undone(error):
                return results
            for index in turn:
                results[index] = error
            return results
        for index, row in turn.items():
            found = written.get((row.entry.namespace_id, row.entry.key))
            if found is not None:
                entry = written_view(puts[index].actor, row.entry, found)
                results[index] = WriteResult(entry, found.created)
    return results


def _turns(rows: Sequence[JoinedPut | None]) -> list[dict[int, JoinedPut]]:
    """The rows by index, so that each entry is written once in a turn and in its order over them."""
    turns: list[dict[int, JoinedPut]] = []
    seen: Counter[tuple[int, str]] = Counter()
    for index, row in enumerate(rows):
        if row is not None:
            address = (row.entry.namespace_id, row.entry.key)
            turn = seen[address]
            seen[address] += 1
            if turn == len(turns):
                turns.append({})
            turns[turn][index] = row
    return turns


def _is_undone(error: Exception) -> bool:
    """Whether the server itself refused the statement, and so took it back. A connection that was
    lost (class 08) or ended by an operator (class 57P) may have committed before."""
    sqlstate: str | None = getattr(error.__cause__, "sqlstate", None)
    return sqlstate is not None and not sqlstate.startswith(("08", "57P"))


def _prepare(put: Put) -> JoinedPut | None:
    """The row to store. None: put_entry would refuse it, counts it against a quota, or validates it
    for long."""
    try:
        require(put.actor, Role.EDITOR)
        require_open(put.namespace)
        if quotas.limited(put.actor):
            return None
        if not definition(put.actor, put.namespace).validator.is_light(put.value.value):
            return None
        known = definition_for(put.actor, put.namespace, put.value)
    except Problem:
        return None
    new = new_entry(known, put.key, put.value.text)
    if put.ttl_seconds is not None:
        new = new._replace(ttl=put.ttl_seconds or None)
    return JoinedPut(new, put.expected, journal.parameters(put.actor, put.reason))
