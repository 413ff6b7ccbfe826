"""The errors services raise. Each is one problem type; interfaces turn them into answers.

`title` is exact where semantics gives the text (clients match on it). `data` holds the problem's
own members. No HTTP here: api/problems.py maps the classes to status codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from state_admin.domain.values import Fault


class Problem(Exception):
    """The base. `slug` names the problem type: `/problems/<slug>`."""

    slug: ClassVar[str] = "problem"

    def __init__(self, title: str, *, detail: str = "", **data: Any) -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.data = data


class BadRequest(Problem):
    """The request itself is malformed: syntax, unknown field, bad cursor."""

    slug = "bad-request"


class Invalid(Problem):
    """Well-formed but not acceptable. `errors` lists each place and what is wrong there."""

    slug = "invalid"

    def __init__(
        self, title: str, faults: Sequence[Fault] = (), *, detail: str = "", **data: Any
    ) -> None:
        errors = [{"pointer": f.pointer, "message": f.message} for f in faults]
        super().__init__(title, detail=detail, errors=errors, **data)


class Unauthenticated(Problem):
    slug = "unauthenticated"


class Forbidden(Problem):
    slug = "forbidden"


class NotFound(Problem):
    """Absent, or in another workspace, or outside the caller's grant: all look the same."""

    slug = "not-found"


class NotRegistered(NotFound):
    slug = "not-registered"

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f"profile key not registered: {namespace}",
            detail=f"Register it with PUT /api/v1/namespaces/{namespace}, or check the spelling.",
        )


class Conflict(Problem):
    """The request is fine but the present state forbids it."""

    slug = "conflict"


class RevisionConflict(Conflict):
    slug = "revision-conflict"

    def __init__(self, expected: int, actual: int, *, hint: str = "", **data: Any) -> None:
        super().__init__(
            f"revision conflict: expected {expected}, actual {actual}",
            detail=f"Read the state again and repeat{hint}.",
            expected=expected,
            actual=actual,
            **data,
        )


class Superseded(Conflict):
    """The worker's fencing token is not the newest: the run has been given to somebody else."""

    slug = "fencing-token-superseded"

    def __init__(self, given: int, current: int) -> None:
        super().__init__(
            f"fencing token superseded: {given}, current {current}",
            detail="Another worker has this run, or its lease was released. Stop working on it.",
            given=given,
            current=current,
        )


class VersionConflict(Problem):
    """A precondition on a version failed; nothing changed."""

    slug = "version-conflict"

    def __init__(self, expected: int, actual: int, *, of: str = "entry", **data: Any) -> None:
        super().__init__(
            f"version conflict: expected {expected}, actual {actual}",
            detail=f"The {of} changed since you read it. Read it again and repeat.",
            expected=expected,
            actual=actual,
            **data,
        )


class TooLarge(Problem):
    slug = "too-large"


class QuotaExceeded(Problem):
    slug = "quota-exceeded"


class Unreadable(Conflict):
    """A secret is set, but no configured key opens it."""

    slug = "unreadable"


class Gone(Problem):
    """It existed and is no longer kept: a cursor past retention, a compacted revision."""

    slug = "gone"


class RateLimited(Problem):
    """Too many calls; `retry_after` says how many seconds to wait."""

    slug = "rate-limited"


class InFlight(Problem):
    """Another request holds what this one needs; try again shortly."""

    slug = "in-flight"


class Unavailable(Problem):
    """The database cannot serve this now; nothing changed. Try again."""

    slug = "unavailable"
