"""The problem types of errors that a library reports as an HTTP status, those that only the
transport of a request causes, and the refusal of a large body."""

from __future__ import annotations

from typing import ClassVar

from . import errors
from .errors import Problem


class NotAcceptable(Problem):
    slug = "not-acceptable"
    status = 406
    title = "No acceptable media type"
    meaning = "The server cannot produce a response of a media type that the `Accept` header names."
    causes: ClassVar[tuple[str, ...]] = (
        "The `Accept` header excludes every media type of the path.",
    )
    remedy = "Send `Accept: application/json`, or leave the header out."


class RequestTimeout(Problem):
    slug = "request-timeout"
    status = 408
    title = "Request timeout"
    meaning = "The body of the request arrived too slowly. The server closed the connection."
    causes: ClassVar[tuple[str, ...]] = (
        "The client announced a body and did not send it, or stopped in the middle.",
        "The connection is slower than the minimum rate of the server.",
    )
    remedy = "Send the body without pauses, then retry. For slow networks, raise `BODY_IDLE_SECONDS` or lower `BODY_MIN_RATE`."


class MisdirectedRequest(Problem):
    slug = "misdirected-request"
    status = 421
    title = "Host not served here"
    meaning = "The server does not serve the host that the request names."
    causes: ClassVar[tuple[str, ...]] = (
        "The `Host` header names a host that is not in `ALLOWED_HOSTS`.",
        "A DNS name of another site points to this server.",
    )
    remedy = "Use the address of the server. An operator adds further names to `ALLOWED_HOSTS`."


_OF_STATUS: dict[int, type[Problem]] = {
    kind.status: kind
    for kind in (
        errors.BadRequest,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.NotFound,
        errors.MethodNotAllowed,
        NotAcceptable,
        RequestTimeout,
        errors.TooLarge,
        errors.UnsupportedMediaType,
        MisdirectedRequest,
        errors.Unavailable,
    )
}
_HINTS = {413: "Send less in one request. The operator of the server can raise MAX_BODY_BYTES."}


def body_too_large(limit: int) -> Problem:
    """The refusal of a request body of more than `limit` bytes."""
    return errors.TooLarge(f"the body has more than {limit} bytes", hint=_HINTS[413], limit=limit)


def problem_of_status(status: int, detail: str) -> Problem:
    """The problem for an error that a library reports as a status and a message."""
    if status >= 500 and status not in _OF_STATUS:
        return errors.InternalError()
    return _OF_STATUS.get(status, errors.BadRequest)(detail, hint=_HINTS.get(status, ""))
