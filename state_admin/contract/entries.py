"""Entries: the shared state, a JSON value at each namespace and key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from msgspec import UNSET, UnsetType, field

from state_admin.domain.patches import PatchKind
from state_admin.domain.scopes import ScopeKind, scope_kind

from .base import (
    Answer,
    AscendingList,
    AwareTime,
    Body,
    DescendingList,
    Natural,
    Operation,
    Order,
    Page,
    Positive,
    Query,
    TimeRange,
    Wait,
    doc,
)
from .types import (
    MAX_INTEGER,
    MAX_TTL,
    Actor,
    ActorKind,
    Bytes,
    Cleared,
    Diff,
    JsonIn,
    JsonOut,
    Key,
    Namespace,
    Reason,
    RequestId,
    RunId,
    Scope,
    Time,
    Tokens,
    json_of,
    time_of,
)

if TYPE_CHECKING:
    from state_admin import models
    from state_admin.models.browsing import EntryLine
    from state_admin.services.entry_views import EntryView

# The maximum number of entries that one request deletes, because it is one transaction, and the change
# feed waits for the oldest open transaction.
MOST_CLEARED: Final = 100_000
# How the media type of a PATCH body is applied.
PATCH_TYPES: Final[dict[str, PatchKind]] = {
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "json",
    "application/vnd.commonhold.update+json": "update",
}
_PATCH_EXAMPLES: Final = {
    "application/merge-patch+json": {"goal": "Ship it"},
    "application/json-patch+json": [{"op": "replace", "path": "/goal", "value": "Ship it"}],
    "application/vnd.commonhold.update+json": {
        "op": "append",
        "path": "/constraints",
        "value": "no overnight flights",
    },
}
WRITE_HEADERS: Final = ("If-Match", "If-None-Match", "If-Changed", "On-Conflict")
RESTORE_HEADERS: Final = WRITE_HEADERS[:3]
DELETE_HEADERS: Final = ("If-Match", "If-None-Match", "On-Conflict")

Value = Annotated[JsonOut, doc("The value: any JSON, as it was written.", {"goal": "Ship it"})]
ValueIn = Annotated[
    JsonIn,
    doc("The value: any JSON that the schema of the namespace accepts.", {"goal": "Ship it"}),
]
ValueIfIncluded = Annotated[
    JsonOut | UnsetType, doc("The value. Present only with `include=value`.", {"goal": "Ship it"})
]
RedactedAt = Annotated[
    str | UnsetType,
    doc(
        "When a part of the value was redacted. Absent if none was.",
        "2026-01-31T12:00:00.000000Z",
        schema={"format": "date-time"},
    ),
]
RedactedBy = Annotated[
    str | UnsetType, doc("Who redacted it. Absent if nothing was redacted.", "alice")
]
Tags = Annotated[list[str], doc("Labels for filtering.", ["draft"])]
TagsIn = Annotated[
    list[Annotated[str, doc("A label.", "draft", min_length=1, max_length=64)]],
    doc("Labels for filtering. Default: those that the entry has.", ["draft"], max_length=32),
]
TtlSeconds = Annotated[
    int,
    doc(
        "Time to live in seconds: the entry is deleted when it is over. "
        "Default: that of the namespace.",
        86400,
        ge=1,
        le=MAX_TTL,
    ),
]
PinnedIn = Annotated[
    bool, doc("Whether the entry is marked as important. Default: as it is.", False)
]
EntryOperation = Annotated[
    str,
    doc(
        "What made the version.",
        "put",
        choices=("put", "patch", "delete", "restore", "expire", "import", "redact"),
    ),
]


class EntryFacts(Answer):
    """What responses contain about an entry besides its value."""

    namespace: Namespace
    key: Key
    scope_kind: Annotated[
        str,
        doc(
            "Scope that the form of the key implies.",
            "parent_thread",
            choices=tuple(str(each) for each in ScopeKind),
        ),
    ]
    version: Annotated[
        int, doc("Version, which grows by 1 with each write. 0: never written.", 3, ge=0)
    ]
    schema_version: Annotated[
        int,
        doc(
            "Version of the namespace's schema at the time of the write. 0: not validated, as after a redaction.",
            1,
            ge=0,
        ),
    ]
    valid: Annotated[bool, doc("Whether the current schema accepts the value.", True)]
    created_at: Annotated[
        Time | None, doc("When the entry was created. Null if it does not exist, or in the past.")
    ]
    updated_at: Annotated[
        Time | None, doc("When this version was written. Null if the entry does not exist.")
    ]
    expires_at: Annotated[Time | None, doc("When the entry expires. Null: never.", None)]
    actor: Annotated[Actor, doc("Who wrote this version. Empty if the entry does not exist.")]
    tags: Tags
    pinned: Annotated[bool, doc("Whether the entry is marked as important.", False)]
    size_bytes: Annotated[Bytes, doc("Size of the value in bytes of UTF-8.")]
    estimated_tokens: Tokens


class Entry(EntryFacts):
    """An entry as a reader sees it. A missing one has the default of its namespace and version 0."""

    exists: Annotated[bool, doc("False if the value is the default of the namespace.", True)]
    value: Value
    redacted_at: RedactedAt = UNSET
    redacted_by: RedactedBy = UNSET

    @classmethod
    def of(cls, view: EntryView, **more: Any) -> Self:
        if view.redacted_at is not None:
            more["redacted_at"] = time_of(view.redacted_at)
            more["redacted_by"] = view.redacted_by
        return cls(
            namespace=view.namespace,
            key=view.key,
            scope_kind=view.scope_kind,
            exists=view.exists,
            value=json_of(view.value),
            version=view.version,
            schema_version=view.schema_version,
            valid=view.valid,
            created_at=time_of(view.created_at),
            updated_at=time_of(view.updated_at),
            expires_at=time_of(view.expires_at),
            actor=view.actor,
            tags=list(view.tags),
            pinned=view.pinned,
            size_bytes=view.size_bytes,
            estimated_tokens=view.estimated_tokens,
            **more,
        )


class EntryRow(EntryFacts):
    """An entry in a list."""

    registered: Annotated[
        bool, doc("False if the namespace of the entry is no longer registered.", True)
    ]
    value: ValueIfIncluded = UNSET

    @classmethod
    def of(
        cls, row: models.Entry | EntryLine, *, valid: bool, with_value: bool = False, **more: Any
    ) -> Self:
        return cls(
            namespace=row.namespace_name,
            key=row.key,
            scope_kind=scope_kind(row.key).value,
            version=row.version,
            schema_version=row.schema_version,
            valid=valid,
            registered=row.registered,
            created_at=time_of(row.created_at),
            updated_at=time_of(row.updated_at),
            expires_at=time_of(row.expires_at),
            actor=row.actor_name,
            tags=list(row.tags),
            pinned=row.pinned,
            size_bytes=row.size_bytes,
            estimated_tokens=row.estimated_tokens,
            value=json_of(row.value) if with_value else UNSET,
            **more,
        )


class EntryVersion(Answer):
    """One version of an entry's history."""

    version: Annotated[int, doc("The version.", 3, ge=1)]
    operation: EntryOperation
    exists: Annotated[bool, doc("False if the version is a deletion.", True)]
    actor: Annotated[Actor, doc("Who made it.")]
    actor_kind: ActorKind
    reason: Reason
    request_id: RequestId
    run_id: Annotated[RunId | None, doc("The run on whose behalf it was made. Null: none.")]
    at: Annotated[Time, doc("When it was made.")]
    schema_version: Annotated[int, doc("Version of the namespace's schema at that time.", 1, ge=0)]
    size_bytes: Annotated[Bytes, doc("Size of the value in bytes of UTF-8.")]
    pinned: Annotated[bool, doc("Whether history compaction keeps the version.", False)]
    redacted_at: RedactedAt = UNSET
    redacted_by: RedactedBy = UNSET
    value: Annotated[
        ValueIfIncluded, doc("The value; null for a deletion. Present only with `include=value`.")
    ] = UNSET

    @classmethod
    def of(cls, row: models.EntryRevision, *, exists: bool, with_value: bool = False) -> Self:
        redacted = row.redacted_at is not None
        return cls.from_attributes(
            row,
            exists=exists,
            actor=row.actor_name,
            run_id=row.run or None,
            redacted_at=time_of(row.redacted_at) or UNSET,
            redacted_by=row.redacted_by if redacted else UNSET,
            value=json_of(row.value) if with_value else UNSET,
        )


