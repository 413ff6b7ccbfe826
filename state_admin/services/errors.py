"""The problem types: every error that an interface can return (RFC 9457, semantics §10).

Each class is one type. `slug`, `status` and `title` are constant; an instance adds the message of
one occurrence, a hint and data. Interfaces send `document()` and add nothing of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from state_admin.domain.moments import timestamp
from state_admin.domain.values import Fault

if TYPE_CHECKING:
    from .conflicts import Collision

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """The base class.

    `detail` is the message of this occurrence, exact where semantics fixes it. `hint` says what to
    do about it. `data` holds the extension members of the document.
    """

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, detail: str, *, hint: str = "", **data: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.data = data

    def document(self, request_id: str = "", *, status: int | None = None) -> dict[str, Any]:
        """The problem document. `status` replaces the status of the type."""
        body: dict[str, Any] = {
            **{name: _as_json(member) for name, member in self.data.items()},
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": status or self.status,
            "detail": self.detail,
        }
        if self.hint:
            body["hint"] = self.hint
        if request_id:
            body["instance"] = request_id
        return body


def _as_json(member: Any) -> Any:
    return timestamp(member) if isinstance(member, datetime) else member


def problem_types(base: type[Problem] = Problem) -> Iterator[type[Problem]]:
    """Every problem type, base classes first."""
    for kind in base.__subclasses__():
        yield kind
        yield from problem_types(kind)


class BadRequest(Problem):
    """The request is malformed: syntax, an unknown field or parameter, an invalid cursor."""

    slug = "bad-request"
    status = 400
    title = "Malformed request"


class Unauthenticated(Problem):
    slug = "unauthenticated"
    status = 401
    title = "Authentication required"


class Forbidden(Problem):
    slug = "forbidden"
    status = 403
    title = "Permission denied"


class QuotaExceeded(Problem):
    slug = "quota-exceeded"
    status = 403
    title = "Quota exceeded"


class NotFound(Problem):
    """Absent, in another workspace, or outside the caller's grant: the response is the same."""

    slug = "not-found"
    status = 404
    title = "Resource not found"


class NotRegistered(NotFound):
    slug = "not-registered"
    title = "Profile key not registered"

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f"profile key not registered: {namespace}",
            hint=f"Register it with PUT /api/v1/namespaces/{quote(namespace, safe='', errors='replace')},"
            " or check the spelling.",
        )


class MethodNotAllowed(Problem):
    slug = "method-not-allowed"
    status = 405
    title = "Method not allowed"


class NotAcceptable(Problem):
    slug = "not-acceptable"
    status = 406
    title = "No acceptable media type"


class Conflict(Problem):
    """The request is valid, but the current state does not permit it."""

    slug = "conflict"
    status = 409
    title = "Conflict with the current state"


class RevisionConflict(Conflict):
    slug = "revision-conflict"
    title = "Revision conflict"

    def __init__(
        self,
        expected: int,
        actual: int,
        *,
        hint: str = "Read the state again and retry.",
        **data: Any,
    ) -> None:
        super().__init__(
            f"revision conflict: expected {expected}, actual {actual}",
            hint=hint,
            expected=expected,
            actual=actual,
            **data,
        )


class Superseded(Conflict):
    """The worker's fencing token is not the newest: the run was leased to another worker."""

    slug = "fencing-token-superseded"
    title = "Fencing token superseded"

    def __init__(self, given: int, current: int) -> None:
        super().__init__(
            f"fencing token superseded: {given}, current {current}",
            hint="Stop working on the run: another worker leased it, or the lease was released.",
            given=given,
            current=current,
        )


class InFlight(Problem):
    """Another request holds what this one needs."""

    slug = "in-flight"
    status = 409
    title = "Request in progress"


class Unreadable(Conflict):
    """A secret is stored, but no configured key decrypts it."""

    slug = "unreadable"
    title = "Secret cannot be decrypted"


class Gone(Problem):
    """It existed and is no longer kept: a cursor past retention, a compacted revision."""

    slug = "gone"
    status = 410
    title = "No longer available"


class VersionConflict(Problem):
    """A precondition on a version failed; nothing changed. `collision`: the sides, of an entry."""

    slug = "version-conflict"
    status = 412
    title = "Version conflict"

    def __init__(
        self,
        expected: int,
        actual: int,
        *,
        of: str = "entry",
        collision: Collision | None = None,
        **data: Any,
    ) -> None:
        super().__init__(
            f"version conflict: expected {expected}, actual {actual}",
            hint=f"The {of} changed since you read it. Read it again and retry.",
            expected=expected,
            actual=actual,
            **(collision.members() if collision else {}),
            **data,
        )
        self.collision = collision


class TooLarge(Problem):
    slug = "too-large"
    status = 413
    title = "Content too large"


class UnsupportedMediaType(Problem):
    slug = "unsupported-media-type"
    status = 415
    title = "Unsupported media type"


class MisdirectedRequest(Problem):
    slug = "misdirected-request"
    status = 421
    title = "Host not served here"


class Invalid(Problem):
    """Well-formed but not acceptable. `errors` lists each JSON pointer and what is wrong there."""

    slug = "invalid"
    status = 422
    title = "Validation failed"

    def __init__(
        self, detail: str, faults: Sequence[Fault] = (), *, hint: str = "", **data: Any
    ) -> None:
        errors = [{"pointer": f.pointer, "message": f.message} for f in faults]
        super().__init__(detail, hint=hint, errors=errors, **data)


class RateLimited(Problem):
    """Too many requests; `retry_after` is the number of seconds to wait."""

    slug = "rate-limited"
    status = 429
    title = "Rate limit exceeded"


class InternalError(Problem):
    slug = "internal"
    status = 500
    title = "Internal server error"

    def __init__(self) -> None:
        super().__init__(
            "an unexpected error occurred",
            hint="Report the request id (`instance`) to the operator: the server's log has the cause.",
        )


class Unavailable(Problem):
    """The server or its database cannot serve the request now."""

    slug = "unavailable"
    status = 503
    title = "Service unavailable"


class TooSlow(Problem):
    """The reader of a stream does not keep up. Sent as the last event, never as a response."""

    slug = "too-slow"
    status = 503
    title = "Stream reader too slow"
