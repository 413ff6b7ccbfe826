"""Changes: the change feed of a workspace, in commit order, as a list and as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from .base import (
    DEFAULT_LIMIT,
    EVENT_STREAM,
    Answer,
    Limit,
    Operation,
    Page,
    Query,
    WaitSeconds,
    doc,
)
from .types import Actor, Key, Namespace, RunId, ThreadId, Time, time_of

if TYPE_CHECKING:
    from state_admin.models.feed_sql import FeedRow

Cursor = Annotated[
    str,
    doc(
        "Position in the change feed. It expires with the retention time.",
        "WzcsMywxNzY5ODYwODAwXQ",
        min_length=1,
    ),
]

KindGlob = Annotated[
    str,
    doc(
        "Kind of change, or a glob of kinds, in which only `*` is special.",
        "entry.*",
        schema={"pattern": r"^[ -~]{0,128}$"},
    ),
]


class Change(Answer):
    """A change that was committed."""

    cursor: Annotated[
        Cursor, doc("Position of this change: send it as `cursor` to continue after it.")
    ]
    kind: Annotated[str, doc("What was done to what.", "entry.put")]
    namespace: Annotated[Namespace | None, doc("The namespace; null: not about one.")]
    key: Annotated[Key | None, doc("The key; null: not about one.")]
    thread_id: Annotated[ThreadId | None, doc("The thread; null: not about one.", None)]
    run_id: Annotated[RunId | None, doc("The run; null: not about one.", None)]
    version: Annotated[int, doc("Version or revision that the change created; 0: none.", 3, ge=0)]
    actor: Actor
    at: Annotated[Time, doc("When it was done.")]

    @classmethod
    def of(cls, row: FeedRow, cursor: str) -> Self:
        return cls(
            cursor=cursor,
            kind=row.kind,
            namespace=row.namespace or None,
            key=row.key or None,
            thread_id=row.thread or None,
            run_id=row.run or None,
            version=row.version,
            actor=row.actor_name,
            at=time_of(row.at),
        )


class FeedQuery(Query):
    """Which changes, all conditions together."""

    namespace: Annotated[Namespace | None, doc("Only changes in this namespace.")] = None
    key: Annotated[Key | None, doc("Only changes of this key.")] = None
    prefix: Annotated[str | None, doc("Only changes of keys that begin with it.", "thread::")] = (
        None
    )
    thread_id: Annotated[ThreadId | None, doc("Only changes of this thread.")] = None
    run_id: Annotated[RunId | None, doc("Only changes by or of this run.")] = None
    kind: Annotated[
        KindGlob | None, doc("Only changes of this kind, or of the kinds that match a glob.")
    ] = None
    cursor: Annotated[
        Cursor | None, doc("Only changes after this position: a cursor of the feed.")
    ] = None


class ChangesQuery(FeedQuery):
    limit: Limit = DEFAULT_LIMIT
    wait: WaitSeconds = 0


LIST_CHANGES = Operation(
    id="list_changes",
    route="GET /changes",
    tag="changes",
    summary="List changes",
    description="Changes in commit order, after `cursor` or from the oldest retained one. "
    "`next_cursor` is never null: send it as `cursor` to continue without a gap or a repetition. "
    "With `wait`, the response is held until there is a change. 410 if the cursor has expired: read "
    "the current state, then continue without a cursor.",
    query=ChangesQuery,
    answers={200: Page[Change]},
    problems=("gone",),
)
STREAM_CHANGES = Operation(
    id="stream_changes",
    route="GET /changes/stream",
    tag="changes",
    summary="Stream changes",
    description="Server-sent events: `change` with an item of `GET /changes` as data and its cursor "
    "as id, and at the end `closed` with a problem document. The stream starts after "
    "`Last-Event-ID` or `cursor`, otherwise with the next change. A comment follows after 15 seconds "
    "of silence; its id is the current position.",
    query=FeedQuery,
    answers={200: str},
    headers=("Last-Event-ID",),
    problems=("gone",),
    answer_type=EVENT_STREAM,
    examples={
        EVENT_STREAM: "id: WzcsMywxNzY5ODYwODAwXQ\nevent: change\n"
        'data: {"cursor":"WzcsMywxNzY5ODYwODAwXQ","kind":"entry.put","namespace":"team_context",'
        '"key":"parent_thread::thread-1","thread_id":null,"run_id":null,"version":3,'
        '"actor":"planner-token","at":"2026-01-31T12:00:00.000000Z"}\n\n'
    },
    session=True,
)
