"""Calls on threads: their messages, their state and its revisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

from commonhold import arguments
from commonhold.answers import (
    Appended,
    Compaction,
    CompactionPreview,
    Context,
    Diff,
    ItemResult,
    Lineage,
    Message,
    Snapshot,
    SnapshotPreview,
    Thread,
)
from commonhold.calls import NOTHING, Call, JsonObject, Listing, given, if_match, segment
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb


def thread_path(thread_id: str, verb: str = "") -> str:
    return f"/threads/{segment('thread_id', thread_id)}{verb}"


def create_thread(
    thread_id: str | None = None,
    *,
    title: str | None = None,
    metadata: JsonObject | None = None,
    resource_id: str | None = None,
    parent_thread_id: str | None = None,
    compaction_policy: JsonObject | None = None,
    reason: str = "",
) -> Call[Thread]:
    """Create a thread. A repetition returns the stored one; other content raises Conflict."""
    body = given(
        id=thread_id,
        title=title,
        metadata=metadata,
        resource_id=resource_id,
        parent_thread_id=parent_thread_id,
        compaction_policy=compaction_policy,
    )
    return Call("POST", "/threads", Thread.read, body=body, headers={"Change-Reason": reason})


def read_thread(thread_id: str) -> Call[Thread]:
    """One thread, without its messages and state. Raises NotFound if it does not exist or the token
    has no access to it."""
    return Call("GET", thread_path(thread_id), Thread.read)


def list_threads(
    *,
    text: str | None = None,
    prefix: str | None = None,
    resource_id: str | None = None,
    parent_thread_id: str | None = None,
    root: bool | None = None,
    forked_from: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Thread]]:
    """Threads, the newest first. `text`: words of the title; `prefix` is of the id; `root`: only threads
    without a parent."""
    query = given(
        text=text,
        prefix=prefix,
        resource_id=resource_id,
        parent_thread_id=parent_thread_id,
        root=root,
        forked_from=forked_from,
        **page,
    )
    return Call("GET", "/threads", page_of(Thread.read), query)


def change_thread(
    thread_id: str,
    *,
    title: str | None = None,
    metadata: JsonObject | None = None,
    merge: bool = False,
    resource_id: str | None = None,
    parent_thread_id: str | None = NOTHING,
    compaction_policy: JsonObject | None = None,
    if_version: int | None = None,
    reason: str = "",
) -> Call[Thread]:
    """Change the given fields. `merge`: `metadata` and `compaction_policy` merge with what is stored, and
    None removes a member (RFC 7396); without it, they replace all of it. `parent_thread_id`: None makes it a
    thread without a parent. `if_version`: raises VersionConflict if the thread is not at that version."""
    body = given(
        title=title,
        metadata=metadata,
        resource_id=resource_id,
        compaction_policy=compaction_policy,
    )
    if parent_thread_id is not NOTHING:
        body["parent_thread_id"] = parent_thread_id
    return Call(
        "PATCH",
        thread_path(thread_id),
        Thread.read,
        body=body,
        headers=if_match("if_version", if_version, reason),
        media_type="application/merge-patch+json" if merge else "application/json",
    )


def delete_thread(
    thread_id: str,
    *,
    children: Literal["detach", "reject", "cascade"] | None = None,
    dry_run: bool = False,
    if_version: int | None = None,
    expected_revision: int | None = None,
    reason: str = "",
) -> Call[dict[str, Any] | None]:
    """Delete the thread with its messages, runs, state and the entries under `thread::{id}`; with
    `dry_run`, only count them. `if_version`, `expected_revision`: only if the thread is at that
    version, or its state at that revision."""
    query = given(children=children, dry_run=dry_run or None, expected_revision=expected_revision)
    return Call(
        "DELETE",
        thread_path(thread_id),
        lambda document: document,
        query,
        headers=if_match("if_version", if_version, reason),
    )


def item_results(document: dict[str, Any]) -> list[ItemResult]:
    return [ItemResult.read(each) for each in document["results"]]


def delete_threads(
    thread_ids: Iterable[str],
    *,
    children: Literal["detach", "reject", "cascade"] | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[list[ItemResult]]:
    """Delete up to 200 threads, independently of each other. Returns the result for each."""
    body = given(ids=arguments.texts("thread_ids", thread_ids), children=children)
    query = given(dry_run=dry_run or None)
    return Call(
        "POST", "/threads/delete", item_results, query, body=body, headers={"Change-Reason": reason}
    )


def fork_thread(
    thread_id: str,
    *,
    new_id: str | None = None,
    revision: int | None = None,
    message_count: int | None = None,
    title: str | None = None,
    metadata: JsonObject | None = None,
    reason: str = "",
) -> Call[Thread]:
    """A new thread from this one as of a revision and message count."""
    body = given(
        id=new_id, revision=revision, message_count=message_count, title=title, metadata=metadata
    )
    return Call(
        "POST",
        thread_path(thread_id, "/fork"),
        Thread.read,
        body=body,
        headers={"Change-Reason": reason},
    )


def append_messages(
    thread_id: str,
    *messages: JsonObject,
    expected_message_count: int | None = None,
    operations: Sequence[JsonObject] | None = None,
    if_revision: int | None = None,
    reason: str = "",
) -> Call[Appended]:
    """Append messages, which are stored unchanged. `expected_message_count`: only if the thread has that
    many. `operations` on entries, as those of `batch`, are stored together with the messages or not
    at all. `if_revision`: only if the state is at that revision."""
    body = given(
        messages=arguments.objects("messages", messages),
        expected_message_count=expected_message_count,
        operations=None if operations is None else arguments.objects("operations", operations),
    )
    return Call(
        "POST",
        thread_path(thread_id, "/messages"),
        Appended.read,
        body=body,
        headers=if_match("if_revision", if_revision, reason),
    )


def list_messages(
    thread_id: str,
    *,
    after: int | None = None,
    before: int | None = None,
    visibility: str | None = None,
    run_id: str | None = None,
    **page: Unpack[Listing],
) -> Call[Page[Message]]:
    """All messages, compacted ones and summaries included; for what a model should see, read the
    context. `after` and `before`: only those with a greater or smaller `seq`."""
    query = given(
        after=after,
        before=before,
        visibility=visibility,
        run_id=run_id,
        **page,
    )
    return Call("GET", thread_path(thread_id, "/messages"), page_of(Message.read), query)


def read_context(thread_id: str, *, max_tokens: int | None = None) -> Call[Context]:
    """The context that a model should see."""
    return Call(
        "GET", thread_path(thread_id, "/context"), Context.read, given(max_tokens=max_tokens)
    )


def read_state(
    thread_id: str,
    *,
    revision: int | None = None,
    scope: Literal["run", "thread"] | None = None,
    export: bool = False,
) -> Call[Snapshot]:
    """The state, now or at a retained revision. `export`: only registered keys that are
    persistent."""
    query = given(revision=revision, scope=scope, export=export or None)
    return Call("GET", thread_path(thread_id, "/state"), Snapshot.read, query)


def list_snapshots(thread_id: str, **page: Unpack[Listing]) -> Call[Page[dict[str, Any]]]:
    """The revisions of the state, the newest first: what each changed, by whom and why."""
    query = given(**page)
    return Call("GET", thread_path(thread_id, "/snapshots"), page_of(dict), query)


def mark_snapshot(
    thread_id: str,
    revision: int,
    *,
    label: str | None = None,
    pinned: bool | None = None,
    reason: str = "",
) -> Call[dict[str, Any]]:
    """Label or pin a revision: compaction keeps its state. `label=""` removes the label. Returns the revision,
    as `snapshots` lists it."""
    place = segment("revision", arguments.parameter("revision", revision))
    return Call(
        "PATCH",
        thread_path(thread_id, f"/snapshots/{place}"),
        dict,
        body=given(label=label, pinned=pinned),
        headers={"Change-Reason": reason},
    )


def read_lineage(thread_id: str) -> Call[Lineage]:
    """The ancestors of the thread, what it was copied from, and the number of its children and forks."""
    return Call("GET", thread_path(thread_id, "/lineage"), Lineage.read)


def diff_revisions(thread_id: str, old: int, new: int) -> Call[Diff]:
    """What changed in the state from revision `old` to revision `new`."""
    return Call("GET", thread_path(thread_id, "/diff"), Diff.read, {"from": old, "to": new})


def restore_revision(
    thread_id: str,
    revision: int,
    *,
    if_revision: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Snapshot]:
    """A new revision with the state of an old one. `if_revision`: only if the state is at that revision."""
    return Call(
        "POST",
        thread_path(thread_id, "/restore"),
        Snapshot.read,
        given(dry_run=dry_run or None),
        body={"revision": revision},
        headers=if_match("if_revision", if_revision, reason),
    )


def import_state(
    thread_id: str,
    snapshot: JsonObject,
    *,
    mode: Literal["replace", "merge"] | None = None,
    unknown_keys: Literal["error", "skip"] | None = None,
    if_revision: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Snapshot]:
    """Import `{"revision": n, "extensions": {…}}` as one new revision. `if_revision`: only if the state is at that revision."""
    body = given(snapshot=dict(snapshot), mode=mode, unknown_keys=unknown_keys)
    return Call(
        "POST",
        thread_path(thread_id, "/import"),
        Snapshot.read,
        given(dry_run=dry_run or None),
        body=body,
        headers=if_match("if_revision", if_revision, reason),
    )


def preview_compaction(
    thread_id: str, *, kind: Literal["context", "snapshot"] | None = None
) -> Call[CompactionPreview | SnapshotPreview]:
    """What a compaction would do now: a CompactionPreview of the context, whose sizes are in estimated
    tokens, or with `kind` "snapshot" a SnapshotPreview."""
    return Call(
        "GET",
        thread_path(thread_id, "/compactions"),
        SnapshotPreview.read if kind == "snapshot" else CompactionPreview.read,
        given(kind=kind),
    )


def request_compaction(
    thread_id: str, *, kind: Literal["context", "snapshot"] | None = None, reason: str = ""
) -> Call[Compaction]:
    """Summarize messages of the context, or with `kind` "snapshot" remove old snapshots, which cannot be
    undone and needs the role admin. A worker does it: read `compactions.get(id)` until `finished_at` is set.
    If a compaction of this kind is queued or running already, that one is returned."""
    return Call(
        "POST",
        thread_path(thread_id, "/compactions"),
        Compaction.read,
        body=given(kind=kind),
        headers={"Change-Reason": reason},
    )


class Threads(Group[S]):
    """Threads, with their messages, context, state and snapshots."""

    create = Verb(create_thread)
    get = Verb(read_thread)
    list = Verb(list_threads)
    change = Verb(change_thread)
    delete = Verb(delete_thread)
    delete_many = Verb(delete_threads)
    fork = Verb(fork_thread)
    lineage = Verb(read_lineage)
    append = Verb(append_messages)
    messages = Verb(list_messages)
    context = Verb(read_context)
    state = Verb(read_state)
    snapshots = Verb(list_snapshots)
    mark_snapshot = Verb(mark_snapshot)
    diff = Verb(diff_revisions)
    restore = Verb(restore_revision)
    import_state = Verb(import_state)
    preview_compaction = Verb(preview_compaction)
    compact = Verb(request_compaction)
