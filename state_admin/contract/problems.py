"""Problem documents: how every error is returned (RFC 9457). The types are in services/errors.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, UnsetType

from state_admin.domain import values

from .base import Answer, doc
from .types import Fault, JsonOut, json_of

if TYPE_CHECKING:
    from state_admin.services import errors


class Problem(Answer):
    """A problem document (RFC 9457). Some types have further members, such as `expected` and `actual`
    of a conflict, `limit`, or `retry_after`; the page of the type lists them."""

    type: Annotated[
        str, doc("Problem type, and the path of the page that explains it.", "/problems/not-found")
    ]
    title: Annotated[str, doc("Name of the type; constant.", "Resource not found")]
    status: Annotated[int, doc("HTTP status code.", 404, ge=400, le=599)]
    detail: Annotated[str, doc("What is wrong with this request.", "thread not found: thread-1")]
    hint: Annotated[str | UnsetType, doc("What to do.", "Check the id.")] = UNSET
    instance: Annotated[
        str | UnsetType, doc("Id of the request.", "0199f3c2a41c7d3e9b1f6f0f4a5e8c21")
    ] = UNSET
    errors: Annotated[list[Fault] | UnsetType, doc("Each wrong place in the request body.", [])] = (
        UNSET
    )


# The problem of one of several operations in one request.
Failure = Annotated[
    JsonOut,
    doc(
        "Why the operation failed. Absent if it succeeded.",
        {
            "type": "/problems/not-found",
            "title": "Resource not found",
            "status": 404,
            "detail": "thread not found: thread-1",
        },
        schema={"$ref": "#/components/schemas/Problem"},
    ),
]


def failure_of(problem: errors.Problem) -> JsonOut:
    """The problem document as JSON. It may contain stored values, whose spelling (1.10, big integers)
    msgspec would change."""
    return json_of(values.dump(problem.document()))