# Requests --------------------------------------------------------------------------------------

Include = Annotated[
    Literal["value"], doc("`value`: the items have their values. Default: without values.", "value")
]
Prefix = Annotated[str, doc("Only entries whose key begins with this.", "parent_thread::")]
ScopeFilter = Annotated[Scope, doc("Only entries with this scope.", "parent_thread")]


class ListFilters(TimeRange):
    prefix: Prefix | None = None
    scope_kind: ScopeFilter | None = None
    updated_since: Annotated[
        AwareTime | None, doc("Only entries written at that time or later.")
    ] = None
    tag: Annotated[
        list[str],
        doc("Only entries with this tag. May be repeated: entries that have all of them."),
    ] = []
    tags: Annotated[
        list[str], doc("The same for several tags, separated by commas: `tags=draft,urgent`.")
    ] = []
    valid: Annotated[
        bool | None, doc("Only entries whose value the current schema accepts, or refuses.")
    ] = None
    include: Include | None = None


class StateFilters(ListFilters):
    plugin: Annotated[str | None, doc("Only entries in namespaces of this plugin.")] = None


class NamespaceFilters(ListFilters):
    order: Annotated[Order, doc("By key, ascending or descending.")] = "asc"
    before: Annotated[str | None, doc("Only entries whose key is less than this.")] = None


