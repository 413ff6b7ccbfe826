"""Calls on the change feed, without following it: `watch` in changes.py does that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from commonhold import arguments
from commonhold.answers import Change
from commonhold.calls import Call, given, polling
from commonhold.keys import Key, Where, name_of
from commonhold.reading import Page, page_of


class Filters(TypedDict, total=False):
    """Filters of the change feed. A change must match all of them. `prefix` is of the key."""

    namespace: Where
    key: Key
    prefix: str
    thread_id: str
    run_id: str
    kind: str


def query_of(filters: Filters) -> dict[str, str]:
    """The filters as query parameters."""
    namespace = filters.get("namespace")
    if namespace is not None:
        filters = {**filters, "namespace": name_of(namespace)}
    sought: Mapping[str, Any] = filters
    return {name: arguments.parameter(name, value) for name, value in given(**sought).items()}


def list_changes(
    *,
    cursor: str | None = None,
    wait: float = 0,
    limit: int | None = None,
    **filters: Unpack[Filters],
) -> Call[Page[Change]]:
    """A page of the feed after `cursor`. `next_cursor` is always present: continue with it. `every`
    would never end, and not pause: to follow the feed, use `watch`."""
    query = query_of(filters) | given(cursor=cursor, wait=polling(wait), limit=limit)
    return Call("GET", "/changes", page_of(Change.read), query, wait=wait)
