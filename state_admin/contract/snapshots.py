"""Snapshots: the state of a thread at its revisions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

from msgspec import UNSET, UnsetType, field

from .base import Answer, Body, DescendingList, Natural, Operation, Page, Query, ShortText, doc
from .types import (
    MAX_INTEGER,
    Actor,
    Diff,
    JsonIn,
    JsonOut,
    Reason,
    RequestId,
    RevisionNumber,
    RunId,
    Time,
    json_of,
)

if TYPE_CHECKING:
    from state_admin import models
    from state_admin.services import exports, snapshots

_OLD_REVISION = Annotated[
    int, doc("Number of the revision to restore; 0 is the empty state.", 7, ge=0, le=MAX_INTEGER)
]


class Snapshot(Answer):
    """The state of a thread at a revision."""

    revision: RevisionNumber
    extensions: Annotated[
        dict[str, Annotated[JsonOut, doc("The value of a state key.")]],
        doc("The values by state key. A key without a value is absent.", {"plan": ["search"]}),
    ]

    @classmethod
    def of(cls, snapshot: snapshots.Snapshot) -> Self:
        extensions = {key: json_of(text) for key, text in snapshot.extensions.items()}
        return cls(revision=snapshot.revision, extensions=extensions)


class ImportedSnapshot(Answer):
    """The state of a thread after an import."""

    revision: RevisionNumber
    extensions: Annotated[
        dict[str, Annotated[JsonOut, doc("The value of a state key.")]],
        doc("All values by state key, imported or not.", {"plan": ["search"]}),
    ]
    skipped_keys: Annotated[
        list[str],
        doc(
            "Keys that were left out because they are not registered. A thread that has had a run keeps its "
            "`__runtime.run_lifecycle`, which is not listed.",
            ["scratch"],
        ),
    ]

    @classmethod
    def of(cls, imported: exports.Imported) -> Self:
        state = Snapshot.of(imported.snapshot)
        return cls(
            revision=state.revision,
            extensions=state.extensions,
            skipped_keys=list(imported.skipped),
        )


class SnapshotFilters(Query):
    revision: Annotated[Natural | None, doc("The state at this revision. Default: the newest.")] = (
        None
    )
    scope: Annotated[str | None, doc("Only keys with this scope.", choices=("run", "thread"))] = (
        None
    )
    export: Annotated[
        bool,
        doc(
            "`true`: only what another thread or server can import: the values of state keys that "
            "are registered and persistent."
        ),
    ] = False


class Revision(Answer):
    """One change of the state of a thread."""

    revision: Annotated[int, doc("Number of the revision, from 1.", 12, ge=1)]
    kind: Annotated[
        str,
        doc(
            "What made it. `start`, `end`: start and end of a run; `uninstall`: a plugin and its "
            "state keys were uninstalled.",
            "commit",
            choices=("start", "commit", "end", "restore", "import", "fork", "uninstall"),
        ),
    ]
    run_id: Annotated[RunId | None, doc("The run that made it; null: no run.")]
    touched_keys: Annotated[
        list[str], doc("State keys that the revision wrote or cleared.", ["plan"])
    ]
    message_count: Annotated[int, doc("Number of messages of the thread at this revision.", 8)]
    label: Annotated[str, doc("Label for people; empty: none.", "before the refund")]
    pinned: Annotated[bool, doc("Whether compaction must keep the state at this revision.", False)]
    kept: Annotated[bool, doc("False: compaction removed the state at this revision.", True)]
    actor: Actor
    reason: Reason
    request_id: RequestId
    at: Annotated[Time, doc("When it was made.")]

    @classmethod
    def of(cls, row: models.Revision) -> Self:
        return cls.from_attributes(
            row,
            revision=row.number,
            run_id=row.run.public_id if row.run else None,
            touched_keys=row.touched,
            kept=not row.dropped,
            actor=row.actor_name,
        )


class SnapshotMark(Body):
    """The label of a revision, and whether it is kept."""

    label: Annotated[
        ShortText | UnsetType, doc("Label for people; empty: none.", "before the refund")
    ] = UNSET
    pinned: Annotated[
        bool | UnsetType, doc("Whether compaction must keep the state at this revision.", True)
    ] = UNSET


class Revisions(Query):
    from_: Annotated[int, doc("Revision to compare from.", ge=0)] = field(name="from")
    to: Annotated[int, doc("Revision to compare to.", ge=0)]


class SnapshotRestoration(Body):
    """The revision whose state is restored."""

    revision: _OLD_REVISION


class ExportedSnapshot(Body):
    """A snapshot as `GET …/state?export=true` returns it."""

    revision: Annotated[
        int, doc("Revision of the thread that it comes from.", 12, ge=0, le=MAX_INTEGER)
    ]
    extensions: Annotated[
        dict[str, Annotated[JsonIn, doc("The value of a state key.")]],
        doc("The values by state key.", {"plan": ["search"]}),
    ]


class SnapshotImport(Body):
    """A snapshot, and how it is combined with the state of the thread."""

    snapshot: ExportedSnapshot
    unknown_keys: Annotated[
        Literal["error", "skip"],
        doc("What happens if a key is not registered: refuse the import, or leave the key out."),
    ] = "error"
    mode: Annotated[
        Literal["replace", "merge"],
        doc("`replace` clears keys that the snapshot does not contain, `merge` keeps them."),
    ] = "replace"


_operation = partial(Operation, tag="snapshots")
READ_STATE = _operation(
    id="read_state",
    route="GET /threads/{thread_id}/state",
    summary="Read the state of a thread",
    description="The newest state, or the state at a revision. A revision whose state compaction "
    "removed is gone. A state that exceeds 32 MiB gets 413. `If-None-Match` has no effect with `export=true`.",
    query=SnapshotFilters,
    answers={200: Snapshot, 304: None},
    headers=("If-None-Match",),
    problems=("gone", "too-large"),
    etag=True,
)
LIST_SNAPSHOTS = _operation(
    id="list_snapshots",
    route="GET /threads/{thread_id}/snapshots",
    replica=True,
    summary="List the revisions of a thread",
    description="Newest first: what each changed, by whom and why.",
    query=DescendingList,
    answers={200: Page[Revision]},
)
MARK_SNAPSHOT = _operation(
    id="mark_snapshot",
    route="PATCH /threads/{thread_id}/snapshots/{revision}",
    summary="Label or pin a revision",
    description="Compaction keeps the state at a labelled or pinned revision.",
    body=SnapshotMark,
    answers={200: Revision},
    problems=("gone",),
)
DIFF_SNAPSHOTS = _operation(
    id="diff_snapshots",
    route="GET /threads/{thread_id}/diff",
    replica=True,
    summary="Compare two revisions",
    description="What changed in the state of the thread between them. Items of arrays are followed "
    "when they get another index.",
    query=Revisions,
    answers={200: Diff},
    problems=("gone", "too-large"),
)
RESTORE_SNAPSHOT = _operation(
    id="restore_snapshot",
    route="POST /threads/{thread_id}/restore",
    summary="Restore a revision",
    description="Makes a new revision whose state equals that of an old one. Runs, messages and "
    "history do not change. Values of the scope `run` return only during the run that wrote them.",
    body=SnapshotRestoration,
    answers={200: Snapshot},
    dry_run=Snapshot,
    headers=("If-Match",),
    problems=("revision-conflict", "gone"),
    etag=True,
)
IMPORT_SNAPSHOT = _operation(
    id="import_snapshot",
    route="POST /threads/{thread_id}/import",
    summary="Import a snapshot",
    description="Makes a new revision from an exported snapshot. Each value must match the schema "
    "of its state key.",
    body=SnapshotImport,
    answers={200: ImportedSnapshot},
    dry_run=ImportedSnapshot,
    headers=("If-Match",),
    problems=("revision-conflict",),
    etag=True,
)
