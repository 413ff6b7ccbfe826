"""What is counted of everything stored, and its growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date


@dataclass(slots=True)
class Counts:
    """Numbers of rows and bytes by kind; bytes are those of the JSON text as it was sent.

    `entries` are those that exist now. History: every version of an entry, the newest included, and
    the previous values of a thread's state keys; state: their current values. Estimated tokens are
    those of entries and messages.
    """

    entries: int = 0
    entry_bytes: int = 0
    history_rows: int = 0
    history_bytes: int = 0
    threads: int = 0
    messages: int = 0
    message_bytes: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    estimated_tokens: int = 0

    def add(self, other: Counts) -> None:
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def rows(self) -> int:
        return self.entries + self.history_rows + self.messages + self.state_rows

    @property
    def bytes(self) -> int:
        return self.entry_bytes + self.history_bytes + self.message_bytes + self.state_bytes

    def to_json(self) -> dict[str, int]:
        return asdict(self)


_NAMES = tuple(field.name for field in fields(Counts))


def growth_per_day(levels: Sequence[tuple[date, int]]) -> float | None:
    """The growth per day between the first and the last day. None if there is only one day."""
    if len(levels) < 2:
        return None
    (first, low), (last, high) = levels[0], levels[-1]
    return (high - low) / (last - first).days
