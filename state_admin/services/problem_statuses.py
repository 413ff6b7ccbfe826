"""The problem types of errors that a library reports as an HTTP status."""

from __future__ import annotations

from .errors import (
    BadRequest,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    MisdirectedRequest,
    NotAcceptable,
    NotFound,
    Problem,
    RequestTimeout,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
)

_OF_STATUS: dict[int, type[Problem]] = {
    kind.status: kind
    for kind in (
        BadRequest,
        Unauthenticated,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        RequestTimeout,
        TooLarge,
        UnsupportedMediaType,
        MisdirectedRequest,
        Unavailable,
    )
}


def problem_of_status(status: int, detail: str) -> Problem:
    """The problem for an error that a library reports as a status and a message."""
    if status >= 500 and status not in _OF_STATUS:
        return InternalError()
    return _OF_STATUS.get(status, BadRequest)(detail)
