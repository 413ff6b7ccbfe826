"""Where a checkpoint is stored: its keys, and pages of entries.

| entry | key |
|---|---|
| `{namespace}.checkpoints` | `{thread}/{checkpoint_ns}/{checkpoint}/checkpoint`: what it is, and its short values |
| the same | `{thread}/{checkpoint_ns}/{checkpoint}/write/{task}/{index}`: a pending write |
| `{namespace}.channels` | `{thread}/{checkpoint_ns}/{channel}/{version}`: a value, written once per version |

Checkpoint ids grow with time, so the last key of a prefix belongs to the newest checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.checkpoint.base import writes_sort_key

from commonhold.answers import EntryRow
from commonhold.calls import Call
from commonhold.entries import list_entries
from commonhold.langgraph.packing import part
from commonhold.langgraph.wire import Plan
from commonhold.reading import Page

PAGE: Final = 200
MOST_ID: Final = 64

Document = dict[str, Any]


@dataclass
class StoredCheckpoint:
    """A stored checkpoint: its own document, and those of its writes by key."""

    base: str
    head: Document
    rows: dict[str, Document]

    @property
    def writes(self) -> list[tuple[str, Document]]:
        """Those of its writes with their keys, in the order LangGraph applies them."""
        found = [(key, row) for key, row in self.rows.items() if "task_id" in row]
        return sorted(
            found, key=lambda w: writes_sort_key(w[1]["task_path"], w[1]["task_id"], w[1]["index"])
        )


class CheckpointPages:
    """The checkpoints of one namespace, newest first, a page at a time."""

    def __init__(self, namespace: str, base: str, before: str | None, size: int = PAGE) -> None:
        self.more = True
        self._call = list_entries(
            namespace, prefix=base, order="desc", before=before, values=True, limit=size
        )
        self._rows: dict[str, Document] = {}

    def read(self) -> Plan[list[StoredCheckpoint]]:
        page: Page[EntryRow] = yield self._call
        found = []
        for entry in page:
            # Downwards the writes of a checkpoint come before itself.
            base = base_of(entry.key)
            if entry.key == base + "checkpoint":
                rows = {key: row for key, row in self._rows.items() if key.startswith(base)}
                found.append(StoredCheckpoint(base, entry.value, rows))
                self._rows = {}
            else:
                self._rows[entry.key] = entry.value
        self.more = page.next_cursor is not None
        if page.next_cursor is not None:
            self._call = next_page(self._call, page.next_cursor)
        return found


class CheckpointReads:
    """The checkpoints of a list of places, in its order."""

    def __init__(self, namespace: str, bases: Sequence[str]) -> None:
        self._namespace = namespace
        self._bases = list(bases)

    @property
    def more(self) -> bool:
        return bool(self._bases)

    def read(self) -> Plan[list[StoredCheckpoint]]:
        found = yield from read_checkpoint(self._namespace, self._bases.pop(0))
        return [found] if found else []


def read_checkpoint(namespace: str, base: str) -> Plan[StoredCheckpoint | None]:
    """The checkpoint at a place, with its writes; None: there is none."""
    rows: dict[str, Document] = {}
    call = list_entries(namespace, prefix=base, values=True, limit=PAGE)
    while True:
        page = yield call
        rows |= {entry.key: entry.value for entry in page}
        if page.next_cursor is None:
            break
        call = next_page(call, page.next_cursor)
    head = rows.pop(base + "checkpoint", None)
    return StoredCheckpoint(base, head, rows) if head is not None else None


def thread_key(thread_id: str) -> str:
    return part(str(thread_id), 140) + "/"


def ns_key(checkpoint_ns: str) -> str:
    return part(checkpoint_ns, 150) + "/"


def id_part(checkpoint_id: str) -> str:
    # A digest would lose the order.
    if len(checkpoint_id.encode()) > MOST_ID:
        raise ValueError(f"a checkpoint id of more than {MOST_ID} bytes: {checkpoint_id[:80]}…")
    return part(checkpoint_id, 3 * MOST_ID)


def id_key(checkpoint_id: str) -> str:
    return id_part(checkpoint_id) + "/"


def channel_key(channel: str, version: str | int | float) -> str:
    return f"{part(channel, 100)}/{part(str(version), 80)}"


def value_key(found: StoredCheckpoint, channel: str) -> str:
    return ns_of(found.base) + channel_key(channel, found.head["channels"][channel])


def base_of(key: str) -> str:
    """`{thread}/{ns}/{checkpoint}/` of a key below it."""
    return "/".join(key.split("/", 3)[:3]) + "/"


def ns_of(key: str) -> str:
    """`{thread}/{ns}/` of a key below it."""
    return "/".join(key.split("/", 2)[:2]) + "/"


def id_of(base: str) -> str:
    return base.split("/", 3)[2]


def is_between(base: str, one: str | None, end: str | None) -> bool:
    found = id_of(base)
    return (one is None or found == id_part(one)) and (end is None or found < id_part(end))


def heads_of(keys: Iterable[str]) -> list[str]:
    """Those of the keys that are checkpoints themselves."""
    return [key for key in keys if key == base_of(key) + "checkpoint"]


def next_page(call: Call[Any], cursor: str) -> Call[Any]:
    return replace(call, query={**call.query, "cursor": cursor, "limit": PAGE})
