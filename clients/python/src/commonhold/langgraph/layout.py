"""The keys of the entries in which a checkpoint is stored.

| entry | key |
|---|---|
| `{namespace}.checkpoints` | `{thread}/{checkpoint_ns}/{checkpoint}/checkpoint`: metadata, versions, parent and small values |
| the same | `{thread}/{checkpoint_ns}/{checkpoint}/write/{time}`: the pending writes of one call |
| the same | `%segments/{thread}/{checkpoint_ns}/{first}/{last}`: older checkpoints with their writes (segments) |
| `{namespace}.channels` | `{thread}/{checkpoint_ns}/{channel}/{version}`: a larger value, written once per version |

Checkpoint ids grow with time, so the last key of a prefix belongs to the newest checkpoint. Up to version
0.1, each write was an entry, `…/write/{task}/{index}`; those are read, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, Final

from langgraph.checkpoint.base import writes_sort_key

from commonhold import arguments
from commonhold.answers import Entry, EntryRow
from commonhold.calls import Call
from commonhold.langgraph.packing import part

PAGE: Final = 200
MOST_ID: Final = 64
# No key of a thread begins with this, because names are percent-encoded.
SEGMENTS: Final = "%segments/"

_NEVER: Final = datetime.max.replace(tzinfo=UTC)

Document = dict[str, Any]


@dataclass
class StoredCheckpoint:
    """A stored checkpoint: its own document, and those of its writes by key, the oldest first."""

    base: str
    head: Document
    rows: dict[str, Document]

    @cached_property
    def ns(self) -> str:
        return ns_of(self.base)

    @property
    def writes(self) -> list[tuple[str, Document]]:
        """Its writes with the keys of their entries, in the order LangGraph applies them. The first
        write of an index counts, except for errors, interrupts and resumes (below 0), of which the
        last one counts."""
        chosen: dict[tuple[str, int], tuple[str, Document]] = {}
        for key, row in self.rows.items():
            if "task_id" not in row:
                continue
            for each in row.get("writes", [row]):
                index = row["task_id"], each["index"]
                if each["index"] < 0 or index not in chosen:
                    about = {"task_id": row["task_id"], "task_path": row["task_path"]}
                    chosen[index] = key, {**about, **each}
        return sorted(
            chosen.values(),
            key=lambda w: writes_sort_key(w[1]["task_path"], w[1]["task_id"], w[1]["index"]),
        )


def rows_of(entries: Iterable[Entry | EntryRow]) -> dict[str, Document]:
    """The documents of entries by key, the oldest first."""
    in_order = sorted(entries, key=lambda e: (e.created_at or _NEVER, e.key))
    return {entry.key: entry.value for entry in in_order}


def thread_text(thread_id: Any) -> str:
    """LangGraph also accepts UUIDs and numbers. None is refused, because all runs without an id
    would share one thread."""
    return arguments.name("thread_id", None if thread_id is None else str(thread_id))


def thread_key(thread_id: Any) -> str:
    return part(thread_text(thread_id), 140) + "/"


def ns_key(checkpoint_ns: str) -> str:
    return part(checkpoint_ns, 150) + "/"


def id_part(checkpoint_id: str) -> str:
    # A digest would not keep the order.
    if len(checkpoint_id.encode()) > MOST_ID:
        raise ValueError(f"a checkpoint id of more than {MOST_ID} bytes: {checkpoint_id[:80]}…")
    return part(checkpoint_id, 3 * MOST_ID)


def id_key(checkpoint_id: str) -> str:
    return id_part(checkpoint_id) + "/"


# Most values of a thread do not change for many checkpoints. 1 and 1.0 are different versions.
@lru_cache(maxsize=4096, typed=True)
def channel_key(channel: str, version: str | int | float) -> str:
    return f"{part(channel, 100)}/{part(str(version), 80)}"


def value_key(found: StoredCheckpoint, channel: str) -> str:
    return found.ns + channel_key(channel, found.head["channels"][channel])


def segment_key(first: str, last: str) -> str:
    """The key of the segment of the checkpoints from one base to another."""
    return f"{SEGMENTS}{first}{id_of(last)}"


def segment_range(key: str) -> tuple[str, str]:
    """The bases of the first and the last checkpoint of a segment."""
    thread, ns, first, last = key.removeprefix(SEGMENTS).split("/")
    return f"{thread}/{ns}/{first}/", f"{thread}/{ns}/{last}/"


def after(base: str) -> str:
    """The first key after those below a base: "0" follows "/"."""
    return base[:-1] + "0"


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


def next_page(call: Call[Any], cursor: str, limit: int = PAGE) -> Call[Any]:
    return replace(call, query={**call.query, "cursor": cursor, "limit": limit})
