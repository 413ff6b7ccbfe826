"""Where a conversation may be folded and cut, and how the folded one reads (semantics §8).

Not here: summarising (summarizers) and storing a compaction (services).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate
from typing import Final, TypeVar

from state_admin.domain.values import JSON, Fault, pointer_of

T = TypeVar("T")

MODES: Final = ("keep_recent_raw_suffix", "compact_to_safe_frontier")


@dataclass(frozen=True)
class Line:
    """What planning needs to know of a message. `opens` and `answers` are tool call ids, which
    a hand-edited conversation may use again in a later round."""

    seq: int
    message_id: str
    role: str
    visibility: str
    tokens: int
    opens: tuple[str, ...] = ()
    answers: str | None = None


class BadPolicy(ValueError):
    """A policy cannot be read. `faults` point into it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True)
class Policy:
    """When and how a thread's context is compacted. Sizes in estimated tokens.

    `autocompact_threshold` None = only by hand. `summarizer` None = the server's default.
    """

    max_context_tokens: int = 200_000
    max_output_tokens: int = 16_384
    autocompact_threshold: int | None = None
    mode: str = MODES[0]
    raw_suffix_messages: int = 2
    min_recent_messages: int = 10
    min_gain_tokens: int = 1_024
    min_savings_ratio: float = 0.3
    summarizer: str | None = None
    summary_max_tokens: int = 1_024

    @classmethod
    def from_json(cls, body: JSON) -> Policy:
        """The policy with these fields, the others by default. Raises BadPolicy."""
        if not isinstance(body, dict):
            raise BadPolicy([Fault("", "a policy is an object")])
        faults = list(_policy_faults(body))
        if faults:
            raise BadPolicy(faults)
        return cls(**body)

    def to_json(self) -> dict[str, JSON]:
        """Every field; `from_json` reads it back."""
        return asdict(self)

    def narrowed(
        self, max_context_tokens: int | None = None, max_output_tokens: int | None = None
    ) -> Policy:
        """The policy within what a model can take: the threshold never exceeds what the window
        leaves beside the answer, and falls away when that is nothing (awaken-facts §5.1)."""
        window = min(self.max_context_tokens, max_context_tokens or self.max_context_tokens)
        answer = min(self.max_output_tokens, max_output_tokens or self.max_output_tokens, window)
        threshold = self.autocompact_threshold
        if threshold is not None:
            threshold = min(threshold, window - answer) or None
        return replace(
            self,
            max_context_tokens=window,
            max_output_tokens=answer,
            autocompact_threshold=threshold,
        )

    @property
    def suffix(self) -> int:
        """How many of the newest messages stay raw."""
        return self.raw_suffix_messages if self.mode == MODES[0] else self.min_recent_messages


_COUNTS: Final = {
    "max_context_tokens": 1,
    "max_output_tokens": 1,
    "raw_suffix_messages": 0,
    "min_recent_messages": 0,
    "min_gain_tokens": 0,
    "summary_max_tokens": 1,
    "autocompact_threshold": 1,
}


def _policy_faults(body: dict[str, JSON]) -> Iterator[Fault]:
    known = {field.name for field in fields(Policy)}
    for name, value in body.items():
        place = pointer_of(name)
        if name not in known:
            yield Fault(place, f"unknown field; known are {', '.join(sorted(known))}")
        elif value is None and name in ("autocompact_threshold", "summarizer"):
            continue
        elif name in _COUNTS:
            if type(value) is not int or not _COUNTS[name] <= value < 1 << 53:
                yield Fault(place, f"must be an integer of at least {_COUNTS[name]}")
        elif name == "mode":
            if value not in MODES:
                yield Fault(place, f"must be one of {', '.join(MODES)}")
        elif name == "min_savings_ratio":
            if not isinstance(value, (int, float)) or value is True or not 0 <= value <= 1:
                yield Fault(place, "must be a number from 0 to 1")
        elif not isinstance(value, str) or not value:
            yield Fault(place, "must be a text that is not empty")


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


def plan(lines: Sequence[Line], policy: Policy) -> Plan | Skip:
    """Where to fold the effective view (semantics §8, awaken-facts §5.4).

    `lines` hold the previous summary as the internal system line it is. The boundary is the last
    message before the kept suffix at which every opened tool call has its result and the next
    message is no tool message. The suffix holds the last user turn, unless that turn is itself
    what makes the view long: then its tool rounds may be folded too, and the user's own message
    is carried (docs/adr/0005-folding-inside-a-long-turn.md).
    """
    turn = _last_user_turn(lines)
    usual = _plan(lines, policy, max(policy.suffix, len(lines) - turn))
    enough = policy.min_savings_ratio * sum(line.tokens for line in lines)
    if turn == len(lines) or (isinstance(usual, Plan) and usual.tokens_before >= enough):
        return usual
    recent = max(policy.suffix, policy.min_recent_messages)
    inside = _plan(lines, policy, recent, carried=turn)
    return inside if isinstance(inside, Plan) else usual


