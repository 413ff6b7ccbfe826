"""The problem types of errors that a library reports as an HTTP status, and the refusal of a large body."""

from __future__ import annotations

from . import errors
from .errors import Problem

_OF_STATUS: dict[int, type[Problem]] = {
    kind.status: kind
    for kind in (
        errors.BadRequest,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.NotFound,
        errors.MethodNotAllowed,
        errors.NotAcceptable,
        errors.RequestTimeout,
        errors.TooLarge,
        errors.UnsupportedMediaType,
        errors.MisdirectedRequest,
        errors.Unavailable,
    )
}
_HINTS = {413: "Send less in one request. The operator of the server can raise MAX_BODY_BYTES."}


def body_too_large(limit: int) -> Problem:
    """The refusal of a request body of more than `limit` bytes."""
    return errors.TooLarge(
        f"the body has more than {limit} bytes",
        hint=_HINTS[413],
        limit=limit,
    )


def problem_of_status(status: int, detail: str) -> Problem:
    """The problem for an error that a library reports as a status and a message."""
    if status >= 500 and status not in _OF_STATUS:
        return errors.InternalError()
    return _OF_STATUS.get(status, errors.BadRequest)(detail, hint=_HINTS.get(status, ""))
