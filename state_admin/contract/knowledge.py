"""Provenance: what runs could see and what they read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

from state_admin.domain.scopes import ScopeKind, scope_kind

from .base import Answer, DescendingList, Natural, Operation, Page, Paging, Positive, doc
from .snapshots import Snapshot
from .types import JsonOut, Key, Namespace, RunId, ThreadId, Time, json_of, time_of

if TYPE_CHECKING:
    from state_admin import models
    from state_admin.models.knowledge_sql import VisibleVersion


class KnownEntry(Answer):
    """An entry as it was when a step was committed."""

    namespace: Namespace
    key: Key
    scope_kind: Annotated[
        str,
        doc("Scope of the key.", "parent_thread", choices=tuple(each.value for each in ScopeKind)),
    ]
    registered: Annotated[bool, doc("Whether the namespace is registered now.", True)]
    version: Annotated[int, doc("Version at that time.", 3, ge=0)]
    value: Annotated[
        JsonOut, doc("Value at that time; null also if it is not kept.", {"goal": "Ship it"})
    ]
    kept: Annotated[bool, doc("False: history compaction may have removed the version.", True)]
    updated_at: Annotated[Time | None, doc("When that version was written; null: unknown.")]
    actor: Annotated[str | None, doc("Who wrote that version; null: unknown.", "planner-token")]
    reason: Annotated[str | None, doc("Why; empty if no reason was given, null: unknown.", "Retry")]
    run_id: Annotated[RunId | None, doc("The run that wrote it; null: none, or unknown.")]
    redacted_at: Annotated[
        Time | None, doc("When the value was redacted; null: it is not redacted.", None)
    ]
    current_version: Annotated[int, doc("Version now; 0: the entry is absent.", 4, ge=0)]

    @classmethod
    def of(cls, row: VisibleVersion) -> Self:
        return cls.from_attributes(
            row,
            scope_kind=scope_kind(row.key).value,
            value=json_of(None if row.lost else row.value),
            kept=not row.lost,
            updated_at=time_of(row.at),
            actor=row.actor_name,
            run_id=row.run or None,
            current_version=row.current,
        )


class RunRead(Answer):
    """A read of an entry that a commit reported."""

    step: Annotated[int, doc("Which revision of its run reported it, from 1.", 2, ge=1)]
    revision: Annotated[int, doc("Revision of the thread that reported it.", 12, ge=0)]
    namespace: Namespace
    key: Key
    version: Annotated[int, doc("The version that was read; 0: the entry was absent.", 3, ge=0)]
    version_at_commit: Annotated[
        int, doc("The version when the step was committed; 0: absent.", 3, ge=0)
    ]
    current_version: Annotated[int, doc("The version now; 0: absent.", 4, ge=0)]
    stale_at_commit: Annotated[
        bool, doc("Whether another version was current at the commit.", False)
    ]
    stale: Annotated[bool, doc("Whether another version is current now.", True)]
    at: Annotated[Time, doc("When the step was committed.")]

    @classmethod
    def of(cls, row: models.RunRead, **more: str) -> Self:
        """`row` comes from RunReadQuerySet.with_current. `more`: the members of a subclass."""
        return cls.from_attributes(
            row,
            version_at_commit=row.held,
            current_version=row.current,
            stale_at_commit=row.held != row.version,
            stale=row.current != row.version,
            **more,
        )


class EntryReader(RunRead):
    """A step that read an entry."""

    run_id: RunId
    thread_id: ThreadId
    agent_id: Annotated[str, doc("Id of the run's agent; empty: none.", "planner")]

    @classmethod
    def of(cls, row: models.RunRead, **more: str) -> Self:
        run = row.run
        return super().of(
            row, run_id=run.public_id, thread_id=run.thread.public_id, agent_id=run.agent_id, **more
        )


class Knowledge(Answer):
    """What a run could see when it committed a step: a page of entries, and the rest."""

    run_id: RunId
    thread_id: ThreadId
    step: Annotated[int | None, doc("Which revision of the run it is, from 1; null: unknown.", 2)]
    steps: Annotated[int, doc("Number of revisions of the run.", 3, ge=0)]
    revision: Annotated[int, doc("Revision of the thread.", 12, ge=0)]
    at: Annotated[Time, doc("When it was committed.")]
    exact: Annotated[
        bool,
        doc(
            "False: the revision is from an old release of the server, and entries are found by "
            "their times.",
            True,
        ),
    ]
    scopes: Annotated[
        list[str], doc("Keys of the scopes that the run sees.", ["global", "thread::thread-1"])
    ]
    state: Annotated[Snapshot | None, doc("State of the thread; null: compaction removed it.")]
    reads: Annotated[list[RunRead], doc("What the step said that it read.")]
    items: Annotated[list[KnownEntry], doc("The entries of this page.")]
    next_cursor: Annotated[
        str | None, doc("Send as `cursor` to fetch the next page. Null on the last page.", None)
    ]


class KnowledgeFilters(Paging):
    step: Annotated[
        Positive | None,
        doc("Which revision of the run, from 1. Default: the newest. Excludes `revision`."),
    ] = None
    revision: Annotated[Positive | None, doc("Which revision of the thread. Excludes `step`.")] = (
        None
    )


class ReadFilters(DescendingList):
    stale: Annotated[
        bool,
        doc(
            "`true`: only reads of a version that is not current now, or was not current when the "
            "step was committed."
        ),
    ] = False


class ReaderFilters(Paging):
    version: Annotated[Natural | None, doc("Only reads of this version; 0: of its absence.")] = None


_operation = partial(Operation, tag="provenance")
READ_KNOWLEDGE = _operation(
    id="read_knowledge",
    route="GET /runs/{run_id}/knowledge",
    replica=True,
    summary="Read what a run could see",
    description="The state of the thread and the entries of the run's scopes, as they were when the "
    "run committed a step.",
    query=KnowledgeFilters,
    answers={200: Knowledge},
    problems=("too-large",),
)
LIST_RUN_READS = _operation(
    id="list_run_reads",
    route="GET /runs/{run_id}/reads",
    replica=True,
    summary="List the reads of a run",
    description="The versions of entries that its commits reported as read, newest first.",
    query=ReadFilters,
    answers={200: Page[RunRead]},
)
LIST_READERS = _operation(
    id="list_readers",
    route="GET /reads/{namespace}/{key}",
    replica=True,
    summary="List the readers of an entry",
    description="The steps of runs that reported it as read, the newest version first.",
    query=ReaderFilters,
    answers={200: Page[EntryReader]},
    problems=("not-registered",),
)