class KeyFilters(AscendingList):
    include: Include | None = None


class HistoryFilters(DescendingList):
    include: Include | None = None


class ClearFilters(Query):
    prefix: Prefix | None = None
    scope_kind: ScopeFilter | None = None
    limit: (
        Annotated[
            int,
            doc(
                "Delete at most this many entries, in no particular order; `matched` is then at most "
                "this number. Repeat the request until `deleted` is 0. Default: all that match; "
                "refused if there are more than 100,000.",
                1000,
                ge=1,
                le=MOST_CLEARED,
            ),
        ]
        | None
    ) = None


class EntryQuery(Wait):
    at_version: Annotated[Positive | None, doc("Read the value that this version had.", 2)] = None
    at: Annotated[AwareTime | None, doc("Read the value that the entry had at this time.")] = None
    since: Annotated[
        Natural | None,
        doc(
            "With `wait`: return when the version is higher than this one, also if the entry was "
            "deleted or has expired. Default: the version when the request arrives."
        ),
    ] = None


class Versions(Query):
    from_: Annotated[int, doc("Version of the old value.", 1, ge=1)] = field(name="from")
    to: Annotated[int, doc("Version of the new value.", 2, ge=1)]


class Write(Body):
    """The new value of an entry, with its lifetime, tags and pin."""

    value: ValueIn
    ttl_seconds: TtlSeconds | UnsetType | None = UNSET
    tags: TagsIn | UnsetType = UNSET
    pinned: PinnedIn | UnsetType = UNSET


class VersionToRestore(Body):
    """The version whose value is written again as a new version."""

    version: Annotated[
        int, doc("The version whose value is written again.", 1, ge=1, le=MAX_INTEGER)
    ]


class VersionPin(Body):
    """A version, and whether history compaction keeps it."""

    version: Annotated[int, doc("The version.", 1, ge=1, le=MAX_INTEGER)]
    pinned: Annotated[bool, doc("Whether history compaction keeps the version.", True)]


# Operations ------------------------------------------------------------------------------------

