"""Reads stored checkpoints: one, the newest ones of a thread, or those of many threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from commonhold.answers import EntryRow
from commonhold.entries import list_entries
from commonhold.langgraph.layout import (
    PAGE,
    SEGMENTS,
    StoredCheckpoint,
    after,
    base_of,
    id_of,
    next_page,
    ns_of,
    rows_of,
    segment_range,
)
from commonhold.langgraph.operations import list_keys, read_entries
from commonhold.langgraph.segments import STEPS, list_segments, open_segment
from commonhold.langgraph.wire import Plan
from commonhold.reading import Page

# Checkpoints, or segments of them, that are read by one request.
_TOGETHER = 64
_SEGMENTS_TOGETHER = 4


class CheckpointPages:
    """The checkpoints of one thread and checkpoint namespace, newest first, a page at a time. `size`:
    the number of entries on the first page. `needed`: how many checkpoints are probably read."""

    def __init__(
        self,
        namespace: str,
        base: str,
        before: str | None = None,
        *,
        size: int = PAGE,
        needed: int = PAGE,
    ) -> None:
        self._before = before
        self._needed = needed
        single = list_entries(
            namespace, prefix=base, order="desc", before=before, values=True, limit=size
        )
        self._calls = [single, list_segments(namespace, base, before, 1)]
        self._rows: dict[str, list[EntryRow]] = {}

    @property
    def more(self) -> bool:
        return bool(self._calls)

    def read(self) -> Plan[list[StoredCheckpoint]]:
        """The next page. Segments follow after all single checkpoints."""
        call = self._calls[0]
        page: Page[EntryRow] = yield call
        is_single = len(self._calls) == 2
        if page.next_cursor is None:
            del self._calls[0]
        else:
            self._calls[0] = next_page(
                call, page.next_cursor, PAGE if is_single else 2 * _SEGMENTS_TOGETHER
            )
        if is_single:
            found = self._read_single(page)
            self._needed -= len(found)
            # Decoding a segment is the slowest part, so only those that are needed are read.
            segments = min(_SEGMENTS_TOGETHER, 1 + max(0, self._needed) // STEPS)
            self._calls[-1] = replace(
                self._calls[-1], query={**self._calls[-1].query, "limit": segments}
            )
            return found
        found = [each for entry in page for each in open_segment(entry, self._rows)]
        # Some may have been read as single entries already.
        return [each for each in found if self._before is None or each.base < self._before]

    def _read_single(self, page: Iterable[EntryRow]) -> list[StoredCheckpoint]:
        found = []
        for entry in page:
            # In descending order, the writes of a checkpoint come before it.
            base = base_of(entry.key)
            if entry.key == base + "checkpoint":
                rows = rows_of(self._rows.pop(base, ()))
                found.append(StoredCheckpoint(base, entry.value, rows))
                self._before = base
            else:
                self._rows.setdefault(base, []).append(entry)
        return found


class CheckpointReads:
    """Checkpoints of several threads or checkpoint namespaces, newest first. `keys`: those of their
    entries, and of segments. `accepts`: whether the checkpoint at a base is to be read."""

    def __init__(self, namespace: str, keys: Sequence[str], accepts: Callable[[str], bool]) -> None:
        self._namespace = namespace
        self._accepts = accepts
        self._keys: dict[str, list[str]] = {}
        units = []
        for key in keys:
            if key.startswith(SEGMENTS):
                units.append((id_of(segment_range(key)[1]), key))
                continue
            base = base_of(key)
            self._keys.setdefault(base, []).append(key)
            if key == base + "checkpoint" and accepts(base):
                units.append((id_of(base), base))
        # Writes without a checkpoint: it is in a segment, or not stored yet.
        self._late = {at: each for at, each in self._keys.items() if at + "checkpoint" not in each}
        self._units = sorted(units)
        self._opened: list[StoredCheckpoint] = []

    @property
    def more(self) -> bool:
        return bool(self._units)

    def read(self) -> Plan[list[StoredCheckpoint]]:
        taken: list[str] = []
        segments = 0
        while self._units and len(taken) < _TOGETHER and segments < _SEGMENTS_TOGETHER:
            taken.append(self._units.pop()[1])
            segments += taken[-1].startswith(SEGMENTS)
        keys = [key for unit in taken for key in self._keys.get(unit, [unit])]
        late = self._late if segments else {}
        keys += [key for rows in late.values() for key in rows]
        entries = yield from read_entries(self._namespace, keys)
        for unit in taken:
            if unit.startswith(SEGMENTS):
                rows = {base: [entries[k] for k in late[base] if k in entries] for base in late}
                opened = open_segment(entries[unit], rows) if unit in entries else []
                self._opened += [each for each in opened if self._accepts(each.base)]
            elif unit + "checkpoint" in entries:
                documents = rows_of(entries[k] for k in self._keys[unit] if k in entries)
                head = documents.pop(unit + "checkpoint")
                self._opened.append(StoredCheckpoint(unit, head, documents))
            elif folded := (yield from find_checkpoint(self._namespace, unit)):
                self._opened.append(folded)
        self._opened.sort(key=lambda each: id_of(each.base), reverse=True)
        # Checkpoints of the next segment may be newer than some of these.
        end = self._units[-1][0] if self._units else ""
        found = [each for each in self._opened if id_of(each.base) >= end]
        self._opened = self._opened[len(found) :]
        return found


def find_checkpoint(namespace: str, base: str) -> Plan[StoredCheckpoint | None]:
    """The checkpoint at a base, with its writes."""
    entries: list[EntryRow] = []
    call = list_entries(namespace, prefix=base, values=True, limit=PAGE)
    while True:
        page = yield call
        entries += page
        if page.next_cursor is None:
            break
        call = next_page(call, page.next_cursor)
    rows = rows_of(entries)
    if head := rows.pop(base + "checkpoint", None):
        return StoredCheckpoint(base, head, rows)
    for entry in (yield list_segments(namespace, ns_of(base), after(base), 1)):
        for each in open_segment(entry, {base: entries}):
            if each.base == base:
                return each
    return None


def list_all_keys(namespace: str, prefix: str) -> Plan[list[str]]:
    """The keys of the entries and segments of a prefix."""
    keys = yield from list_keys(namespace, prefix)
    if not prefix:
        return list(keys)
    segments = yield from list_keys(namespace, SEGMENTS + prefix)
    return [*keys, *segments]


def read_heads(namespace: str, prefix: str) -> Plan[dict[str, StoredCheckpoint]]:
    """All checkpoints of a prefix by base."""
    keys = yield from list_all_keys(namespace, prefix)
    source = CheckpointReads(namespace, keys, lambda _: True)
    found: dict[str, StoredCheckpoint] = {}
    while source.more:
        found |= {each.base: each for each in (yield from source.read())}
    return found
