"""Search for entries by their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import MAX_LIMIT, Answer, Body, Operation, Page, doc
from .entries import EntryRow, Include
from .types import JsonIn, Pointer, Scope

if TYPE_CHECKING:
    from state_admin.services.search import FoundEntry


class Match(Answer):
    """A string of the value that contains words of `text`, or a place that `where` names."""

    pointer: Pointer
    snippet: Annotated[str, doc("The text around the match, without markup.", "Ship it")]


class Hit(EntryRow, kw_only=True):
    """An entry that meets the query."""

    matches: Annotated[list[Match], doc("Where the value meets the query.")]

    @classmethod
    def of_hit(cls, hit: FoundEntry, *, with_value: bool) -> Self:
        matches = [Match(pointer=each.pointer, snippet=each.snippet) for each in hit.matches]
        return cls.of(hit.entry, valid=hit.valid, with_value=with_value, matches=matches)


class Condition(Body):
    """A condition on the value: what stands at `path` equals `equals`."""

    path: Annotated[Pointer, doc("A place in the value.", "/status", max_length=2048)]
    equals: Annotated[JsonIn, doc("What must stand there. Numbers are compared by value.", "open")]


class Search(Body):
    text: (
        Annotated[
            str,
            doc(
                "Words that the strings of the value contain, all of them. `word*` finds words "
                'that begin with it, `"a phrase"` the words in this order.',
                "ship*",
            ),
        ]
        | UnsetType
    ) = UNSET
    where: (
        Annotated[list[Condition], doc("Conditions that the value meets, all of them.")] | UnsetType
    ) = UNSET
    namespace: (
        Annotated[str, doc("Only entries of this namespace.", "team_context", max_length=128)]
        | UnsetType
    ) = UNSET
    prefix: (
        Annotated[
            str, doc("Only entries whose key begins with this.", "parent_thread::", max_length=512)
        ]
        | UnsetType
    ) = UNSET
    scope_kind: (
        Annotated[Scope, doc("Only entries with this scope.", "parent_thread")] | UnsetType
    ) = UNSET
    include: Include | UnsetType = UNSET
    limit: (
        Annotated[int, doc("Items per page. Default: 50.", 50, ge=1, le=MAX_LIMIT)] | UnsetType
    ) = UNSET
    cursor: (
        Annotated[
            str, doc("Position to continue from: `next_cursor` of the previous page.", min_length=1)
        ]
        | UnsetType
        | None
    ) = UNSET


SEARCH = Operation(
    id="search",
    method="POST",
    path="/search",
    tag="search",
    summary="Search entries",
    description="The entries of registered namespaces that meet `text` and `where`, at least one of "
    "which is required; the newest entry first. A page may have fewer items than `limit`, or "
    "none: there are more as long as `next_cursor` is not null.",
    role=Role.VIEWER,
    body=Search,
    answers={200: Page[Hit]},
    problems=("not-registered",),
)
