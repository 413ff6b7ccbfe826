"""Batches: many operations on entries in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role
from state_admin.domain.patches import PatchKind

from .base import Answer, Body, Operation, doc
from .entries import Entry, PinnedIn, TagsIn, TtlSeconds, ValueIn
from .problems import Failure, failure_of
from .types import BigInt, ItemStatus, JsonIn, Key, Namespace

if TYPE_CHECKING:
    from state_admin.services.batches import OperationResult


class BatchOperation(Body):
    """One operation of a batch.

    Besides `op`, `namespace` and `key`, a `put` uses `value`, `if_version`, `ttl_seconds`, `tags` and
    `pinned`; a `patch` uses `patch`, `patch_type` and `if_version`; a `delete` uses `if_version`; a
    `get` uses no other member. Members that the operation does not use are refused."""

    op: Annotated[Literal["get", "put", "patch", "delete"], doc("What to do.", "put")]
    namespace: Annotated[Namespace, doc("Namespace of the entry.", min_length=1)]
    key: Annotated[Key, doc("Key of the entry.", min_length=1)]
    value: Annotated[ValueIn, doc("The value of a `put`, which needs one.")] | UnsetType = UNSET
    patch: Annotated[
        JsonIn | UnsetType, doc("The patch of a `patch`, which needs one.", {"goal": "Ship it"})
    ] = UNSET
    patch_type: Annotated[
        PatchKind | UnsetType,
        doc(
            "Form of `patch`: a JSON Merge Patch (RFC 7396), a JSON Patch (RFC 6902), or update "
            "operations. Default: `merge`. Required if `patch` is an array or has the members `op` "
            "and `path`."
        ),
    ] = UNSET
    if_version: Annotated[
        BigInt | UnsetType,
        doc(
            "Only if the entry has this version; 0: only if it does not exist. "
            "Default: whatever version it has.",
            2,
        ),
    ] = UNSET
    ttl_seconds: TtlSeconds | UnsetType | None = UNSET
    tags: TagsIn | UnsetType = UNSET
    pinned: PinnedIn | UnsetType = UNSET

    @property
    def unused(self) -> list[str]:
        """The members that `op` does not use."""
        names = [name for name in _UNUSED[self.op] if getattr(self, name) is not UNSET]
        plain = self.op == "patch" or self.patch_type in (UNSET, "merge")
        return names if plain else [*names, "patch_type"]


_ATTRIBUTES: Final = ("ttl_seconds", "tags", "pinned")
# Members that each operation does not use, without `patch_type`, which may be `merge` in all.
_UNUSED: Final = {
    "get": ("value", "patch", "if_version", *_ATTRIBUTES),
    "put": ("patch",),
    "patch": ("value", *_ATTRIBUTES),
    "delete": ("value", "patch", *_ATTRIBUTES),
}


# The service checks their number, also for the operations that come with messages.
BatchOperations = Annotated[
    list[BatchOperation],
    doc(
        "1 to 1,000 operations.",
        [
            {
                "op": "put",
                "namespace": "team_context",
                "key": "task::42",
                "value": {"goal": "Ship it"},
            },
            {"op": "get", "namespace": "team_context", "key": "task::41"},
        ],
        schema={"minItems": 1, "maxItems": 1000},
    ),
]


class Batch(Body, kw_only=True):
    """Operations on entries, which are performed in this order."""

    atomic: Annotated[
        bool,
        doc(
            "True: all operations are performed or none, and the first failure is the response. "
            "False: each on its own, with a problem in the results of those that failed."
        ),
    ] = True
    operations: BatchOperations


class BatchResult(Answer):
    """The result of one operation of a batch."""

    status: ItemStatus
    entry: Annotated[
        Entry | UnsetType,
        doc(
            "The entry. Absent after a `delete` or a failure, and after any write with "
            "`Prefer: return=minimal`."
        ),
    ] = UNSET
    version: Annotated[
        int | UnsetType,
        doc(
            "Version that a `delete` created; 0: there was no entry. With `Prefer: return=minimal` "
            "also the version that a `put` or `patch` wrote. Absent otherwise.",
            3,
        ),
    ] = UNSET
    problem: Failure | UnsetType = UNSET

    @classmethod
    def of(cls, outcome: OperationResult, *, minimal: bool = False) -> Self:
        if outcome.problem is not None:
            return cls(status=outcome.problem.status, problem=failure_of(outcome.problem))
        if outcome.entry is None:
            return cls(status=204, version=outcome.version)
        status = 201 if outcome.created else 200
        if minimal and outcome.op != "get":
            return cls(status=status, version=outcome.entry.version)
        return cls(status=status, entry=Entry.of(outcome.entry))


class BatchResults(Answer):
    """What a batch did."""

    results: Annotated[
        list[BatchResult],
        doc("The results in the order of the operations.", [{"status": 204, "version": 3}]),
    ]


RUN_BATCH = Operation(
    id="run_batch",
    route="POST /state/batch",
    tag="entries",
    summary="Run a batch",
    description="Gets, puts, patches and deletes up to 1,000 entries. All `get` operations read the "
    "same snapshot of the database, and the writes of the batch that come before them. A batch with "
    "only `get` operations needs the role viewer, any other batch the role editor. The values that "
    "patches produce have at most 32 MiB in all, and the values that `get` operations return have at "
    "most another 32 MiB.",
    role=Role.VIEWER,
    body=Batch,
    answers={200: BatchResults},
    dry_run=BatchResults,
    headers=("Prefer",),
    problems=("not-registered", "not-found", "version-conflict", "quota-exceeded"),
)
