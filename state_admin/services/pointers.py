"""The places of errors in the body of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import BadRequest, Problem


@contextmanager
def prefix_pointers(pointer: str) -> Iterator[None]:
    """Prefix the pointers of problems that occur in the block with the place of the part that the
    block reads, so that they start from the body of the request."""
    try:
        yield
    except Problem as problem:
        # Pointers of a default that does not match its schema start from the default.
        place = pointer + problem.data.pop("within", "")
        for error in problem.data.get("errors", ()):
            error["pointer"] = place + error["pointer"]
        raise


@contextmanager
def cursor_in_body() -> Iterator[None]:
    """Report an invalid cursor as an item of `errors` with the pointer `/cursor`, for operations that take
    the cursor in the body. Otherwise, it is reported as the query parameter."""
    try:
        yield
    except BadRequest as refused:
        if refused.data.pop("parameter", None) is not None:
            refused.data["errors"] = [{"pointer": "/cursor", "message": refused.detail}]
        raise
