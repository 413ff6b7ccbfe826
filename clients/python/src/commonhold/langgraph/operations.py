"""Operations on entries, split into batches, and plans that read or delete many entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from commonhold.answers import Entry, EntryRow
from commonhold.calls import Call
from commonhold.entries import (
    MINIMAL,
    clear_entries,
    list_entries,
    put_entry,
    run_batch,
    split_batches,
)
from commonhold.langgraph.joining import StoreEntries
from commonhold.langgraph.layout import PAGE, Document, next_page
from commonhold.langgraph.packing import Packed
from commonhold.langgraph.wire import Plan
from commonhold.problems import Invalid, TooLarge

# The maximum bytes of values that are stored in the checkpoint, or in the writes of a task, itself.
SMALL_TOGETHER: Final = 16 * 1024

Operation = dict[str, Any]


def put_operation(namespace: str, key: str, value: Document) -> Operation:
    return {"op": "put", "namespace": namespace, "key": key, "value": value}


def copy_entry(entry: EntryRow, key: str, thread_id: str) -> Operation:
    """The entry under another key. A value with a `thread_id` gets the new one."""
    renamed = {"thread_id": thread_id} if "thread_id" in entry.value else {}
    return put_operation(entry.namespace, key, {**entry.value, **renamed})


def put_in_parts(
    namespace: str, key: str, document: Document, parts: Sequence[str]
) -> list[Operation]:
    each = [put_operation(namespace, f"{key}/{n}", {"part": text}) for n, text in enumerate(parts)]
    return [*each, put_operation(namespace, key, document)]


def put_writes_together(
    namespace: str,
    key: str,
    about: Document,
    writes: Iterable[tuple[int, str, Packed, Sequence[str]]],
) -> list[Operation]:
    """Operations that store writes (index, channel, packed value, its parts) in one entry, and
    large ones in separate entries."""
    operations: list[Operation] = []
    together: list[Document] = []
    size = 0
    for index, channel, packed, parts in writes:
        row = {"index": index, "channel": channel, "value": packed}
        weight = len(json.dumps(packed))
        if parts or size + weight > SMALL_TOGETHER:
            document = {**about, "writes": [row]}
            operations += put_in_parts(namespace, f"{key}{index:+}", document, parts)
        else:
            together.append(row)
            size += weight
    if together:
        operations.append(put_operation(namespace, key, {**about, "writes": together}))
    return operations


def size_of(operation: Operation) -> int:
    return len(json.dumps(operation, ensure_ascii=False).encode()) + 1


def repeatable(call: Call[Any]) -> Call[Any]:
    """A call that is safe to repeat: it needs no Idempotency-Key."""
    return replace(call, keyed=False)


def read_documents(namespace: str, keys: Iterable[str]) -> Plan[dict[str, Document]]:
    """Values of entries by key; missing ones are left out."""
    entries = yield from read_entries(namespace, keys)
    return {key: entry.value for key, entry in entries.items()}


def read_entries(namespace: str, keys: Iterable[str]) -> Plan[dict[str, Entry]]:
    """Entries by key; missing ones are left out."""
    found: dict[str, Entry] = {}
    distinct = list(dict.fromkeys(keys))
    for at in range(0, len(distinct), PAGE):
        for entry in (yield from _read_together(namespace, distinct[at : at + PAGE])):
            if entry.exists:
                found[entry.key] = entry
    return found


def _read_together(namespace: str, keys: Sequence[str]) -> Plan[list[Entry]]:
    gets = [{"op": "get", "namespace": namespace, "key": key} for key in keys]
    try:
        return [outcome.entry for outcome in (yield repeatable(run_batch(gets)))]
    except TooLarge:  # the values exceed the limit of one response: read each half
        middle = len(keys) // 2
        if not middle:
            raise
        first = yield from _read_together(namespace, keys[:middle])
        return first + (yield from _read_together(namespace, keys[middle:]))


def list_keys(namespace: str, prefix: str) -> Plan[Sequence[str]]:
    found: dict[str, None] = {}
    call = list_entries(namespace, prefix=prefix or None, limit=PAGE)
    while True:
        page = yield call
        found |= {entry.key: None for entry in page}
        if page.next_cursor is None:
            return tuple(found)
        call = next_page(call, page.next_cursor)


def write(operations: Sequence[Operation], *, waits: bool = False) -> Plan[None]:
    """Write in order, in as few requests as possible, together with other writes at the same moment.
    `waits`: whether to wait for these."""
    is_plain = all(each["op"] == "put" and "if_version" not in each for each in operations)
    if is_plain and len(operations) == 1:
        yield StoreEntries(operations, store_entries, waits)
        return
    chunks = list(split_batches(operations, size_of))
    for chunk in chunks:
        if is_plain and len(chunks) == 1:
            yield StoreEntries(chunk, store_entries, waits)
        else:
            yield repeatable(run_batch(chunk, minimal=True))


def store_entries(operations: Sequence[Operation]) -> Call[Any]:
    """The call that stores entries unconditionally."""
    if len(operations) > 1:
        return repeatable(run_batch(operations, minimal=True))
    (only,) = operations
    # The server does this with less work than a batch of one.
    put: Call[Any] = put_entry(only["namespace"], only["key"], only["value"])
    return repeatable(replace(put, read=lambda _: None, headers=MINIMAL))


def delete_keys(namespace: str, keys: Sequence[str]) -> Plan[None]:
    yield from write([{"op": "delete", "namespace": namespace, "key": k} for k in keys])


def clear(namespace: str, prefix: str) -> Plan[None]:
    """Delete every entry below `prefix`."""
    try:
        yield clear_entries(namespace, prefix=prefix)
    except Invalid:  # more than the server clears in one transaction
        yield from delete_keys(namespace, (yield from list_keys(namespace, prefix)))