def _plan(
    lines: Sequence[Line], policy: Policy, keep: int, *, carried: int | None = None
) -> Plan | Skip:
    end = len(lines) - keep
    if end < 2:
        return Skip("fewer than 2 messages stand before those that stay")
    closed = _closed(lines)
    # A carried message stands behind the summary that covers it: no boundary may fall back on it.
    furthest = list(accumulate((line.seq for line in lines), max))
    boundary = next(
        (i for i in reversed(range(end)) if closed[i] and lines[i].seq == furthest[i]), None
    )
    if boundary is None or (carried is not None and boundary < carried):
        return Skip("no message before those that stay ends with all tool calls answered")
    folded = [i for i in range(boundary + 1) if i != carried]
    if not any(lines[i].visibility != "internal" for i in folded):
        return Skip("nothing but internal messages stands before those that stay")
    tokens = sum(lines[i].tokens for i in folded)
    if tokens < policy.min_gain_tokens:
        return Skip(f"folding would gain fewer than {policy.min_gain_tokens} tokens: {tokens}")
    line = lines[boundary]
    carried_seq = lines[carried].seq if carried is not None else None
    return Plan(line.seq, line.message_id, tokens, len(lines) - boundary - 1, carried_seq)


def _last_user_turn(lines: Sequence[Line]) -> int:
    """The index where it begins; the end of the lines if there is none."""
    for index in reversed(range(len(lines))):
        if lines[index].role == "user" and lines[index].visibility != "internal":
            return index
    return len(lines)


def _closed(lines: Sequence[Line]) -> list[bool]:
    """For each line: all calls opened so far are answered, and no tool message follows."""
    open_calls: dict[str, int] = {}
    closed = []
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        for call in line.opens:
            open_calls[call] = open_calls.get(call, 0) + 1
        if line.answers in open_calls:
            open_calls[line.answers] -= 1
            if not open_calls[line.answers]:
                del open_calls[line.answers]
        closed.append(not open_calls and (following is None or following.role != "tool"))
    return closed


@dataclass(frozen=True)
class Mark:
    """A summary (appended to the log at `seq`) that stands for the messages
    `[from_seq, to_seq]`, but for the one it carries."""

    message_id: str
    seq: int
    from_seq: int
    to_seq: int
    carried_seq: int | None = None


def effective(lines: Sequence[T], marks: Sequence[Mark], seq_of: Callable[[T], int]) -> list[T]:
    """The messages as a model should see them, under the active marks.

    Each marked interval gives way to its summary, which leaves the place where it was appended,
    and behind it the message that it carries.
    A mark within another has no say. A mark whose summary is not among `lines` (a view of an
    earlier moment) folds nothing. The caller leaves out the summaries of lifted marks.
    """
    by_seq = {seq_of(line): line for line in lines}
    present = [mark for mark in marks if mark.seq in by_seq]
    # Wider and later marks first, so a mark is within an earlier one exactly if it ends no later.
    present.sort(key=lambda mark: (mark.from_seq, -mark.to_seq, -mark.seq))
    shown: list[Mark] = []
    for mark in present:
        if not shown or mark.to_seq > shown[-1].to_seq:
            shown.append(mark)
    hidden = {mark.seq for mark in present}
    placed = [(mark.from_seq, 0, by_seq[mark.seq]) for mark in shown]
    carried = {mark.carried_seq for mark in shown}
    for seq, line in by_seq.items():
        folded = any(mark.from_seq <= seq <= mark.to_seq for mark in shown) and seq not in carried
        if seq not in hidden and not folded:
            placed.append((seq, 1, line))
    placed.sort(key=lambda entry: entry[:2])
    return [line for _, _, line in placed]


def fit(lines: Sequence[Line], max_tokens: int) -> list[int]:
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


def _inside_rounds(lines: Sequence[Line]) -> set[int]:
    """The places between lines where a cut would part a tool call from its result."""
    inside: set[int] = set()
    for opened, _, answered in _rounds(lines):
        if answered is not None:
            inside.update(range(opened + 1, answered + 1))
    inside.update(index for index, line in enumerate(lines) if line.role == "tool")
    return inside


def _rounds(lines: Sequence[Line]) -> list[tuple[int, str, int | None]]:
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


def dangling(lines: Sequence[Line]) -> list[tuple[int, str]]:
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
