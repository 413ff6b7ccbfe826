"""URLs of pages about entries, threads, runs and tickets. Keys may contain any character except
control characters. Django's `reverse` does not escape `/` and dots, so that a browser would
normalize keys such as `a/../b` and `.`; these functions escape them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from django.http import QueryDict
from django.urls import get_script_prefix

# Safe in a path segment; not escaped, so that URLs such as `thread::t1` remain readable.
_SAFE = ":@~!$'()*,;="

Query = str | int | None


def entry_url(namespace: str, key: str, **query: Query) -> str:
    """The page of one entry: `/state/<namespace>/<key>`."""
    return _url("state", namespace, key, query)


def entry_action_url(action: str, namespace: str, key: str, **query: Query) -> str:
    """The URL of an action on an entry: `/entry/<action>/<namespace>/<key>`."""
    return _url(f"entry/{action}", namespace, key, query)


def namespace_url(name: str, action: str = "", **query: Query) -> str:
    """The page of a namespace. Its name is never `.` or `..`; the name grammar excludes both."""
    path = f"{get_script_prefix()}namespaces/{quote(name, safe=_SAFE)}"
    return with_query(f"{path}/{action}" if action else path, **query)


def with_query(path: str, /, **query: Query) -> str:
    """`path` with the query parameters whose values are neither empty nor zero."""
    kept = {name: value for name, value in query.items() if value}
    return f"{path}{'&' if '?' in path else '?'}{urlencode(kept)}" if kept else path


def list_url_of(query: QueryDict, homes: Sequence[str]) -> str:
    """The parameter `back`: the URL of a list, with its filters. `homes` are the URLs of possible lists;
    the first one replaces any other URL."""
    url = query.get("back", "")
    is_list = any(url == home or url.startswith(f"{home}?") for home in homes)
    return url if is_list else homes[0]


def _url(root: str, namespace: str, key: str, query: dict[str, Query]) -> str:
    path = f"{get_script_prefix()}{root}/{quote(namespace, safe=_SAFE)}/"
    if key in (".", ".."):  # browsers remove these segments from a path, even percent-encoded
        return with_query(path, **query, key=key)
    return with_query(path + quote(key, safe=_SAFE), **query)


def thread_url(thread_id: str, **query: Query) -> str:
    """The page of a thread: `/threads/<id>`; tab, revision and messages are in the query."""
    return _id_url("threads", thread_id, query)


def thread_action_url(action: str, thread_id: str, **query: Query) -> str:
    """The URL of an action on a thread: `/thread/<action>/<id>`."""
    return _id_url(f"thread/{action}", thread_id, query)


def run_url(run_id: str, **query: Query) -> str:
    """The page of a run: `/runs/<id>`."""
    return _id_url("runs", run_id, query)


def run_action_url(action: str, run_id: str, **query: Query) -> str:
    """The URL of an action on a run: `/run/<action>/<id>`."""
    return _id_url(f"run/{action}", run_id, query)


def ticket_url(ticket_id: str) -> str:
    """The page of a ticket, where it is decided: `/ticket/<id>`."""
    return _id_url("ticket", ticket_id, {})


def _id_url(root: str, public_id: str, query: dict[str, Query]) -> str:
    path = f"{get_script_prefix()}{root}/"
    # Zero is a valid revision and count here, so it must not be dropped.
    query = {name: str(value) for name, value in query.items() if value is not None}
    return with_query(path + quote(public_id, safe=_SAFE), **query)
