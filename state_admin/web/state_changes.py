"""What a revision changed in the state of its thread, one short line per change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from state_admin.domain import diffs, values
from state_admin.domain.diffs import Difference
from state_admin.domain.values import JSON, MISSING
from state_admin.models import Revision
from state_admin.models.state_changes_sql import ValueChange, read_changes
from state_admin.services.tool_calls import TOOL_CALLS

# Keys of the runtime, which pages show apart from those of agents.
RUNTIME = "__"
_KEYS = 8
_LINES = 4  # of one key
_CLIP = 80


@dataclass(frozen=True)
class StateLine:
    """A change at `name`, a key with a JSON pointer below it. `kind` is `added`, `removed` or
    `changed`; `set` if the value before is unknown; `large` if the values are too large to show."""

    name: str
    kind: str
    before: str = ""
    after: str = ""


@dataclass
class StateChanges:
    """The changes of one revision. `internal` are those of the runtime's keys, `more` is the number
    of changed keys that are not shown. `failed` are the ids of tool calls that the runtime's key of
    tool calls calls failed."""

    lines: list[StateLine] = field(default_factory=list)
    internal: list[StateLine] = field(default_factory=list)
    more: int = 0
    failed: set[str] = field(default_factory=set)

    def keep(self, fits: Callable[[StateLine], bool]) -> None:
        """Leave out the changes for which a page has no room."""
        before = len(self.lines) + len(self.internal)
        self.lines = [line for line in self.lines if fits(line)]
        self.internal = [line for line in self.internal if fits(line)]
        self.more += before - len(self.lines) - len(self.internal)


def changes_of(rows: Sequence[Revision], dropped: set[int]) -> dict[int, StateChanges]:
    """The changes of revisions of one thread by number, in one query. `dropped` are the numbers of
    revisions whose state was removed: those of `rows`, and those before them."""
    changes = {row.number: StateChanges() for row in rows}
    pairs: list[tuple[int, str]] = []
    for row in rows:
        if row.number in dropped:
            continue
        own = sorted(key for key in row.touched if not key.startswith(RUNTIME))
        internal = sorted(key for key in row.touched if key.startswith(RUNTIME))
        pairs += [(row.number, key) for key in (*own[:_KEYS], *internal[:_KEYS])]
        changes[row.number].more = max(len(own) - _KEYS, 0) + max(len(internal) - _KEYS, 0)
    thread_id = rows[0].thread_id if rows else 0
    for change in read_changes(thread_id, pairs):
        found = changes[change.number]
        lines = found.internal if change.key.startswith(RUNTIME) else found.lines
        lines += lines_of(change, change.number - 1 in dropped)
        if change.key == TOOL_CALLS and change.after is not None:
            found.failed = _failed(values.load(change.after))
    return changes


def lines_of(change: ValueChange, unknown_before: bool = False) -> Iterator[StateLine]:
    """A change of a value as lines. `unknown_before`: a missing value before may have been removed
    by snapshot compaction."""
    large = (change.exists and change.after is None) or (change.existed and change.before is None)
    if large:
        yield StateLine(change.key, "large")
    elif change.exists and change.existed:
        before, after = values.load(change.before or "null"), values.load(change.after or "null")
        yield from lines_between(change.key, before, after)
    elif change.exists:
        after = values.load(change.after or "null")
        yield from lines_between(change.key, MISSING, after, unknown_before)
    elif change.existed:
        yield from lines_between(change.key, values.load(change.before or "null"), MISSING)


def sentence_of(row: Difference) -> str:
    """A difference as a line of text: `/budget: 900 → 850`."""
    name = _clip(row.pointer) or "(the whole value)"
    if row.kind == "changed":
        return f"{name}: {_short(row.before)} → {_short(row.after)}"
    return f"{name}: {_short(row.before if row.kind == 'removed' else row.after)} {row.kind}"


def lines_between(
    name: str, before: JSON, after: JSON, unknown_before: bool = False
) -> Iterator[StateLine]:
    """The differences of two values, of which one may be MISSING, as lines."""
    if before is MISSING:
        yield StateLine(_clip(name), "set" if unknown_before else "added", after=_short(after))
    elif after is MISSING:
        yield StateLine(_clip(name), "removed", _short(before))
    else:
        rows = diffs.rows(before, after, _LINES + 1)
        for row in rows[:_LINES]:
            place = _clip(name + row.pointer)
            texts = _short(row.before), _short(row.after)
            # Of long values, the difference may be in the part that is not shown.
            kind = "large" if row.kind == "changed" and texts[0] == texts[1] else row.kind
            yield StateLine(place, kind, *texts)
        if len(rows) > _LINES:
            yield StateLine(_clip(name), "large")


def _short(value: JSON) -> str:
    return _clip(value if isinstance(value, str) and value else values.dump(value))


def _clip(text: str) -> str:
    return text if len(text) <= _CLIP else text[: _CLIP - 1] + "…"


def _failed(calls: JSON) -> set[str]:
    if not isinstance(calls, dict):
        return set()
    return {
        name
        for name, call in calls.items()
        if isinstance(call, dict) and call.get("status") == "failed"
    }
