"""Calls on entries. A namespace is a name or a ProfileKey, a key a str or a StateScope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar, Unpack

from commonhold import arguments
from commonhold.answers import (
    Attribution,
    AuditRow,
    BatchResult,
    Diff,
    Entry,
    EntryReader,
    EntryRow,
    EntryVersion,
    Hit,
    Me,
    Redaction,
    Restoration,
    Usage,
)
from commonhold.calls import Call, Listing, given, if_match, polling, segment
from commonhold.feed import list_changes
from commonhold.keys import Key, Where, name_of
from commonhold.problems import InvalidArgument
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb

PatchKind: TypeAlias = Literal["merge", "json", "update"]
T = TypeVar("T")

# The limits of a batch: operations, and bytes, of which a request has at most 8 MiB.
MOST_OPERATIONS: Final = 1000
_MOST_SENT: Final = 7 * 1024 * 1024
# For writes: requests a response without the value (RFC 7240).
MINIMAL: Final = {"Prefer": "return=minimal"}
_MEDIA: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "update": "application/vnd.commonhold.update+json",
}


def namespace_segment(namespace: Where) -> str:
    """A namespace as one segment of a path."""
    return segment("namespace", name_of(namespace))


def _key(key: Key) -> str:
    return segment("key", key)


def _path(verb: str, namespace: Where, key: Key) -> str:
    return f"/{verb}/{namespace_segment(namespace)}/{_key(key)}"


def guard(
    if_version: int | None, reason: str, if_changed: bool = False, **others: str | None
) -> dict[str, str | None]:
    """The headers of a write. `if_version` 0: only if it does not exist."""
    changed = "true" if if_changed else None
    return {**if_match("if_version", if_version, reason), "If-Changed": changed, **others}


def get_entry(
    namespace: Where,
    key: Key,
    *,
    at_version: int | None = None,
    at: datetime | None = None,
    wait: float = 0,
    since: int | None = None,
) -> Call[Entry]:
    """Read an entry. One that does not exist has the default and version 0. `at_version`, `at`: the
    entry as of that version or time. `wait`: wait up to so many seconds (at most 30) for a version
    greater than `since`."""
    query = given(at_version=at_version, at=at, since=since, wait=polling(wait))
    path = _path("state", namespace, key)
    same = {"op": "get", "namespace": name_of(namespace), "key": arguments.name("key", key)}
    operation = None if query else same
    return Call("GET", path, Entry.read, query, wait=wait, operation=operation)


def put_entry(
    namespace: Where,
    key: Key,
    value: Any,
    *,
    if_version: int | None = None,
    merge: bool = False,
    if_changed: bool = False,
    ttl_seconds: int | None = None,
    tags: Sequence[str] | None = None,
    pinned: bool | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Entry]:
    """Write the whole value. `if_version`: the version to replace (0: only if the entry does not
    exist); raises VersionConflict for another one. With `merge`, the server merges changes that do
    not conflict, over version 0 those since the default. `if_changed`: an equal value creates no
    version. With `dry_run` only check and return what would be stored."""
    tagged = None if tags is None else arguments.texts("tags", tags)
    body = {"value": value, **given(ttl_seconds=ttl_seconds, tags=tagged, pinned=pinned)}
    merging = {"On-Conflict": "merge" if merge else None}
    return Call(
        "PUT",
        _path("state", namespace, key),
        Entry.read,
        given(dry_run=dry_run or None),
        body=body,
        headers=guard(if_version, reason, if_changed, **merging),
    )


def patch_entry(
    namespace: Where,
    key: Key,
    patch: Any,
    *,
    kind: PatchKind | None = None,
    if_version: int | None = None,
    if_changed: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Entry]:
    """Change a part of the value on the server, which locks the entry meanwhile. `kind` is "merge" (a
    merge patch, RFC 7396; the default), "json" (a JSON Patch, RFC 6902) or "update" (operations such as
    {"op": "add", "path": "/n", "value": 1}). It is required for a patch that is an array, or an object
    with "op" and "path"."""
    if kind is None:
        kind = _default_kind(patch)
    elif kind not in _MEDIA:
        raise InvalidArgument(f"kind must be one of {', '.join(_MEDIA)}, not {kind!r}")
    return Call(
        "PATCH",
        _path("state", namespace, key),
        Entry.read,
        given(dry_run=dry_run or None),
        body=patch,
        headers=guard(if_version, reason, if_changed),
        media_type=_MEDIA[kind],
    )


def _default_kind(patch: Any) -> PatchKind:
    """Return "merge". Raises InvalidArgument if the patch looks like operations: a merge patch would store
    them in the value, or replace it by them."""
    is_operation = isinstance(patch, Mapping) and {"op", "path"} <= patch.keys()
    if is_operation or isinstance(patch, list | tuple):
        raise InvalidArgument(
            "kind is required for this patch, because it looks like operations: send kind='update'"
            " (as update() does), kind='json' for a JSON Patch, or kind='merge' for a merge patch"
        )
    return "merge"


def update_entry(
    namespace: Where,
    key: Key,
    *operations: Mapping[str, Any],
    if_version: int | None = None,
    if_changed: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Entry]:
    """Change parts of the value on the server, in one step. `op` is add, max, min, append, union,
    remove, merge or set; `path` is a JSON Pointer."""
    if not operations:
        raise InvalidArgument("operations must not be empty: update(namespace, key, {…}, {…})")
    sent = arguments.objects("operations", operations)
    return patch_entry(
        namespace,
        key,
        sent,
        kind="update",
        if_version=if_version,
        if_changed=if_changed,
        dry_run=dry_run,
        reason=reason,
    )


def delete_entry(
    namespace: Where,
    key: Key,
    *,
    if_version: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any] | None]:
    """Delete an entry. Deleting it again changes nothing. History and the version counter are kept. With `dry_run`
    only count: `{matched, deleted}`."""
    return Call(
        "DELETE",
        _path("state", namespace, key),
        lambda document: document,
        given(dry_run=dry_run or None),
        headers=guard(if_version, reason),
    )


def list_entries(
    namespace: Where,
    *,
    prefix: str | None = None,
    scope_kind: str | None = None,
    updated_since: datetime | None = None,
    tag: str | Sequence[str] | None = None,
    tags: str | None = None,
    valid: bool | None = None,
    values: bool = False,
    before: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[EntryRow]]:
    """Entries of a namespace, by key; with `values` the values too. `order` "desc": from the last
    key; `before`: only keys below it. `tag`: only entries with this tag or, of a list, with all of these;
    `tags` are the same, separated by commas."""
    query = given(
        prefix=prefix,
        scope_kind=scope_kind,
        updated_since=updated_since,
        tag=_tag(tag),
        tags=tags,
        valid=valid,
        include="value" if values else None,
        before=before,
        **page,
    )
    return Call("GET", f"/state/{namespace_segment(namespace)}", page_of(EntryRow.read), query)


def list_state(
    *,
    prefix: str | None = None,
    scope_kind: str | None = None,
    updated_since: datetime | None = None,
    tag: str | Sequence[str] | None = None,
    tags: str | None = None,
    valid: bool | None = None,
    plugin: str | None = None,
    values: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
) -> Call[Page[EntryRow]]:
    """Entries of all namespaces, unregistered ones too, by namespace and key. The filters are those of
    `list`; `plugin`: only namespaces of this plugin. With filters, a page may have fewer items than `limit`, or none:
    use `every`."""
    query = given(
        prefix=prefix,
        scope_kind=scope_kind,
        updated_since=updated_since,
        tag=_tag(tag),
        tags=tags,
        valid=valid,
        plugin=plugin,
        include="value" if values else None,
        limit=limit,
        cursor=cursor,
        created_after=created_after,
        created_before=created_before,
    )
    return Call("GET", "/state", page_of(EntryRow.read), query)


def _tag(tag: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    return tag if tag is None or isinstance(tag, str) else tuple(arguments.texts("tag", tag))


def list_key(key: Key, *, values: bool = False, **page: Unpack[Listing]) -> Call[Page[EntryRow]]:
    """Everything under one key over all namespaces, unregistered ones too."""
    query = given(include="value" if values else None, **page)
    return Call("GET", f"/keys/{_key(key)}", page_of(EntryRow.read), query)


def clear_key(key: Key, *, dry_run: bool = False, reason: str = "") -> Call[dict[str, Any]]:
    """Delete everything under one key: `{matched, deleted}`. With `dry_run` only count."""
    return Call(
        "DELETE",
        f"/keys/{_key(key)}",
        dict,
        {"dry_run": dry_run},
        headers={"Change-Reason": reason},
    )


def clear_entries(
    namespace: Where,
    *,
    prefix: str | None = None,
    scope_kind: str | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any]]:
    """Delete every entry of a namespace, or those whose key begins with `prefix` or has this scope, all or
    none, up to 100,000: `{matched, deleted}`. With `limit`, at most that many: repeat until `deleted` is 0.
    With `dry_run` only count."""
    return Call(
        "DELETE",
        f"/state/{namespace_segment(namespace)}",
        dict,
        {"dry_run": dry_run, **given(prefix=prefix, scope_kind=scope_kind, limit=limit)},
        headers={"Change-Reason": reason},
    )


def clear_state(
    *,
    prefix: str | None = None,
    scope_kind: str | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[dict[str, Any]]:
    """Delete the entries of all namespaces, unregistered ones too, whose key begins with `prefix` or has this
    scope; one of them is required. Otherwise as `clear`."""
    return Call(
        "DELETE",
        "/state",
        dict,
        {"dry_run": dry_run, **given(prefix=prefix, scope_kind=scope_kind, limit=limit)},
        headers={"Change-Reason": reason},
    )


def read_history(
    namespace: Where,
    key: Key,
    *,
    values: bool = False,
    **page: Unpack[Listing],
) -> Call[Page[EntryVersion]]:
    """Every kept version, newest first."""
    query = given(include="value" if values else None, **page)
    return Call("GET", _path("history", namespace, key), page_of(EntryVersion.read), query)


def pin_version(
    namespace: Where, key: Key, version: int, *, pinned: bool = True, reason: str = ""
) -> Call[EntryVersion]:
    """Pin a version, so that history compaction keeps it; `pinned=False` removes the pin."""
    return Call(
        "PATCH",
        _path("history", namespace, key),
        EntryVersion.read,
        body={"version": version, "pinned": pinned},
        headers={"Change-Reason": reason},
    )


def diff_entry(namespace: Where, key: Key, old: int, new: int) -> Call[Diff]:
    """What changed from version `old` to version `new`."""
    return Call("GET", _path("diff", namespace, key), Diff.read, {"from": old, "to": new})


def restore_entry(
    namespace: Where,
    key: Key,
    version: int,
    *,
    if_version: int | None = None,
    if_changed: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Entry]:
    """Write a new version equal to an old one."""
    return Call(
        "POST",
        _path("restore", namespace, key),
        Entry.read,
        given(dry_run=dry_run or None),
        body={"version": version},
        headers=guard(if_version, reason, if_changed),
    )


def blame_entry(namespace: Where, key: Key) -> Call[Page[Attribution]]:
    """Who set each part of the current value, in which version and run: one item for each part, all on one
    page. What history compaction removed is attributed to the oldest kept version."""
    return Call("GET", _path("blame", namespace, key), page_of(Attribution.read))


def list_readers(
    namespace: Where,
    key: Key,
    *,
    version: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[EntryReader]]:
    """The steps of runs that reported the entry in `reads` of a commit, the newest version first.
    `version`: only reads of that version (0: of its absence)."""
    query = given(version=arguments.version("version", version), limit=limit, cursor=cursor)
    return Call("GET", _path("reads", namespace, key), page_of(EntryReader.read), query)


def restore_entries(
    *,
    at: datetime,
    namespace: Where | None = None,
    key: Key | None = None,
    prefix: str | None = None,
    scope_kind: str | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Restoration]:
    """Give the entries that all filters select, one of which is required, the values that they had at the
    time `at`, as new versions: all of them or none, at most 10,000 entries that were written since
    (`reverts.request` takes any number). Entries that did not exist then are deleted. Those whose old value is not kept, or does not satisfy the current
    schema, are left as they are and counted in `refused`. With `dry_run` only count."""
    entries = selection(namespace, key, prefix, scope_kind)
    return Call(
        "POST",
        "/restore",
        Restoration.read,
        given(dry_run=dry_run or None),
        body={"at": arguments.parameter("at", at), **entries},
        headers={"Change-Reason": reason},
    )


def selection(
    namespace: Where | None, key: Key | None, prefix: str | None, scope_kind: str | None
) -> dict[str, Any]:
    """The members of a body that select entries."""
    return given(
        namespace=None if namespace is None else name_of(namespace),
        key=None if key is None else arguments.name("key", key),
        prefix=prefix,
        scope_kind=scope_kind,
    )


def redact_entry(
    namespace: Where,
    key: Key,
    *,
    reason: str,
    pointers: Sequence[str] | None = None,
    dry_run: bool = False,
) -> Call[Redaction]:
    """Remove the parts at `pointers`, or the whole value, from every version, permanently.
    `{"$redacted": true}` takes their place. With `dry_run` only count. Needs the role admin. Raises Invalid if
    a pointer leads to nothing in all versions, NotFound if there was no such entry."""
    body = given(
        reason=arguments.name("reason", reason),
        pointers=None if pointers is None else arguments.texts("pointers", pointers),
        versions="all",
    )
    query = given(dry_run=dry_run or None)
    return Call("POST", _path("redact", namespace, key), Redaction.read, query, body=body)


def run_batch(
    operations: Sequence[Mapping[str, Any]],
    *,
    atomic: bool = True,
    minimal: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Call[list[BatchResult]]:
    """1 to 1,000 operations: {"op": "get"|"put"|"patch"|"delete", "namespace", "key", "value"?,
    "patch"?, "patch_type"?, "if_version"?, …}. With `atomic`, all are stored, or none is and the
    Problem names the first that failed (`index`).
    `minimal`: the results of writes have only the new version, not the entry."""
    sent = arguments.objects("operations", operations)
    return Call(
        "POST",
        "/state/batch",
        lambda document: [BatchResult.read(each) for each in document["results"]],
        given(dry_run=dry_run or None),
        body={"atomic": atomic, "operations": sent},
        headers={"Change-Reason": reason, **(MINIMAL if minimal else {})},
        # Reads are safe to repeat.
        keyed=any(each.get("op") != "get" for each in sent),
    )


def split_batches(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Batches in order, each within the limits of a request. `size_of`: the bytes that an item needs."""
    chunk: list[T] = []
    size = 0
    for item in items:
        weight = size_of(item)
        if chunk and (size + weight > _MOST_SENT or len(chunk) == MOST_OPERATIONS):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += weight
    if chunk:
        yield chunk


