"""Segments: older checkpoints of a thread, with their writes, compressed in one entry.

A new checkpoint is an entry, and so is each set of writes. Every 32 steps the older ones of these
become a segment, in one transaction: the steps of a thread differ little, so together they take a
tenth of the space. The newest checkpoints remain single entries, because more writes may follow.
All segments are older than all other checkpoints.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from commonhold.answers import Entry, EntryRow
from commonhold.calls import Call
from commonhold.entries import list_entries, run_batch
from commonhold.langgraph.layout import (
    PAGE,
    SEGMENTS,
    Document,
    StoredCheckpoint,
    base_of,
    id_key,
    next_page,
    ns_of,
    rows_of,
    segment_key,
    segment_range,
)
from commonhold.langgraph.operations import put_operation, repeatable, write
from commonhold.langgraph.wire import Plan
from commonhold.problems import CommonholdError

STEPS: Final = 32
# The number of the newest checkpoints that are not in segments.
_NEWEST: Final = 4
_FEWEST: Final = 8
# Larger checkpoints gain little. They and those after them remain single entries.
_MOST_BYTES: Final = 64 * 1024
_MOST_TOGETHER: Final = 1024 * 1024
_SEGMENTS_PER_PAGE: Final = 8


def is_due(metadata: Mapping[str, Any]) -> bool:
    """Whether older checkpoints become a segment after the step with this metadata."""
    step = metadata.get("step")
    return isinstance(step, int) and step > 0 and step % STEPS == 0


def fold(namespace: str, base: str) -> Plan[None]:
    """Make a segment of the older checkpoints of a thread and checkpoint namespace. Nothing happens if
    there are too few of them, if another process changes them at the same time, or if a call fails."""
    # The checkpoints remain stored, and the next step that is due tries again.
    with suppress(CommonholdError):
        yield from _fold(namespace, base)


def _fold(namespace: str, base: str) -> Plan[None]:
    page = yield list_entries(namespace, prefix=base, values=True, limit=PAGE)
    folded = _choose(page.items, is_last=page.next_cursor is None)
    if len(folded) < _FEWEST:
        return
    stored = []
    for base, rows in folded.items():
        documents = rows_of(rows)
        head = documents.pop(base + "checkpoint")
        stored.append(StoredCheckpoint(base, head, documents))
    operations = [
        {**put_operation(namespace, _key_of(stored), _pack(stored)), "if_version": 0},
        *(
            {"op": "delete", "namespace": namespace, "key": e.key, "if_version": e.version}
            for rows in folded.values()
            for e in rows
        ),
    ]
    yield repeatable(run_batch(operations, minimal=True))


def _choose(rows: Sequence[EntryRow], *, is_last: bool) -> dict[str, list[EntryRow]]:
    """The entries of the checkpoints for the segment, by base. `is_last`: none follow."""
    by_base: dict[str, list[EntryRow]] = {}
    for row in rows:
        by_base.setdefault(base_of(row.key), []).append(row)
    # The last one of a page may be incomplete. Writes without a checkpoint arrived before it, or belong to one in a segment.
    kept = list(by_base)[: -_NEWEST if is_last else -1]
    chosen: dict[str, list[EntryRow]] = {}
    together = 0
    for base in kept:
        found = by_base[base]
        if all(row.key != base + "checkpoint" for row in found):
            continue
        size = sum(row.size_bytes for row in found)
        together += size
        if size > _MOST_BYTES or together > _MOST_TOGETHER:
            break
        chosen[base] = found
    return chosen


def list_segments(namespace: str, base: str, before: str | None, limit: int) -> Call[Any]:
    """The call that lists the segments of a prefix, newest first: those that begin below `before`."""
    end = SEGMENTS + before if before else None
    return list_entries(
        namespace, prefix=SEGMENTS + base, order="desc", before=end, values=True, limit=limit
    )


def open_segment(
    entry: Entry | EntryRow, late: Mapping[str, Iterable[Entry | EntryRow]]
) -> list[StoredCheckpoint]:
    """The checkpoints of a segment, newest first. `late`: entries of writes by base that were
    stored after their checkpoint became part of the segment."""
    value = entry.value
    about = {name: value[name] for name in ("thread_id", "checkpoint_ns")}
    base = ns_of(segment_range(entry.key)[0])
    found = []
    for each in reversed(json.loads(zlib.decompress(base64.b85decode(value["zlib"])))):
        at = base + id_key(each["head"]["checkpoint_id"])
        rows = {f"{at}write/{n}": row for n, row in enumerate(each["writes"])}
        rows |= rows_of(late.get(at, ()))
        found.append(StoredCheckpoint(at, {**about, **each["head"]}, rows))
    return found


def read_segments(namespace: str, prefix: str) -> Plan[dict[str, EntryRow]]:
    """All segments of a prefix, by key."""
    found: dict[str, EntryRow] = {}
    call = list_segments(namespace, prefix, None, _SEGMENTS_PER_PAGE)
    while True:
        page = yield call
        found |= {entry.key: entry for entry in page}
        if page.next_cursor is None:
            return found
        call = next_page(call, page.next_cursor, _SEGMENTS_PER_PAGE)


def delete_folded(
    namespace: str, segments: Iterable[EntryRow], bases: Collection[str]
) -> Plan[None]:
    """Delete the checkpoints at these bases from the segments."""
    for entry in segments:
        found = open_segment(entry, {})[::-1]
        kept = [each for each in found if each.base not in bases]
        if len(kept) == len(found):
            continue
        change: Document = {"op": "delete", "namespace": namespace, "key": entry.key}
        if kept:  # under the same key: its range still contains them
            change = put_operation(namespace, entry.key, _pack(kept))
        yield from write([{**change, "if_version": entry.version}])


def _key_of(stored: Sequence[StoredCheckpoint]) -> str:
    return segment_key(stored[0].base, stored[-1].base)


def _pack(stored: Sequence[StoredCheckpoint]) -> Document:
    """The document of a segment; the checkpoints in ascending order."""
    about = {name: stored[0].head[name] for name in ("thread_id", "checkpoint_ns")}
    documents = [
        {
            "head": {name: part for name, part in each.head.items() if name not in about},
            "writes": list(each.rows.values()),
        }
        for each in stored
    ]
    # Numbers that were read as Decimal are floats in checkpoints.
    text = json.dumps(documents, ensure_ascii=False, separators=(",", ":"), default=float)
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    return {**about, "checkpoints": len(stored), "zlib": packed}
