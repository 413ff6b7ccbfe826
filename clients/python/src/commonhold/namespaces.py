"""Calls on namespaces. A namespace is a name or a ProfileKey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Unpack

from commonhold.answers import Compaction, HistoryPreview, Namespace
from commonhold.calls import NOTHING, Call, Listing, given
from commonhold.entries import guard, namespace_segment
from commonhold.keys import Where
from commonhold.problems import Forbidden, NotRegistered
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb


def list_namespaces(
    *, prefix: str | None = None, plugin: str | None = None, **page: Unpack[Listing]
) -> Call[Page[Namespace]]:
    """Registered namespaces, by name: all, or only those of a plugin."""
    return Call(
        "GET",
        "/namespaces",
        page_of(Namespace.read),
        given(prefix=prefix, plugin=plugin, **page),
    )


def get_namespace(namespace: Where) -> Call[Namespace]:
    """One namespace, with its schema, default and settings. Raises NotRegistered."""
    return Call("GET", f"/namespaces/{namespace_segment(namespace)}", Namespace.read)


@contextmanager
def registering(missing: NotRegistered) -> Iterator[None]:
    """Around the registration of the namespace that a call needs. Raises NotRegistered if the token
    may not register it: Forbidden would name a role that the call itself does not need."""
    try:
        yield
    except Forbidden as refused:
        hint = (
            "This token may not register the namespace. Register it once with a token of the role admin. "
            "If it is registered, check the spelling, the workspace of the token and the token's limits."
        )
        raise NotRegistered({**missing.document, "hint": hint}) from refused


def register_namespace(
    name: Where,
    *,
    schema: Any = None,
    default: Any = NOTHING,
    description: str | None = None,
    plugin: str | None = None,
    ttl_seconds: int | None = None,
    max_value_bytes: int | None = None,
    history: Mapping[str, int | None] | None = None,
    tracked: bool | None = None,
    replace: bool = False,
    if_version: int | None = None,
    reason: str = "",
) -> Call[Namespace]:
    """Register, or accept what is registered, unchanged, if its schema and default are compatible:
    the same except for optional fields; else SchemaConflict. The other settings are used only when
    the namespace is created. With `replace` everything is replaced, and the last of several programs
    wins; `if_version` is the schema version to replace (0: not registered), else VersionConflict."""
    body = given(
        schema=schema,
        description=description,
        plugin=plugin,
        ttl_seconds=ttl_seconds,
        max_value_bytes=max_value_bytes,
        history=history,
        tracked=tracked,
    )
    if default is not NOTHING:
        body["default"] = default
    path = f"/namespaces/{namespace_segment(name)}"
    query = {} if replace else {"if_exists": "accept"}
    headers = guard(if_version, reason)
    return Call("PUT", path, Namespace.read, query, body=body, headers=headers)


def unregister_namespace(
    namespace: Where,
    *,
    entries: Literal["retain", "delete"] | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any] | None]:
    """Unregister. `entries` is required if there are live ones: "delete" deletes them, "retain" keeps them, but they
    cannot be read until the name is registered again. With `dry_run` only count."""
    return Call(
        "DELETE",
        f"/namespaces/{namespace_segment(namespace)}",
        lambda document: document,
        given(entries=entries, dry_run=dry_run or None),
        headers={"Change-Reason": reason},
    )


def preview_history_compaction(namespace: Where) -> Call[HistoryPreview]:
    """How many versions the entries of the namespace have, and how many a history compaction would remove
    now. Sizes are in bytes."""
    return Call(
        "GET", f"/namespaces/{namespace_segment(namespace)}/compactions", HistoryPreview.read
    )


def request_history_compaction(namespace: Where, *, reason: str = "") -> Call[Compaction]:
    """Remove the versions that the `history` of the namespace does not retain. They cannot be restored.
    A worker does it: read `compactions.get(id)` until `finished_at` is set. Needs the role admin."""
    return Call(
        "POST",
        f"/namespaces/{namespace_segment(namespace)}/compactions",
        Compaction.read,
        headers={"Change-Reason": reason},
    )


class Namespaces(Group[S]):
    """The namespaces of the workspace, each with its schema and default value."""

    list = Verb(list_namespaces)
    get = Verb(get_namespace)
    register = Verb(register_namespace)
    unregister = Verb(unregister_namespace)
    preview_compaction = Verb(preview_history_compaction)
    compact = Verb(request_history_compaction)
