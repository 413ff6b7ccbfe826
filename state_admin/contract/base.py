"""What every noun of the contract is built from: structs, operations, and lists.

A noun's module declares its structs (bodies, queries, responses) and its operations. Parsing,
encoding and the OpenAPI document come from these declarations; nothing is declared a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeVar

import msgspec
from msgspec import UNSET, Meta

from state_admin.domain.access import Role
from state_admin.domain.moments import timestamp
from state_admin.domain.numbers import MAX_WHOLE

T = TypeVar("T")

JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"
EVENT_STREAM: Final = "text/event-stream"
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
MAX_WAIT: Final = 30

_NO_EXAMPLE: Final = object()


def doc(description: str, example: Any = _NO_EXAMPLE, **constraints: Any) -> Meta:
    """The documentation of a field, for use in `Annotated`.

    `example` is a JSON value. `choices` are the values of an enumeration whose column is checked by
    the database; in a body, use a Literal instead, which msgspec checks. `constraints` are those of
    msgspec.Meta (`ge`, `max_length`, …), which are enforced in requests. `schema` adds members to
    the JSON Schema for documentation only: for rules that a service checks with its own message.
    """
    extra = constraints.pop("schema", None)
    if choices := constraints.pop("choices", ()):
        extra = {"enum": list(choices)}
    examples = None if example is _NO_EXAMPLE else [example]
    return Meta(description=description, examples=examples, extra_json_schema=extra, **constraints)


class Answer(msgspec.Struct, kw_only=True, gc=False):
    """The base of response documents. A member that may be absent is `| UnsetType = UNSET`."""

    @classmethod
    def from_attributes(cls, source: object, **members: Any) -> Self:
        """The document with these members. Every other required one is the attribute of `source` with
        its name; times are spelled as in all responses."""
        for name in _required_of(cls) - members.keys():
            value = getattr(source, name)
            members[name] = timestamp(value) if isinstance(value, datetime) else value
        return cls(**members)


@cache
def _required_of(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(each.name for each in msgspec.structs.fields(kind) if each.required)


class DryRun(Answer):
    """The mark of the response to a dry run, beside the members of the response itself."""

    dry_run: Annotated[bool, doc("Nothing was changed.", True, schema={"const": True})]


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The base of request documents and of the objects in them. An optional member is
    `| UnsetType = UNSET`, so that an explicit null is refused where null is not a valid value."""

    def given(self) -> dict[str, Any]:
        """The members that were sent, by name."""
        members = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: member for name, member in members if member is not UNSET}


class Query(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The base of query parameters. A parameter without a default is required; None means that it
    is absent. Types: str, int, bool, datetime, Literal, and list[str] for a repeated one."""


# Types of optional members: constraints belong to a type, the description to the union with it.
NonEmpty = Annotated[str, Meta(min_length=1)]
ShortText = Annotated[str, Meta(max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
KeyText = Annotated[str, Meta(max_length=512)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
AwareTime = Annotated[datetime, Meta(tz=True)]

Limit = Annotated[int, doc("Items per page.", 50, ge=1, le=MAX_LIMIT)]
WaitSeconds = Annotated[
    int,
    doc(
        "Long polling: hold the response for up to so many seconds, until there is news.",
        ge=0,
        le=MAX_WAIT,
    ),
]


class Paging(Query):
    """Query parameters of every list."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Annotated[
        NonEmpty | None, doc("Position to continue from: `next_cursor` of the previous page.")
    ] = None


class TimeRange(Paging):
    """Query parameters of a list whose items have a creation time."""

    created_after: Annotated[AwareTime | None, doc("Only items created at this time or later.")] = (
        None
    )
    created_before: Annotated[AwareTime | None, doc("Only items created before this time.")] = None


Order = Literal["asc", "desc"]


class AscendingList(TimeRange):
    """Query parameters of a list in ascending order: by name or number, or oldest first."""

    order: Annotated[Order, doc("`desc`: in the reverse order, from the last item.")] = "asc"


class DescendingList(TimeRange):
    """Query parameters of a list in descending order: newest first."""

    order: Annotated[Order, doc("`asc`: in the reverse order, oldest first.")] = "desc"


class Page(Answer, Generic[T]):
    """One page of a list."""

    items: Annotated[list[T], doc("The items of this page.")]
    next_cursor: Annotated[
        str | None, doc("Send as `cursor` to fetch the next page. Null on the last page.", None)
    ]


