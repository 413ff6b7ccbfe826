"""The exceptions of this package.

The server returns every error as a problem document (RFC 9457); `type` selects the class. All of
them are `CommonholdError`: `Problem` is a response, `Unreachable` means that there was none.
`InvalidArgument` and `ClientClosed` are mistakes of the program: nothing was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http.client import responses
from typing import Any, ClassVar


class CommonholdError(Exception):
    """The base of everything this package raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would copy the text, not the fields from which the text is built.
        return _again, (type(self), *self.args), vars(self)


def _again(kind: type[CommonholdError], *args: Any) -> CommonholdError:
    problem = kind.__new__(kind)
    Exception.__init__(problem, *args)
    return problem


class InvalidArgument(CommonholdError, TypeError, ValueError):
    """An argument of a call has a wrong type or value, or a value is not JSON. Nothing was sent."""


class ClientClosed(CommonholdError, RuntimeError):
    """The client was used after `close()`, or after the end of its `with` block."""


class Unreachable(CommonholdError):
    """There was no response, in spite of all retries. A write may have been stored nevertheless."""


class Problem(CommonholdError):
    """The server returned a problem document (RFC 9457).

    `title` is constant per problem type. `detail` is the message of this occurrence. `hint` says
    what to do. `document` is the whole document.
    """

    slug: ClassVar[str] = "problem"

    def __init__(self, document: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.document = dict(document)
        self.title = str(document.get("title", ""))
        self.detail = str(document.get("detail", ""))
        self.hint = str(document.get("hint", ""))
        self.status = int(document.get("status", 0))
        self.request_id = str(document.get("instance", ""))
        self.retry_after = retry_after
        super().__init__(self.detail or self.title)

    def __str__(self) -> str:
        errors = "; ".join(f"{e['pointer'] or '/'} {e['message']}" for e in self.errors)
        message = self.detail or self.title or "no message"
        return ". ".join(part for part in (message, errors, self.hint) if part)

    @property
    def errors(self) -> list[dict[str, str]]:
        """The errors with their places: `{"pointer": "/a/b", "message": …}`."""
        errors = self.document.get("errors")
        # A response of a proxy may have another member with this name.
        found = errors if isinstance(errors, list) else []
        return [e for e in found if isinstance(e, dict) and {"pointer", "message"} <= e.keys()]


class BadRequest(Problem):
    """The request itself is wrong: a parameter, a header, a name."""

    slug = "bad-request"


class Invalid(Problem):
    """The content of the request is not valid. `errors` says where and why."""

    slug = "invalid"


class Unauthenticated(Problem):
    """The token is missing, unknown, expired or revoked."""

    slug = "unauthenticated"


class Forbidden(Problem):
    """The role of the token, or its limits, do not permit it."""

    slug = "forbidden"


class QuotaExceeded(Forbidden):
    """A quota of the workspace is used up."""

    slug = "quota-exceeded"


class NotFound(Problem):
    """It does not exist, or the token has no access to it."""

    slug = "not-found"


class NotRegistered(NotFound):
    """`profile key not registered: {namespace}`."""

    slug = "not-registered"

    @classmethod
    def of(cls, namespace: str) -> NotRegistered:
        """The same problem, raised by a backend without a server."""
        return cls(
            {
                "type": f"/problems/{cls.slug}",
                "title": "Namespace not registered",
                "status": 404,
                "detail": f"profile key not registered: {namespace}",
            }
        )


class MethodNotAllowed(Problem):
    """The path has no such method."""

    slug = "method-not-allowed"


class NotAcceptable(Problem):
    """The server has no response in the media type of the header Accept."""

    slug = "not-acceptable"


class RequestTimeout(Problem):
    """The body of the request arrived too slowly."""

    slug = "request-timeout"


class Conflict(Problem):
    """The current state does not permit the operation."""

    slug = "conflict"


class _Mismatch(Problem):
    @property
    def expected(self) -> int:
        """The version or revision that the call expected."""
        return int(self.document["expected"])

    @property
    def actual(self) -> int:
        """The current version or revision."""
        return int(self.document["actual"])


class RevisionConflict(Conflict, _Mismatch):
    """A commit's base revision is not the current one. No part of the commit was applied."""

    slug = "revision-conflict"


class SchemaConflict(Conflict):
    """A namespace is registered with an incompatible schema or default; `errors` lists the
    differences. `schema_version` is the version of the registered one."""

    slug = "schema-conflict"

    @property
    def schema_version(self) -> int:
        return int(self.document["schema_version"])


class VersionConflict(_Mismatch):
    """A precondition on a version failed; nothing changed.

    `base`: the value you started from, `theirs`: the stored value, `yours`: the value you sent; each
    None where it is not known. `clashes`: the pointers both changed, each with all three values,
    and `pointers` with the place in each side where an item of a list has another index.
    """

    slug = "version-conflict"

    @property
    def base(self) -> Any:
        return self.document.get("base")

    @property
    def theirs(self) -> Any:
        return self.document.get("theirs")

    @property
    def yours(self) -> Any:
        return self.document.get("yours")

    @property
    def clashes(self) -> list[dict[str, Any]]:
        return list(self.document.get("clashes") or [])

    @classmethod
    def of(cls, expected: int, actual: int, **data: Any) -> VersionConflict:
        """The same problem, raised by a backend without a server."""
        document = {
            "type": f"/problems/{cls.slug}",
            "title": "Version conflict",
            "status": 412,
            "detail": f"version conflict: expected {expected}, actual {actual}",
            "expected": expected,
            "actual": actual,
        }
        return cls({**document, **data})


class Superseded(Conflict):
    """The run was given to another worker: stop working on it."""

    slug = "fencing-token-superseded"


class Unreadable(Conflict):
    """A secret is stored, but no configured key of the server decrypts it."""

    slug = "unreadable"


class InFlight(Conflict):
    """The same call is still in progress."""

    slug = "in-flight"


class Gone(Problem):
    """It existed and is no longer available, such as an old cursor or a compacted revision."""

    slug = "gone"


class TooLarge(Problem):
    """The value or the body is larger than the limit that the message names."""

    slug = "too-large"


class UnsupportedMediaType(Problem):
    """The server does not read the media type of the body."""

    slug = "unsupported-media-type"


class MisdirectedRequest(Problem):
    """The server does not serve the host of the request."""

    slug = "misdirected-request"


class RateLimited(Problem):
    """Too many calls, after all retries; `retry_after` says how many seconds to wait."""

    slug = "rate-limited"


class InternalError(Problem):
    """An unexpected error in the server. `request_id` finds it in the server's log."""

    slug = "internal"


class Unavailable(Problem):
    """The server cannot serve the request now. All retries failed."""

    slug = "unavailable"


class WorkspaceFrozen(Unavailable):
    """Writes are refused while the workspace is moved to another cell."""

    slug = "workspace-frozen"


class WorkspaceMoved(Unavailable):
    """The workspace is in another cell, to which requests are not sent yet."""

    slug = "workspace-moved"


class TooSlow(Problem):
    """The last event of a stream whose reader does not keep up."""

    slug = "too-slow"


def _kinds(base: type[Problem]) -> Iterator[type[Problem]]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds(kind)


def problem_of(
    status: int, document: Any, retry_after: float | None = None, hint: str = ""
) -> Problem:
    """The exception for a response, also for one that a proxy sent. `hint`: what to do if the document
    is not a problem of the API."""
    members = document if isinstance(document, dict) else {}
    if not members.keys() & {"type", "title", "detail"}:
        title = f"{status} {responses.get(status, '')}".strip()
        document = {**members, "title": title, "hint": hint}
    document = {**document, "status": status}
    slug = str(document.get("type", "")).rpartition("/")[2]
    by_slug = {kind.slug: kind for kind in _kinds(Problem) if "slug" in vars(kind)}
    kind = by_slug.get(slug) or _BY_STATUS.get(status, Problem)
    return kind(document, retry_after)


_BY_STATUS: dict[int, type[Problem]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    408: RequestTimeout,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    415: UnsupportedMediaType,
    421: MisdirectedRequest,
    422: Invalid,
    429: RateLimited,
    500: InternalError,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