_operation = partial(Operation, tag="entries")
READ_ENTRY = _operation(
    id="read_entry",
    route="GET /state/{namespace}/{key}",
    summary="Read an entry",
    description="A missing entry is no error: the response has the default of the namespace, "
    "version 0 and `exists: false`. `at_version` or `at`, without other parameters, reads the "
    "past. With `wait`, the response is held until there is a version newer than `since`, such as a deletion; entries of "
    "untracked namespaces cannot be waited for (400). With If-None-Match, the status is 304 while the version is the one that it names.",
    query=EntryQuery,
    answers={200: Entry, 304: None},
    headers=("If-None-Match",),
    problems=("not-registered", "gone", "not-found"),
    etag=True,
)
WRITE_ENTRY = _operation(
    id="write_entry",
    route="PUT /state/{namespace}/{key}",
    summary="Write an entry",
    description="Creates the entry (201) or writes a new version of it (200). With If-Match, only "
    "if the version is the one that it names; with `If-None-Match: *`, only if the entry does not "
    "exist; without either, the last write wins. `On-Conflict: merge` together with If-Match "
    "merges with concurrent changes of other paths.",
    body=Write,
    answers={200: Entry, 201: Entry, 204: None},
    dry_run=Entry,
    headers=(*WRITE_HEADERS, "Prefer"),
    problems=("not-registered", "quota-exceeded", "version-conflict"),
    etag=True,
)
PATCH_ENTRY = _operation(
    id="patch_entry",
    route="PATCH /state/{namespace}/{key}",
    summary="Patch an entry",
    description="Changes the value on the server, so that no concurrent write is lost. The media "
    "type selects the form of the patch: a JSON Merge Patch (RFC 7396), a JSON Patch (RFC 6902), "
    "or update operations. A missing entry is created from the default of the namespace. A "
    "failed `test` operation is a conflict (409).",
    body=Any,
    media_types=tuple(PATCH_TYPES),
    examples=_PATCH_EXAMPLES,
    answers={200: Entry, 201: Entry, 204: None},
    dry_run=Entry,
    headers=(*WRITE_HEADERS, "Prefer"),
    problems=("not-registered", "quota-exceeded", "version-conflict"),
    etag=True,
)
DELETE_ENTRY = _operation(
    id="delete_entry",
    route="DELETE /state/{namespace}/{key}",
    summary="Delete an entry",
    description="A missing entry is no error. The history stays, and the version continues to "
    "count if the entry is created again.",
    answers={204: None},
    dry_run=Cleared,
    headers=DELETE_HEADERS,
    problems=("not-registered", "version-conflict"),
)
LIST_ENTRIES = _operation(
    id="list_entries",
    route="GET /state/{namespace}",
    replica=True,
    summary="List the entries of a namespace",
    description="By key. With `valid`, tags or `scope_kind=custom`, a page may have fewer items than "
    "`limit`, or none: there are more as long as `next_cursor` is not null. A page with values ends "
    "before they exceed 16 MiB.",
    query=NamespaceFilters,
    answers={200: Page[EntryRow]},
    problems=("not-registered",),
)
CLEAR_NAMESPACE = _operation(
    id="clear_namespace",
    route="DELETE /state/{namespace}",
    summary="Delete the entries of a namespace",
    description="Deletes all entries, or those that the parameters select: all of them or none, "
    "at most 100,000 in one request. Their history stays.",
    query=ClearFilters,
    answers={200: Cleared},
    dry_run=Cleared,
    problems=("not-registered",),
)
LIST_STATE = _operation(
    id="list_state",
    route="GET /state",
    replica=True,
    summary="List entries",
    description="The entries of all namespaces, also of unregistered ones, by namespace and key. "
    "With filters, a page may have fewer items than `limit`, or none: there are more as long as "
    "`next_cursor` is not null. A page with values ends before they exceed 16 MiB.",
    query=StateFilters,
    answers={200: Page[EntryRow]},
)
CLEAR_STATE = _operation(
    id="clear_state",
    route="DELETE /state",
    summary="Delete entries",
    description="Deletes the entries that `prefix` or `scope_kind`, one of which is required, "
    "select in all namespaces, also in unregistered ones: all of them or none, at most 100,000 in "
    "one request. Their history stays.",
    query=ClearFilters,
    answers={200: Cleared},
    dry_run=Cleared,
)
READ_HISTORY = _operation(
    id="read_history",
    route="GET /history/{namespace}/{key}",
    replica=True,
    summary="List the versions of an entry",
    description="The versions that history compaction has not removed, newest first.",
    query=HistoryFilters,
    answers={200: Page[EntryVersion]},
    problems=("not-registered",),
)
PIN_VERSION = _operation(
    id="pin_version",
    route="PATCH /history/{namespace}/{key}",
    summary="Pin a version",
    description="History compaction keeps a pinned version. `pinned: false` removes the pin.",
    body=VersionPin,
    answers={200: EntryVersion},
    problems=("not-registered", "gone", "not-found"),
)
DIFF_ENTRY = _operation(
    id="diff_entry",
    route="GET /diff/{namespace}/{key}",
    replica=True,
    summary="Compare two versions",
    description="What changed between two versions. A deletion counts as the default of the "
    "namespace. Items of arrays are followed when they get another index: an insert is one "
    "difference.",
    query=Versions,
    answers={200: Diff},
    problems=("not-registered", "gone", "not-found"),
)
RESTORE_ENTRY = _operation(
    id="restore_entry",
    route="POST /restore/{namespace}/{key}",
    summary="Restore a version",
    description="Writes a new version with the value of an old one. Tags, pin and expiry stay. "
    "With If-Match, only if the current version is the one that it names.",
    body=VersionToRestore,
    answers={200: Entry},
    dry_run=Entry,
    headers=RESTORE_HEADERS,
    problems=("not-registered", "gone", "quota-exceeded", "version-conflict", "not-found"),
    etag=True,
)
LIST_KEY = _operation(
    id="list_key",
    route="GET /keys/{key}",
    replica=True,
    summary="List the entries of a key",
    description="The entries with this key in all namespaces, also in unregistered ones, by "
    "namespace. A page with values ends before they exceed 16 MiB.",
    query=KeyFilters,
    answers={200: Page[EntryRow]},
)
CLEAR_KEY = _operation(
    id="clear_key",
    route="DELETE /keys/{key}",
    summary="Delete the entries of a key",
    description="Deletes the entries with this key in all namespaces, also in unregistered ones: "
    "all of them or none. Their history stays.",
    answers={200: Cleared},
    dry_run=Cleared,
)