class Wait(Query):
    """Long polling."""

    wait: WaitSeconds = 0


# The statuses of responses that are not stored for an Idempotency-Key: the same request may succeed later.
NOT_KEPT: Final = (401, 408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: a method on a path, what it accepts and what it returns.

    `route`: the method and the path, such as `GET /runs/{run_id}`. `answers`: the type of the response by status; None means no body, and a tuple one of several
    types. `media_types`: the types of the body where it is not JSON as such; a body of any JSON has
    the type Any. `body_required` False: without a body, every member has its default. `dry_run`: the
    response to `?dry_run=true`, likewise, and DryRun where it is only the mark; the interface runs
    the operation in a transaction that it rolls back. `headers`: conditional headers and preferences
    that the operation evaluates; a write refuses other conditional headers. `problems`: slugs of the problem types beyond those that
    every operation of its kind has. `location`: the response to a creation has a Location. `session`: the cookie of a signed-in browser authenticates as
    well as a token. `kept`: repeats with one Idempotency-Key are answered from a record, and a
    Change-Reason is kept. `api_key`: `x-api-key` may hold the token. `problem_type`: the media type
    of problems, for other protocols. `replica`: a read replica may answer (services/replicas.py).
    `response_headers`: names of headers that only this operation sends.
    `examples`: of bodies, and of responses that are not JSON, by media type. Without one, the example
    of a body has all its members: declare one where the server refuses them together.
    """

    id: str
    route: str
    tag: str
    summary: str
    description: str = ""
    role: Role | None = None
    query: type[Query] = Query
    body: Any = None
    body_required: bool = True
    media_types: tuple[str, ...] = (JSON_TYPE,)
    answers: Mapping[int, Any] = field(default_factory=dict)
    dry_run: Any = None
    headers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    etag: bool = False
    location: bool = False
    answer_type: str = JSON_TYPE
    session: bool = False
    kept: bool = True
    api_key: bool = False
    problem_type: str = PROBLEM_TYPE
    replica: bool = False
    response_headers: tuple[str, ...] = ()
    examples: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @cached_property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @property
    def reads(self) -> bool:
        return self.method == "GET"

    def keeps(self, status: int) -> bool:
        """Whether a repeat with the same Idempotency-Key may get a stored response of this status."""
        return self.kept and not self.reads and status not in NOT_KEPT

    @property
    def least_role(self) -> Role:
        """The role that the caller needs. Services check again."""
        return self.role or (Role.VIEWER if self.reads else Role.EDITOR)

    @property
    def accepted(self) -> tuple[str, ...]:
        """The media types of the body; () for an operation without one."""
        return self.media_types if self.body is not None else ()

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema of each query parameter, by name."""
        parameters = dict(parameters_of(self.query))
        if self.dry_run is not None:
            parameters["dry_run"] = _DRY_RUN
        return parameters

    def read(self, query: Mapping[str, Any]) -> Query:
        """The query with converted parameters. A field has another name where it would be a Python
        keyword."""
        return self.query(**{self._fields[name]: value for name, value in query.items()})

    @cached_property
    def _fields(self) -> dict[str, str]:
        return {each.encode_name: each.name for each in msgspec.structs.fields(self.query)}

    @cached_property
    def required(self) -> frozenset[str]:
        """The query parameters that must be given."""
        fields = msgspec.structs.fields(self.query)
        return frozenset(each.encode_name for each in fields if each.required)

    @property
    def path_parameters(self) -> Iterator[str]:
        return (part[1:-1] for part in self.path.split("/") if part.startswith("{"))


_DRY_RUN: Final = {
    "type": "boolean",
    "default": False,
    "description": "`true`: validate and count, but change nothing."
    " The response has `dry_run: true`.",
}


def parameters_of(query: type[Query]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each parameter with its JSON Schema. None, the default of an absent one, is not part of the
    schema."""
    (_,), components = msgspec.json.schema_components([query])
    for name, schema in components[query.__name__]["properties"].items():
        if "anyOf" in schema:
            (only,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
            schema = {**only, **{k: v for k, v in schema.items() if k != "anyOf"}}
        if schema.get("default", ...) in (None, []):
            schema = {k: v for k, v in schema.items() if k != "default"}
        if "enum" in schema:
            schema = {"type": "string", **schema}
        if schema["type"] == "integer":
            schema.setdefault("maximum", MAX_WHOLE)
        yield name, schema
