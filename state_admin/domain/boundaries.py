"""Where a conversation may be summarized and cut, and what the resulting context looks like.

Not here: the policy (policies), summarizing (summarizers) and storing a compaction (services).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from .policies import Policy


@dataclass(frozen=True)
class MessageLine:
    """What planning needs of a message. `opens` and `answers` are ids of tool calls; a conversation
    that was edited by hand may use an id again in a later round."""

    seq: int
    message_id: str
    role: str
    visibility: str
    tokens: int
    opens: tuple[str, ...] = ()
    answers: str | None = None


@dataclass(frozen=True)
class Plan:
    """Summarize everything up to and including the boundary.

    `tokens_before` is the estimate of what leaves the effective view; `kept` is the number of
    messages that are retained after the boundary. `carried_seq` is the user message that began the
    last turn if the boundary lies inside that turn: it is retained before them.
    """

    boundary_seq: int
    boundary_message_id: str
    tokens_before: int
    kept: int
    carried_seq: int | None = None


@dataclass(frozen=True)
class Skip:
    """There is nothing to summarize; `reason` says why."""

    reason: str


@dataclass(frozen=True)
class Turn:
    """The message that began the last user turn; `index` is its position in the view."""

    index: int
    seq: int
    tokens: int


@dataclass(frozen=True)
class CutPoint:
    """A message after which the view may be cut, with the tokens up to and including it, and the
    number of those messages that are not internal."""

    index: int
    seq: int
    message_id: str
    tokens: int
    external: int


@dataclass(frozen=True)
class PendingToolCall:
    """The first tool call without a result: the view cannot be cut after its message or a later
    one."""

    index: int
    seq: int
    call: str

    def __str__(self) -> str:
        return f"tool call {self.call} of message {self.seq} has no result"


class View(Protocol):
    """What planning reads from an effective view: a list in memory, or the database, which computes
    the results without returning the messages (models/folds_sql.py)."""

    @property
    def count(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def turn(self) -> Turn | None: ...

    @property
    def unanswered(self) -> PendingToolCall | None: ...

    def find_cut_point(self, end: int) -> CutPoint | None:
        """The last message before position `end` at which every tool call has its result and the
        next message is not a tool message. The database returns an earlier one if the messages up to
        it are too large to summarize at once."""
        ...


def plan(view: View, policy: Policy) -> Plan | Skip:
    """Where to cut the effective view.

    The view contains the previous summary as an internal system message. The boundary is the last
    message before the retained messages at which every tool call has its result and the next
    message is not a tool message. The retained messages include the last user turn, unless that
    turn itself makes the view long: then its tool rounds may be summarized too, and the user's
    message is retained (docs/adr/0005).
    """
    turn = view.turn
    usual = _plan(view, policy, max(policy.suffix, view.count - turn.index if turn else 0))
    enough = policy.min_savings_ratio * view.tokens
    if turn is None or (isinstance(usual, Plan) and usual.tokens_before >= enough):
        return usual
    recent = max(policy.suffix, policy.min_recent_messages)
    inside = _plan(view, policy, recent, carried=turn)
    return inside if isinstance(inside, Plan) else usual


def _plan(view: View, policy: Policy, keep: int, *, carried: Turn | None = None) -> Plan | Skip:
    end = view.count - keep
    if end < 2:
        return Skip("fewer than 2 messages precede the retained messages")
    stuck = view.unanswered
    if stuck is not None and stuck.index >= end:
        stuck = None
    found = view.find_cut_point(end)
    if found is None or (carried is not None and found.index < carried.index):
        words = "a tool call is open at every message before the retained messages"
        return Skip(str(stuck or words))
    if found.external == (carried is not None):
        words = "only internal messages and open tool calls precede the retained messages"
        return Skip(str(stuck or words))
    tokens = found.tokens - (carried.tokens if carried else 0)
    if tokens < policy.min_gain_tokens:
        words = f"summarizing would save fewer than {policy.min_gain_tokens} tokens: {tokens}"
        return Skip(f"{words}; {stuck}" if stuck else words)
    carried_seq = carried.seq if carried else None
    return Plan(found.seq, found.message_id, tokens, view.count - found.index - 1, carried_seq)


def fit(lines: Sequence[MessageLine], max_tokens: int) -> list[int]:
    """The indexes of the messages that fit into `max_tokens`: the leading system messages, which
    are always included, then the newest that fit. A tool call is not separated from its results."""
    lead = next((i for i, line in enumerate(lines) if line.role != "system"), len(lines))
    left = max_tokens - sum(line.tokens for line in lines[:lead])
    costs = list(accumulate((line.tokens for line in reversed(lines[lead:])), initial=0))
    cut_inside = _inside_rounds(lines)
    for start in range(lead, len(lines) + 1):
        if costs[len(lines) - start] <= left and start not in cut_inside:
            return [*range(lead), *range(start, len(lines))]
    return list(range(lead))


def _inside_rounds(lines: Sequence[MessageLine]) -> set[int]:
    """The positions between messages at which a cut would separate a tool call from its result."""
    inside: set[int] = set()
    for opened, _, answered in _rounds(lines):
        if answered is not None:
            inside.update(range(opened + 1, answered + 1))
    inside.update(index for index, line in enumerate(lines) if line.role == "tool")
    return inside


def _rounds(lines: Sequence[MessageLine]) -> list[tuple[int, str, int | None]]:
    """Each tool call: its index, its id, and the index of its result, None without one. A result
    belongs to the newest open call with its id, because ids may be used again in later rounds."""
    waiting: dict[str, list[int]] = {}
    answered: list[tuple[int, str, int | None]] = []
    for index, line in enumerate(lines):
        if line.answers is not None and waiting.get(line.answers):
            answered.append((waiting[line.answers].pop(), line.answers, index))
        for call in line.opens:
            waiting.setdefault(call, []).append(index)
    unanswered = [(at, call, None) for call, places in waiting.items() for at in places]
    return [*answered, *unanswered]


def dangling(lines: Sequence[MessageLine]) -> list[tuple[int, str]]:
    """Tool calls without a result, in order: the call's id, and the index of the message after
    which the view inserts `[Tool execution was interrupted]` (the last existing result of the
    round)."""
    found = []
    for opened, call, answered in _rounds(lines):
        if answered is None:
            behind = opened
            while behind + 1 < len(lines) and lines[behind + 1].role == "tool":
                behind += 1
            found.append((behind, opened, lines[opened].opens.index(call), call))
    return [(behind, call) for behind, _, _, call in sorted(found)]
