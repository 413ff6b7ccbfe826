"""Commits: the steps of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from .base import JSON_TYPE, Answer, Body, Natural, Operation, doc
from .messages import MessagesIn
from .runs import FencingToken, Run, RunFields
from .types import MAX_ID, MAX_INTEGER, BigInt, JsonIn, RevisionNumber

BaseRevision = Annotated[
    Natural | None, doc("Revision of the state that the updates were made for; null: any.", 12)
]


class Update(Body):
    """An update of one state key: exactly one of `update` and `clear`."""

    key: Annotated[str, doc("Name of the state key.", "plan", min_length=1, max_length=MAX_ID)]
    update: Annotated[
        JsonIn | UnsetType, doc("What the reducer of the key is given.", ["search"])
    ] = UNSET
    clear: Annotated[bool, doc("`true`: remove the value.")] = False


class UpdateBatch(Body):
    """The updates of one parallel branch."""

    updates: Annotated[list[Update], doc("The updates of the branch, in order.")]
    base_revision: BaseRevision = None


class EntryRead(Body):
    """A version of an entry that the step was based on."""

    namespace: Annotated[
        str, doc("Name of the namespace.", "team_context", min_length=1, max_length=128)
    ]
    key: Annotated[
        str,
        doc(
            "Key within the namespace.",
            "parent_thread::thread-1",
            min_length=1,
            schema={"maxLength": 512},
        ),
    ]
    version: Annotated[
        int, doc("The version that was read; 0: the entry was absent.", 3, ge=0, le=MAX_INTEGER)
    ]


class Commit(Body):
    """One step of a run: everything in it is stored together, or nothing."""

    fencing_token: FencingToken = None
    base_revision: BaseRevision = None
    on_conflict: Annotated[
        Literal["fail", "rebase"],
        doc(
            "What happens if the state is not at `base_revision`: `fail` refuses the commit, "
            "`rebase` applies it if the revisions since then touched none of its keys.",
            "fail",
        ),
    ] = "fail"
    updates: Annotated[
        list[Update] | UnsetType,
        doc("Updates of the state, in order; at most 10,000 in one commit."),
    ] = UNSET
    batches: Annotated[
        list[list[Update] | UpdateBatch] | UnsetType,
        doc(
            "Instead of `updates`: the updates of parallel branches. Two branches may touch "
            "one key only if its merge strategy is `commutative`.",
            [],
        ),
    ] = UNSET
    messages: MessagesIn | UnsetType = UNSET
    expected_message_count: Annotated[
        BigInt | None, doc("Commit only if the thread has this number of messages; null: any.", 8)
    ] = None
    run: Annotated[RunFields | UnsetType, doc("What changes of the run itself.")] = UNSET
    reads: Annotated[
        list[EntryRead] | UnsetType,
        doc(
            "Entries that the step was based on, at most 200; kept as provenance.",
            [],
            schema={"maxItems": 200},
        ),
    ] = UNSET
    label: Annotated[
        str,
        doc("Label of the revision; compaction keeps labelled ones.", "planned", max_length=128),
    ] = ""


class Committed(Answer):
    """The outcome of a commit."""

    revision: RevisionNumber
    touched_keys: Annotated[list[str], doc("State keys that were written or cleared.", ["plan"])]
    message_count: Annotated[int, doc("Number of messages of the thread now.", 9, ge=0)]
    run: Run


COMMIT = Operation(
    id="commit",
    route="POST /runs/{run_id}/commits",
    tag="runs",
    summary="Commit a step",
    description="State updates, messages and changes of the run are stored together as one "
    "revision, or not at all. `If-Match` is another way to send `base_revision`. An empty commit "
    "returns the current revision.",
    body=Commit,
    examples={
        JSON_TYPE: {
            "fencing_token": 1,
            "base_revision": 12,
            "updates": [{"key": "plan", "update": ["search"]}],
            "messages": [{"role": "assistant", "content": "I look for your order."}],
            "run": {"step_count": 3, "input_tokens": 5200, "output_tokens": 800},
            "reads": [
                {"namespace": "team_context", "key": "parent_thread::thread-1", "version": 2}
            ],
            "label": "planned",
        }
    },
    answers={200: Committed},
    dry_run=Committed,
    headers=("If-Match",),
    problems=(
        "revision-conflict",
        "version-conflict",
        "fencing-token-superseded",
        "not-registered",
    ),
    etag=True,
)
