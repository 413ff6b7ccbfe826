"""Effective views in memory, as a reference for models/folds_sql.py and models/messages.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from state_admin.domain.boundaries import CutPoint, MessageLine, PendingToolCall, Turn

T = TypeVar("T")


class Lines:
    """A view with all its messages in memory."""

    def __init__(self, lines: Sequence[MessageLine]) -> None:
        self._lines = lines

    @property
    def count(self) -> int:
        return len(self._lines)

    @property
    def tokens(self) -> int:
        return sum(line.tokens for line in self._lines)

    @property
    def turn(self) -> Turn | None:
        for index in reversed(range(self.count)):
            line = self._lines[index]
            if line.role == "user" and line.visibility != "internal":
                return Turn(index, line.seq, line.tokens)
        return None

    @property
    def unanswered(self) -> PendingToolCall | None:
        *_, left = self._open_calls()
        first = min(((index, call) for call, (_, index) in left.items()), default=None)
        return first and PendingToolCall(first[0], self._lines[first[0]].seq, first[1])

    def find_cut_point(self, end: int) -> CutPoint | None:
        # A retained message is after the summary that covers it; a boundary must not move before
        # it.
        furthest = list(accumulate((line.seq for line in self._lines), max))
        _, *still_open = self._open_calls()
        for index in reversed(range(end)):
            line, following = self._lines[index], self._lines[index + 1 : index + 2]
            if still_open[index] or line.seq != furthest[index]:
                continue
            if not any(after.role == "tool" for after in following):
                upto = self._lines[: index + 1]
                tokens = sum(each.tokens for each in upto)
                external = sum(each.visibility != "internal" for each in upto)
                return CutPoint(index, line.seq, line.message_id, tokens, external)
        return None

    def _open_calls(self) -> list[dict[str, tuple[int, int]]]:
        """Before the first message and after each: how often each call is open, and since which
        message."""
        states: list[dict[str, tuple[int, int]]] = [{}]
        for index, line in enumerate(self._lines):
            now = dict(states[-1])
            for call in line.opens:
                times, since = now.get(call, (0, index))
                now[call] = times + 1, since
            if line.answers is not None and line.answers in now:
                times, since = now.pop(line.answers)
                if times > 1:
                    now[line.answers] = times - 1, since
            states.append(now)
        return states


@dataclass(frozen=True)
class Mark:
    """A summary (appended at `seq`) that replaces the messages `[from_seq, to_seq]`, except for the
    one it retains."""

    message_id: str
    seq: int
    from_seq: int
    to_seq: int
    carried_seq: int | None = None


def effective(lines: Sequence[T], marks: Sequence[Mark], seq_of: Callable[[T], int]) -> list[T]:
    """The messages as a model should see them, with the active summaries.

    Each interval is replaced by its summary, which is moved from the place where it was appended,
    and followed by the message that it retains.

    A summary within the interval of another is ignored. A summary that is not among `lines` (a view
    of an earlier time) replaces nothing. The caller leaves out undone summaries.
    """
    by_seq = {seq_of(line): line for line in lines}
    present = [mark for mark in marks if mark.seq in by_seq]
    # Wider and later summaries first, so that one is within an earlier one exactly if it ends no
    # later.
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
