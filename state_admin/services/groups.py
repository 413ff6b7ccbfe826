"""What calls that are stored in one transaction have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable

import structlog

from project.failures import describe_error, is_connection_lost

log = structlog.get_logger(__name__)


def take_turns(calls: Iterable[Collection[Hashable]]) -> list[list[int]]:
    """Split the indexes of `calls`, each with its addresses, into turns. An address occurs at most once
    in a turn, and its calls keep their order over the turns."""
    turns: list[list[int]] = []
    seen: Counter[Hashable] = Counter()
    for index, addresses in enumerate(calls):
        turn = max(seen[address] for address in addresses)
        if turn == len(turns):
            turns.append([])
        turns[turn].append(index)
        for address in addresses:
            seen[address] = turn + 1
    return turns


def is_undone(error: Exception) -> bool:
    """Whether the database refused the statement and rolled the transaction back. If the connection
    was lost, the transaction may be committed."""
    return not is_connection_lost(getattr(error.__cause__, "sqlstate", None))


def note_fault(error: Exception) -> None:
    """Log that a call of a group is left to Django because of a fault in this program, which must not
    fail the calls of others. Django runs into it again, and reports it."""
    log.info("call.left_out", error=describe_error(error))