def search_entries(
    text: str | None = None,
    *,
    where: Sequence[Mapping[str, Any]] | None = None,
    namespace: Where | None = None,
    prefix: str | None = None,
    scope_kind: str | None = None,
    values: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[Hit]]:
    """Current entries whose keys or values contain the words and "phrases" of `text` and that meet its conditions,
    such as `/price > 100`, and those of `where`: `{"path": "/price", "operator": ">", "value": 100}`
    or `{"path": "/status", "equals": "open"}`. `matches` of each says where."""
    body = given(
        text=text,
        where=where,
        namespace=None if namespace is None else name_of(namespace),
        prefix=prefix,
        scope_kind=scope_kind,
        include="value" if values else None,
        limit=limit,
        cursor=cursor,
    )
    return Call("POST", "/search", page_of(Hit.read), body=body, keyed=False)


def read_me() -> Call[Me]:
    """The token of the client, and its permissions."""
    return Call("GET", "/me", Me.read)


def read_usage() -> Call[Usage]:
    """How much the workspace holds, as a worker measured it at `measured_at`, and its quotas."""
    return Call("GET", "/usage", Usage.read)


def list_audit(
    *,
    namespace: Where | None = None,
    key: Key | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    action: str | None = None,
    request_id: str | None = None,
    actor: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[AuditRow]]:
    """Every write of the workspace, the newest first. `action` may be a glob, such as "entry.*". With
    filters, a page may have fewer items than `limit`, or none: use `every`. Needs the role admin."""
    query = given(
        namespace=None if namespace is None else name_of(namespace),
        key=key,
        thread_id=thread_id,
        run_id=run_id,
        action=action,
        request_id=request_id,
        actor=actor,
        **page,
    )
    return Call("GET", "/audit", page_of(AuditRow.read), query)


class Entries(Group[S]):
    """The methods of the client itself."""

    get = Verb(get_entry)
    put = Verb(put_entry)
    patch = Verb(patch_entry)
    update = Verb(update_entry)
    delete = Verb(delete_entry)
    list = Verb(list_entries)
    list_all = Verb(list_state)
    list_key = Verb(list_key)
    clear_key = Verb(clear_key)
    clear = Verb(clear_entries)
    clear_all = Verb(clear_state)
    history = Verb(read_history)
    pin_version = Verb(pin_version)
    diff = Verb(diff_entry)
    blame = Verb(blame_entry)
    readers = Verb(list_readers)
    restore = Verb(restore_entry)
    restore_entries = Verb(restore_entries)
    redact = Verb(redact_entry)
    batch = Verb(run_batch)
    search = Verb(search_entries)
    changes = Verb(list_changes)
    audit = Verb(list_audit)
    me = Verb(read_me)
    usage = Verb(read_usage)
