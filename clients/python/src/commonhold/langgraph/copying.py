"""Copies the entries of a thread to another thread."""

from __future__ import annotations

from collections.abc import Callable

from commonhold.entries import list_entries
from commonhold.langgraph.layout import PAGE, SEGMENTS, base_of, next_page, thread_key
from commonhold.langgraph.operations import copy_entry, delete_keys, list_keys, write
from commonhold.langgraph.segments import open_segment, read_segments
from commonhold.langgraph.wire import Plan


class ThreadCopy:
    """A copy of one thread to another. `ensure_thread` creates the target in Commonhold if it does
    not exist."""

    def __init__(
        self, source_id: str, target_id: str, ensure_thread: Callable[[str], Plan[None]]
    ) -> None:
        self._source, self._target = thread_key(source_id), thread_key(target_id)
        self._target_id = target_id
        self._ensure_thread = ensure_thread

    def copy_entries(self, namespace: str, start: str = "") -> Plan[set[str]]:
        """Copy the entries whose keys are `start` and a key of the thread. Returns their keys."""
        source, target = start + self._source, start + self._target
        copied: set[str] = set()
        call = list_entries(namespace, prefix=source, values=True, limit=PAGE)
        while True:
            page = yield call
            if page.items:
                yield from self._ensure_thread(self._target_id)
            copies = [
                copy_entry(e, target + e.key.removeprefix(source), self._target_id) for e in page
            ]
            yield from write(copies)
            copied |= {entry.key for entry in page}
            if page.next_cursor is None:
                return copied
            call = next_page(call, page.next_cursor)

    def copy_checkpoints(self, namespace: str) -> Plan[None]:
        """Copy the checkpoints with their writes, also those that become part of a segment meanwhile."""
        # Segments last: such a checkpoint is copied twice instead of being lost.
        copied = yield from self.copy_entries(namespace)
        yield from self.copy_entries(namespace, SEGMENTS)
        gone = copied.difference((yield from list_keys(namespace, self._source)))
        if not gone:
            return
        segments = yield from read_segments(namespace, self._target)
        folded = {each.base for entry in segments.values() for each in open_segment(entry, {})}
        copies = [self._target + key.removeprefix(self._source) for key in gone]
        yield from delete_keys(namespace, [key for key in copies if base_of(key) in folded])
