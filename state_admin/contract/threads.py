"""Threads: conversations with messages and a versioned state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Actor, Role

from .base import (
    JSON_TYPE,
    Answer,
    Body,
    DescendingList,
    Natural,
    NonEmpty,
    Operation,
    Page,
    Query,
    ShortText,
    doc,
)
from .items import ItemResults, Selection
from .types import (
    MAX_ID,
    OBJECT,
    BigInt,
    JsonIn,
    JsonOut,
    MetadataIn,
    MetadataOut,
    RevisionNumber,
    RunId,
    ThreadId,
    Time,
    json_of,
)

if TYPE_CHECKING:
    from state_admin import models

MERGE_PATCH: Final = "application/merge-patch+json"
MAX_TITLE: Final = 512


class ForkOrigin(Answer):
    """What a thread was copied from."""

    thread_id: ThreadId
    revision: Annotated[int, doc("Revision whose state was copied.", 12, ge=0)]
    message_count: Annotated[int, doc("Number of messages that were copied.", 8, ge=0)]

    @classmethod
    def of(cls, row: models.Thread, actor: Actor) -> Self | None:
        origin: Mapping[str, Any] | None = row.forked_from
        return cls(**origin) if origin and actor.sees_thread(origin["thread_id"]) else None


class Thread(Answer):
    """A conversation: messages and a versioned state."""

    id: ThreadId
    resource_id: Annotated[
        str | None, doc("What the thread is about, for example a user; null: nothing.", "user-7")
    ]
    parent_thread_id: Annotated[
        str | None, doc("Id of the parent thread; null: none, or none that you may see.", None)
    ]
    title: Annotated[str, doc("Title for people; may be empty.", "Refund of order 9921")]
    metadata: MetadataOut
    compaction_policy: Annotated[
        JsonOut,
        doc(
            "The thread's own compaction policy: only the fields in which it differs.",
            {},
            schema=OBJECT,
        ),
    ]
    version: Annotated[
        int, doc("Version of these fields: 1 more with each change of them. The ETag.", 1, ge=1)
    ]
    revision: RevisionNumber
    message_count: Annotated[int, doc("Number of messages of the thread.", 8, ge=0)]
    context_tokens: Annotated[
        int, doc("Estimated tokens of the context that a model receives.", 1800, ge=0)
    ]
    active_run_id: Annotated[RunId | None, doc("The run that is not finished; null: none.")]
    latest_run_id: Annotated[RunId | None, doc("The run that was started last; null: none.")]
    forked_from: Annotated[
        ForkOrigin | None,
        doc("What it was copied from; null: nothing, or a thread that you may not see."),
    ]
    created_at: Annotated[Time, doc("When it was created.")]
    updated_at: Annotated[Time, doc("When it was changed last.")]

    @classmethod
    def of(cls, row: models.Thread, actor: Actor) -> Self:
        """The thread as `actor` may see it: one outside a token's prefixes does not exist, be it
        the parent or the origin of a fork."""
        parent = row.parent.public_id if row.parent else None
        return cls.from_attributes(
            row,
            id=row.public_id,
            resource_id=row.resource_id or None,
            parent_thread_id=parent if parent and actor.sees_thread(parent) else None,
            metadata=json_of(row.metadata or "{}"),
            compaction_policy=json_of(row.policy or "{}"),
            active_run_id=row.active_run.public_id if row.active_run else None,
            latest_run_id=row.latest_run.public_id if row.latest_run else None,
            forked_from=ForkOrigin.of(row, actor),
        )


class ThreadFilters(DescendingList):
    resource_id: Annotated[str | None, doc("Only threads with this `resource_id`.")] = None
    parent_thread_id: Annotated[str | None, doc("Only children of this thread.")] = None
    root: Annotated[
        bool, doc("`true`: only threads without a parent. Excludes `parent_thread_id`.")
    ] = False
    prefix: Annotated[str | None, doc("Only threads whose id begins with this.")] = None
    text: (
        Annotated[
            str,
            doc(
                "Only threads whose title has words that begin with each word of this, in any case.",
                "refund order",
                max_length=1000,
            ),
        ]
        | None
    ) = None
    forked_from: Annotated[str | None, doc("Only forks of this thread.")] = None


_TITLE: Final = doc("Title for people.", "Refund of order 9921", max_length=MAX_TITLE)
_POLICY: Final = doc(
    "Compaction policy of the thread: only the fields in which it differs from the policy of its "
    "agent or workspace. See `PUT /compaction-policies/workspace`.",
    {"autocompact_threshold": 8000},
    schema=OBJECT,
)


class NewThread(Body):
    """The initial fields of a new thread."""

    id: Annotated[
        NonEmpty | UnsetType,
        doc("Id of the thread. Default: generated.", "thread-1", schema={"maxLength": MAX_ID}),
    ] = UNSET
    resource_id: Annotated[
        str, doc("What the thread is about, for example a user.", "user-7", max_length=MAX_ID)
    ] = ""
    parent_thread_id: Annotated[
        NonEmpty | None, doc("Id of the parent thread; null: none.", None)
    ] = None
    title: Annotated[str, _TITLE] = ""
    metadata: MetadataIn | UnsetType = UNSET
    compaction_policy: Annotated[JsonIn, _POLICY] | UnsetType = UNSET


class ThreadChange(Body):
    """Only the given members change."""

    resource_id: Annotated[
        ShortText | UnsetType, doc("Empty: no longer about anything.", "user-7")
    ] = UNSET
    parent_thread_id: Annotated[
        NonEmpty | UnsetType | None,
        doc("Id of the new parent; null: remove it from its parent.", None),
    ] = UNSET
    title: Annotated[str, _TITLE] | UnsetType = UNSET
    metadata: MetadataIn | UnsetType = UNSET
    compaction_policy: Annotated[JsonIn, _POLICY] | UnsetType = UNSET


class ThreadDeletionQuery(Query):
    children: Annotated[
        str,
        doc(
            "What happens to child threads: `detach` makes them roots, `cascade` deletes them too, "
            "`reject` refuses the deletion if there are any.",
            choices=("detach", "reject", "cascade"),
        ),
    ] = "detach"
    expected_revision: Annotated[
        Natural | None, doc("Delete only if the state is at this revision.")
    ] = None


class ThreadSelection(Selection):
    """The threads to delete."""

    children: Annotated[
        Literal["detach", "reject", "cascade"],
        doc("What happens to child threads, as in `DELETE /threads/{thread_id}`."),
    ] = "detach"


class ThreadContents(Answer):
    """How much threads contain."""

    threads: Annotated[int, doc("Threads, with those deleted by `children=cascade`.", 1, ge=0)]
    messages: Annotated[int, doc("Messages.", 8, ge=0)]
    runs: Annotated[int, doc("Runs.", 2, ge=0)]
    state_values: Annotated[int, doc("Values of state keys, past ones included.", 20, ge=0)]
    entries: Annotated[int, doc("Entries under the keys of the threads.", 3, ge=0)]


class ThreadDeletion(Answer):
    """What a dry run of the deletion reports."""

    would_delete: Annotated[ThreadContents, doc("What the deletion would remove.")]


class NewFork(Body):
    """A new thread with the messages and the state of this one, up to a revision."""

    id: Annotated[
        NonEmpty | UnsetType,
        doc("Id of the new thread. Default: generated.", "thread-2", schema={"maxLength": MAX_ID}),
    ] = UNSET
    revision: Annotated[
        BigInt | UnsetType, doc("Revision whose state is copied. Default: the newest.", 12)
    ] = UNSET
    message_count: Annotated[
        BigInt | UnsetType,
        doc(
            "How many messages are copied, from the first one. Default: as many as there were "
            "at `revision`; without a `revision`, all.",
            8,
        ),
    ] = UNSET
    title: (
        Annotated[str, doc("Title for people. Default: that of the source.", max_length=MAX_TITLE)]
        | UnsetType
    ) = UNSET
    metadata: Annotated[
        JsonIn | UnsetType,
        doc("Any JSON object. Default: that of the source.", {"channel": "web"}, schema=OBJECT),
    ] = UNSET


class Lineage(Answer):
    """The relatives of a thread. Threads that you may not see are left out."""

    thread_id: ThreadId
    ancestors: Annotated[
        list[ThreadId], doc("Ids of the threads above it, the parent first.", ["thread-0"])
    ]
    child_count: Annotated[int, doc("Number of its children.", 2, ge=0)]
    forked_from: Annotated[
        ForkOrigin | None,
        doc("What it was copied from; null: nothing, or a thread that you may not see."),
    ]
    fork_count: Annotated[int, doc("Number of threads copied from it.", 1, ge=0)]


_operation = partial(Operation, tag="threads")
LIST_THREADS = _operation(
    id="list_threads",
    route="GET /threads",
    replica=True,
    summary="List threads",
    description="Newest first.",
    query=ThreadFilters,
    answers={200: Page[Thread]},
    problems=("invalid",),
)
CREATE_THREAD = _operation(
    id="create_thread",
    route="POST /threads",
    summary="Create a thread",
    description="Repeating a request with the same `id` and content returns the stored thread with "
    "status 200; other content is a conflict. Some fields of a compaction policy need the role "
    "admin.",
    body=NewThread,
    answers={200: Thread, 201: Thread},
    problems=("quota-exceeded",),
    etag=True,
)
GET_THREAD = _operation(
    id="get_thread",
    route="GET /threads/{thread_id}",
    summary="Read a thread",
    description="Without its messages and state, which have their own paths.",
    answers={200: Thread},
    etag=True,
)
CHANGE_THREAD = _operation(
    id="change_thread",
    route="PATCH /threads/{thread_id}",
    summary="Change a thread",
    description="Changes title, metadata, resource, parent or compaction policy as one new version. "
    "With `application/merge-patch+json`, `metadata` and `compaction_policy` are merged with the "
    "stored ones (RFC 7396); otherwise they replace them. Some fields of a compaction policy need "
    "the role admin.",
    body=ThreadChange,
    media_types=(JSON_TYPE, MERGE_PATCH),
    answers={200: Thread},
    headers=("If-Match",),
    problems=("version-conflict",),
    etag=True,
)
DELETE_THREAD = _operation(
    id="delete_thread",
    route="DELETE /threads/{thread_id}",
    summary="Delete a thread",
    description="With its messages, runs, state and entries. It cannot be undone. Refused if a "
    "child thread or an entry to be deleted is outside the limits of the token.",
    role=Role.ADMIN,
    query=ThreadDeletionQuery,
    answers={204: None},
    dry_run=ThreadDeletion,
    headers=("If-Match",),
    problems=("revision-conflict", "version-conflict"),
)
DELETE_THREADS = _operation(
    id="delete_threads",
    route="POST /threads/delete",
    summary="Delete threads",
    description="Deletes up to 200 threads independently of each other. If a thread cannot be "
    "deleted, its result contains a problem and the others are still deleted. It cannot be undone.",
    role=Role.ADMIN,
    body=ThreadSelection,
    answers={200: ItemResults},
    dry_run=ItemResults,
)
FORK_THREAD = _operation(
    id="fork_thread",
    route="POST /threads/{thread_id}/fork",
    summary="Fork a thread",
    description="Copies the state at a revision and the first messages into a new, independent "
    "thread without runs and parent. Values of state keys with the scope `run` are not copied. "
    "Repeating a request with the same `id` and content returns the stored thread with status 200; "
    "other content is a conflict.",
    body=NewFork,
    answers={200: Thread, 201: Thread},
    problems=("gone", "quota-exceeded"),
    etag=True,
)
READ_LINEAGE = _operation(
    id="read_lineage",
    route="GET /threads/{thread_id}/lineage",
    replica=True,
    summary="Read the lineage of a thread",
    description="Its ancestors, what it was copied from, and the number of its children and forks.",
    answers={200: Lineage},
)
