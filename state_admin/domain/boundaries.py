"""Where a conversation may be folded and cut, and how the folded one reads.

Not here: the policy (policies), summarising (summarizers) and storing a compaction (services).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from .policies import Policy


@dataclass(frozen=True)
class MessageLine:
    """What planning needs to know of a message. `opens` and `answers` are tool call ids, which
    a hand-edited conversation may use again in a later round."""

    seq: int
    message_id: str
    role: str
    visibility: str
    tokens: int
    opens: tuple[str, ...] = ()
    answers: str | None = None


@dataclass(frozen=True)
class Plan:
    """Fold everything up to and including the boundary.

    `tokens_before` is the estimate of what leaves the effective view; `kept` is how many messages
    stay raw behind the boundary. `carried_seq` is the user message that began the last turn when
    the boundary lies inside that turn: it stays raw in front of them.
    """

    boundary_seq: int
    boundary_message_id: str
    tokens_before: int
    kept: int
    carried_seq: int | None = None


@dataclass(frozen=True)
class Skip:
    """There is nothing to fold, and why, in words."""

    reason: str


@dataclass(frozen=True)
class Turn:
    """The message that began the last user turn; `index` is its place in the view."""

    index: int
    seq: int
    tokens: int


@dataclass(frozen=True)
class Frontier:
    """A line behind which the view may be folded, and what stands up to and with it: the tokens,
    and how many messages that are not internal."""

    index: int
    seq: int
    message_id: str
    tokens: int
    external: int


@dataclass(frozen=True)
class Unanswered:
    """The first tool call that has no result anywhere: no line from its own on can be folded."""

    index: int
    seq: int
    call: str

    def __str__(self) -> str:
        return f"tool call {self.call} of message {self.seq} has no result"


class View(Protocol):
    """What planning asks of an effective view, wherever it is stored: a list in memory, or
    the database, which answers without handing the messages out (models/folds_sql.py)."""

    @property
    def count(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def turn(self) -> Turn | None: ...

    @property
    def unanswered(self) -> Unanswered | None: ...

    def frontier(self, end: int) -> Frontier | None:
        """The last line before place `end` at which every opened tool call has its result and the
        next message is no tool message."""
        ...


def plan(view: View, policy: Policy) -> Plan | Skip:
    """Where to fold the effective view.

    The view holds the previous summary as the internal system line it is. The boundary is the last
    message before the kept suffix at which every opened tool call has its result and the next
    message is no tool message. The suffix holds the last user turn, unless that turn is itself
    what makes the view long: then its tool rounds may be folded too, and the user's own message
    is carried (docs/adr/0005-folding-inside-a-long-turn.md).
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
    found = view.frontier(end)
    if found is None or (carried is not None and found.index < carried.index):
        words = "a tool call is open at every message before the retained messages"
        return Skip(str(stuck or words))
    if found.external == (carried is not None):
        return Skip(str(stuck or "only internal messages precede the retained messages"))
    tokens = found.tokens - (carried.tokens if carried else 0)
    if tokens < policy.min_gain_tokens:
        words = f"summarizing would save fewer than {policy.min_gain_tokens} tokens: {tokens}"
        return Skip(f"{words}; {stuck}" if stuck else words)
    carried_seq = carried.seq if carried else None
    return Plan(found.seq, found.message_id, tokens, view.count - found.index - 1, carried_seq)


def fit(lines: Sequence[MessageLine], max_tokens: int) -> list[int]:
    """The indexes that `max_tokens` leave: the leading system messages, which always stay, then
    the newest that fit. A tool call is never cut from its results."""
    lead = next((i for i, line in enumerate(lines) if line.role != "system"), len(lines))
    left = max_tokens - sum(line.tokens for line in lines[:lead])
    costs = list(accumulate((line.tokens for line in reversed(lines[lead:])), initial=0))
    cut_inside = _inside_rounds(lines)
    for start in range(lead, len(lines) + 1):
        if costs[len(lines) - start] <= left and start not in cut_inside:
            return [*range(lead), *range(start, len(lines))]
    return list(range(lead))


def _inside_rounds(lines: Sequence[MessageLine]) -> set[int]:
    """The places between lines where a cut would part a tool call from its result."""
    inside: set[int] = set()
    for opened, _, answered in _rounds(lines):
        if answered is not None:
            inside.update(range(opened + 1, answered + 1))
    inside.update(index for index, line in enumerate(lines) if line.role == "tool")
    return inside


def _rounds(lines: Sequence[MessageLine]) -> list[tuple[int, str, int | None]]:
    """Each opened call: where, its id, and where its result stands. A result belongs to the
    newest open call of its id: ids come back in later rounds, results come soon."""
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
    """Tool calls without a result, in order: the index of the line behind which the view puts
    `[Tool execution was interrupted]` (the last result that the round has), and the call's id."""
    found = []
    for opened, call, answered in _rounds(lines):
        if answered is None:
            behind = opened
            while behind + 1 < len(lines) and lines[behind + 1].role == "tool":
                behind += 1
            found.append((behind, opened, lines[opened].opens.index(call), call))
    return [(behind, call) for behind, _, _, call in sorted(found)]
