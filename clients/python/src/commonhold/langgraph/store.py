"""The store: LangGraph's long-term memory as entries.

An item is an entry of `{namespace}.store` under `{label}/…/{key}`; its value is the item's value,
unchanged. The item has all features of an entry: history, restore, patches, the change feed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Self, Unpack, cast
from urllib.parse import unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from commonhold import arguments
from commonhold.answers import Entry, EntryFacts, EntryRow
from commonhold.calls import Sleep
from commonhold.client import Options, from_environment
from commonhold.entries import (
    MOST_OPERATIONS,
    get_entry,
    list_entries,
    put_entry,
    run_batch,
    split_batches,
    update_entry,
)
from commonhold.langgraph.operations import read_entries, size_of
from commonhold.langgraph.packing import escape
from commonhold.langgraph.wire import ClientPair, Connected, Plan
from commonhold.namespaces import register_namespace
from commonhold.problems import InvalidArgument, VersionConflict

MAX_KEY_BYTES: Final = 512
_PAGE: Final = 200

Namespace = tuple[str, ...]
Value = dict[str, Any]


class CommonholdStore(BaseStore, Connected):
    """A store for sync and async graphs; threads and tasks may share one.

        async with CommonholdStore.from_url("http://127.0.0.1:8000", token="ch_…") as store:
            graph = builder.compile(store=store)

    `ttl`: as in LangGraph, in minutes; expired items are never returned, even before they are
    deleted. There is no vector index: `query` and `index` have no effect, as in every store without
    one. The client applies filters, to pages of 200 items. The namespace is registered when it is
    first needed, which requires a token with the role admin.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str,
        token: str,
        *,
        namespace: str = "langgraph",
        ttl: TTLConfig | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.ttl_config = ttl
        self._name = f"{namespace}.store"
        registration = register_namespace(
            self._name,
            schema={"type": "object"},
            default={},
            description="LangGraph: items of the store",
        )
        self._wire = ClientPair(url, token, options, [registration])

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        token: str,
        namespace: str = "langgraph",
        ttl: TTLConfig | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """For `with` or `async with`, which close its connections. For `options` see Options."""
        return cls(url, token, namespace=namespace, ttl=ttl, **options)

    @classmethod
    def from_env(
        cls,
        *,
        namespace: str = "langgraph",
        ttl: TTLConfig | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """From COMMONHOLD_URL and COMMONHOLD_TOKEN; the rest as from_url. KeyError: one is not set."""
        return cls(*from_environment(), namespace=namespace, ttl=ttl, **options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads return the state before the batch. Then all puts are stored in one transaction (per
        1,000). Of two puts to one item, the last one counts."""
        return self._wire.run(self._batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See batch."""
        return await self._wire.arun(self._batch(list(ops)))

    # Methods that LangGraph's stores lack: changes that lose no update -----------------------------

    def update(self, namespace: Namespace, key: str, *operations: Mapping[str, Any]) -> Item:
        """Change an item on the server, in one step: `{"op": "add", "path": "/n", "value": 1}`; op is
        add, max, min, append, union, remove, merge or set. A missing item starts as `{}`."""
        return self._wire.run(self._update(namespace, key, operations))

    async def aupdate(self, namespace: Namespace, key: str, *operations: Mapping[str, Any]) -> Item:
        """See update."""
        return await self._wire.arun(self._update(namespace, key, operations))

    def edit(
        self,
        namespace: Namespace,
        key: str,
        change: Callable[[Value], Value],
        *,
        attempts: int = 1000,
    ) -> Item:
        """Read an item (missing: `{}`), and write what `change` returns for it. If another writer was
        faster, repeat that, up to `attempts` times, then raise VersionConflict."""
        return self._wire.run(self._edit(namespace, key, change, attempts))

    async def aedit(
        self,
        namespace: Namespace,
        key: str,
        change: Callable[[Value], Value],
        *,
        attempts: int = 1000,
    ) -> Item:
        """See edit."""
        return await self._wire.arun(self._edit(namespace, key, change, attempts))

    # Plans ---------------------------------------------------------------------------------------

    def _batch(self, ops: Sequence[Op]) -> Plan[list[Result]]:
        for op in ops:
            _check(op)
        results: list[Result] = [None] * len(ops)
        puts: dict[str, dict[str, Any]] = {}
        gets: dict[int, GetOp] = {}
        used: dict[str, Entry | EntryRow] = {}
        for position, op in enumerate(ops):
            if isinstance(op, GetOp):
                gets[position] = op
            elif isinstance(op, PutOp):
                key = _key(op.namespace, op.key)
                puts.pop(key, None)
                puts[key] = self._put(key, op)
            elif isinstance(op, SearchOp):
                found = yield from self._search(op)
                results[position] = [_item(entry, SearchItem) for entry in found]
                if op.refresh_ttl:
                    used |= {entry.key: entry for entry in found}
            elif isinstance(op, ListNamespacesOp):
                results[position] = yield from self._list_namespaces(op)
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
        entries = yield from read_entries(
            self._name, {_key(op.namespace, op.key) for op in gets.values()}
        )
        for position, op in gets.items():
            if entry := entries.get(_key(op.namespace, op.key)):
                results[position] = _item(entry, Item)
                if op.refresh_ttl:
                    used[entry.key] = entry
        yield from self._refresh(
            entry for key, entry in used.items() if entry.expires_at and key not in puts
        )
        for chunk in _chunks(list(puts.values())):
            yield run_batch(chunk, minimal=True)
        return results

    def _put(self, key: str, op: PutOp) -> dict[str, Any]:
        address = {"namespace": self._name, "key": key}
        if op.value is None:
            return {"op": "delete", **address}
        value: Any = op.value
        if not isinstance(value, Mapping):
            raise InvalidArgument(f"value must be a dict, not {type(value).__name__}")
        put = {"op": "put", **address, "value": dict(value)}
        return put if op.ttl is None else {**put, "ttl_seconds": _seconds(op.ttl)}

    def _search(self, op: SearchOp) -> Plan[list[EntryRow]]:
        found: list[EntryRow] = []
        call = list_entries(
            self._name, prefix=_prefix(op.namespace_prefix), values=True, limit=_PAGE
        )
        if not op.filter:
            call = replace(call, query={**call.query, "limit": min(_PAGE, op.offset + op.limit)})
        end = op.offset + op.limit
        while len(found) < end:
            page = yield call
            found += [
                entry
                for entry in page
                if isinstance(entry.value, dict) and _matches_condition(entry.value, op.filter)
            ]
            if page.next_cursor is None:
                break
            call = replace(call, query={**call.query, "cursor": page.next_cursor, "limit": _PAGE})
        return found[op.offset : end]

    def _list_namespaces(self, op: ListNamespacesOp) -> Plan[list[Namespace]]:
        conditions = op.match_conditions or ()
        found: set[Namespace] = set()
        call = list_entries(self._name, prefix=_prefix(_common(conditions)), limit=_PAGE)
        while True:
            page = yield call
            for entry in page:
                namespace, _ = _address(entry.key)
                if all(_matches(condition, namespace) for condition in conditions):
                    found.add(namespace[: op.max_depth])
            if page.next_cursor is None:
                return sorted(found)[op.offset : op.offset + op.limit]
            call = replace(call, query={**call.query, "cursor": page.next_cursor})

    def _refresh(self, entries: Iterable[Entry | EntryRow]) -> Plan[None]:
        """Extend the time to live of the items that were read, unless they were written
        meanwhile."""
        operations = [
            {
                "op": "put",
                "namespace": self._name,
                "key": entry.key,
                "value": entry.value,
                "if_version": entry.version,
                "ttl_seconds": _lifetime(entry),
            }
            for entry in entries
        ]
        for chunk in split_batches(operations, size_of):
            yield run_batch(chunk, atomic=False, reason="read")

    def _update(
        self, namespace: Namespace, key: str, operations: Sequence[Mapping[str, Any]]
    ) -> Plan[Item]:
        entry = yield update_entry(self._name, _checked(namespace, key), *operations)
        return _item(entry, Item)

    def _edit(
        self, namespace: Namespace, key: str, change: Callable[[Value], Value], attempts: int
    ) -> Plan[Item]:
        address = _checked(namespace, key)
        for attempt in range(attempts):
            entry = yield get_entry(self._name, address)
            value = change(entry.value if entry.exists else {})
            try:
                written = yield put_entry(
                    self._name,
                    address,
                    value,
                    if_version=entry.version if entry.exists else 0,
                    ttl_seconds=_lifetime(entry),
                )
            except VersionConflict:
                if attempt == attempts - 1:
                    raise
                yield Sleep(random.uniform(0, min(1.0, 0.01 * 2.0**attempt)))
            else:
                return _item(written, Item)
        raise InvalidArgument("attempts must be at least 1")


def _check(op: Any) -> None:
    """Raises InvalidArgument, or LangGraph's InvalidNamespaceError."""
    for member in ("namespace", "namespace_prefix"):
        if isinstance(text := getattr(op, member, None), str):
            raise InvalidArgument(f"{member} must be a tuple of str, such as ({text!r},)")
    if isinstance(op, SearchOp | ListNamespacesOp) and min(op.limit, op.offset) < 0:
        raise InvalidArgument("limit and offset must be at least 0")
    validate_op_namespace(op)


def _key(namespace: Namespace, key: str) -> str:
    path = "/".join(escape(arguments.text("key", each)) for each in (*namespace, key))
    if len(path.encode()) > MAX_KEY_BYTES:
        raise InvalidArgument(
            f"namespace and key take more than {MAX_KEY_BYTES} bytes: {path[:80]}…"
        )
    return path


def _checked(namespace: Namespace, key: str) -> str:
    _check(GetOp(namespace, key))
    return _key(namespace, key)


def _prefix(labels: Sequence[str]) -> str | None:
    return "".join(escape(each) + "/" for each in labels) or None


def _address(key: str) -> tuple[Namespace, str]:
    *labels, last = (unquote(each) for each in key.split("/"))
    return tuple(labels), last


def _item(entry: Entry | EntryRow, kind: type[Item]) -> Any:
    namespace, key = _address(entry.key)
    return kind(
        namespace=namespace,
        key=key,
        value=entry.value,
        # Null only for an entry that does not exist, and for a past version.
        created_at=cast(datetime, entry.created_at),
        updated_at=cast(datetime, entry.updated_at),
    )


def _seconds(minutes: float) -> int:
    return max(1, math.ceil(arguments.duration("ttl", minutes, "minutes") * 60))


def _lifetime(entry: EntryFacts) -> int | None:
    """The time to live that was set last, in seconds."""
    if entry.expires_at is None or entry.updated_at is None:
        return None
    return max(1, round((entry.expires_at - entry.updated_at).total_seconds()))


def _chunks(operations: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    for at in range(0, len(operations), MOST_OPERATIONS):
        yield operations[at : at + MOST_OPERATIONS]


# Conditions, with the meaning that they have in LangGraph ----------------------------------------------------------------


def _matches_condition(value: Value, condition: Mapping[str, Any] | None) -> bool:
    return all(_equals(value.get(name), each) for name, each in (condition or {}).items())


def _equals(value: Any, condition: Any) -> bool:
    if isinstance(condition, dict):
        if any(name.startswith("$") for name in condition):
            return all(_compares(value, operator, than) for operator, than in condition.items())
        return isinstance(value, dict) and _matches_condition(value, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(map(_equals, value, condition))
        )
    return bool(value == condition)


def _compares(value: Any, operator: str, than: Any) -> bool:
    if operator == "$eq":
        return bool(value == than)
    if operator == "$ne":
        return bool(value != than)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {operator}")
    # Compared as numbers, not as strings: "10" is greater than "9". Other values are not
    # comparable.
    left, right = _number(value), float(than)
    if left is None:
        return False
    if operator == "$gt":
        return left > right
    if operator == "$gte":
        return left >= right
    return left < right if operator == "$lt" else left <= right


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _common(conditions: Iterable[MatchCondition]) -> Sequence[str]:
    """The labels with which all namespaces begin, up to the first wildcard."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = list(condition.path)
            return path[: path.index("*")] if "*" in path else path
    return ()


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)]
    return all(expected in ("*", label) for expected, label in zip(path, part, strict=True))
