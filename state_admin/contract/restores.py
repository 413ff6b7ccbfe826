"""Restores: many entries back to a moment."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from .base import Answer, Body, KeyText, Operation, ShortText, doc
from .types import Fault, Key, Namespace, Scope, Time


class RestoredEntry(Answer):
    """What happens to one entry."""

    namespace: Namespace
    key: Key
    action: Annotated[
        str,
        doc(
            "What is done. `refuse`: the entry is left as it is, and `reason` says why.",
            "change",
            choices=("change", "create", "delete", "refuse"),
        ),
    ]
    version: Annotated[int, doc("Version before the restore; 0: never written.", 5, ge=0)]
    then_version: Annotated[
        int | None,
        doc(
            "Version at the moment, which may be a deletion or have expired. Null: there was none.",
            3,
        ),
    ]
    reason: Annotated[
        str | UnsetType, doc("Why it is refused. Absent otherwise.", "the version is not kept")
    ] = UNSET
    errors: Annotated[
        list[Fault] | UnsetType, doc("What the schema refuses. Absent if nothing is refused.", [])
    ] = UNSET


class Restoration(Answer):
    """What a restore did."""

    at: Annotated[Time, doc("The moment, as the request says.")]
    changed: Annotated[int, doc("Number of entries with a new version.", 2, ge=0)]
    created: Annotated[int, doc("Number of entries that were created again.", 1, ge=0)]
    deleted: Annotated[int, doc("Number of entries that did not exist then.", 0, ge=0)]
    refused: Annotated[int, doc("Number of entries that were left as they are.", 0, ge=0)]
    first: Annotated[list[RestoredEntry], doc("The first 100 of these entries.")]


MomentText = Annotated[
    str,
    doc(
        "The moment: an RFC 3339 time in the past.",
        "2026-01-31T12:00:00Z",
        min_length=1,
        max_length=64,
    ),
]


class EntrySelection(Body):
    """The entries that all given filters select."""

    namespace: Annotated[
        ShortText | UnsetType, doc("Only entries of this namespace.", "team_context")
    ] = UNSET
    key: Annotated[KeyText | UnsetType, doc("Only entries with this key.", "global")] = UNSET
    prefix: Annotated[
        KeyText | UnsetType, doc("Only entries whose key begins with this.", "thread::")
    ] = UNSET
    scope_kind: Annotated[Scope | UnsetType, doc("Only entries with this scope.", "thread")] = UNSET


class Moment(EntrySelection, kw_only=True):
    """A time, and the entries to restore to their values at that time."""

    at: MomentText


RESTORE_ENTRIES = Operation(
    id="restore_entries",
    route="POST /restore",
    tag="entries",
    summary="Restore entries to a moment",
    description="Gives the entries that all given filters select, one of which is required, the "
    "values that they had at a moment, as new versions. An entry that did not exist then is "
    "deleted. All of them or none; at most 10,000 entries that were written since: `POST /reverts` "
    "with the same members restores more, in batches. An entry whose "
    "old value does not satisfy the current schema, or is no longer kept, is refused and left as "
    "it is.",
    body=Moment,
    answers={200: Restoration},
    dry_run=Restoration,
    problems=("not-registered", "quota-exceeded"),
)
