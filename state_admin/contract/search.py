"""Search for entries by their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role
from state_admin.domain.search import Operator

from .base import MAX_LIMIT, Answer, Body, KeyText, NonEmpty, Operation, Page, ShortText, doc
from .entries import EntryRow, Include
from .types import JsonIn, Pointer, Scope

if TYPE_CHECKING:
    from state_admin.services.search import FoundEntry


class Match(Answer):
    """A place in the value that contains words of `text`, or that a condition names."""

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
    """A condition on the value at `path`: either `equals`, or `operator` and `value`."""

    path: Annotated[
        Pointer,
        doc(
            "JSON Pointer to a part of the value. If it does not exist, the condition is not met.",
            "/price",
            max_length=2048,
        ),
    ]
    operator: Annotated[
        Operator | UnsetType,
        doc(
            "`>`, `>=`, `<` and `<=` compare numbers with numbers and strings with strings. "
            "`contains`: a string contains the text, ignoring case; an array the item; an object "
            "the name. `exists` takes no `value`.",
            ">",
        ),
    ] = UNSET
    value: Annotated[JsonIn | UnsetType, doc("What is compared with the value at `path`.", 100)] = (
        UNSET
    )
    equals: Annotated[
        JsonIn | UnsetType, doc("What must be at `path`. Numbers are compared by value.", "open")
    ] = UNSET


class Search(Body):
    """What to search for, and in which entries."""

    text: Annotated[
        str | UnsetType,
        doc(
            "Words that the key or the value contains, all of them: in strings, numbers, booleans, "
            "null and the names of members. A word of at least two characters also finds words that begin "
            "with it. `*part` finds words that contain `part`; no index has them, so the values are read "
            "one by one, and a page may be empty. "
            '`"a phrase"` finds exactly these words in this order. Conditions may be '
            "part of the text: `/price > 100`.",
            "ship /price > 100",
        ),
    ] = UNSET
    where: Annotated[
        list[Condition] | UnsetType,
        doc(
            "Conditions that the value meets, all of them.",
            [{"path": "/price", "operator": ">", "value": 100}],
        ),
    ] = UNSET
    namespace: Annotated[
        ShortText | UnsetType, doc("Only entries of this namespace.", "team_context")
    ] = UNSET
    prefix: Annotated[
        KeyText | UnsetType, doc("Only entries whose key begins with this.", "parent_thread::")
    ] = UNSET
    scope_kind: Annotated[
        Scope | UnsetType, doc("Only entries with this scope.", "parent_thread")
    ] = UNSET
    include: Include | UnsetType = UNSET
    limit: (
        Annotated[int, doc("Items per page. Default: 50.", 50, ge=1, le=MAX_LIMIT)] | UnsetType
    ) = UNSET
    cursor: Annotated[
        NonEmpty | UnsetType | None,
        doc("Position to continue from: `next_cursor` of the previous page.", None),
    ] = UNSET


SEARCH = Operation(
    id="search",
    route="POST /search",
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
