"""The problem types of errors that a library reports as an HTTP status."""

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


def problem_of_status(status: int, detail: str) -> Problem:
    """The problem for an error that a library reports as a status and a message."""
    if status >= 500 and status not in _OF_STATUS:
        return errors.InternalError()
    return _OF_STATUS.get(status, errors.BadRequest)(detail)
