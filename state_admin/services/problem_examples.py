"""An example of each problem type, for its page in the documentation."""

from __future__ import annotations

from typing import Any

from state_admin.domain.values import Fault

from . import actors, errors, feed_cursors, move_problems, problem_statuses
from .errors import Problem

_EXAMPLES: tuple[Problem, ...] = (
    errors.BadRequest(
        "unknown query parameter: prefx", hint="Allowed query parameters: cursor, limit, prefix."
    ),
    actors.invalid_token(),
    errors.Forbidden(
        "the role editor is required",
        hint="The role of this token is viewer. Use a token with a higher role.",
    ),
    errors.QuotaExceeded("quota exceeded: entries", limit=1000, used=1000),
    errors.NotFound("thread not found: t1"),
    errors.NotRegistered("team_context"),
    errors.MethodNotAllowed(
        "POST is not allowed on this path",
        hint="Allowed methods: GET, PUT, PATCH, DELETE.",
        allowed=["GET", "PUT", "PATCH", "DELETE"],
    ),
    problem_statuses.NotAcceptable("Could not satisfy the request Accept header."),
    problem_statuses.RequestTimeout(
        "the request body arrived too slowly",
        hint="Send at least 16384 bytes per second, with no pause longer than 15 seconds.",
    ),
    errors.Conflict("run is done: r1", hint="Start a new run on the thread."),
    errors.RevisionConflict(4, 6, keys=["plan"]),
    errors.SchemaConflict(
        "team_context",
        3,
        [Fault("/schema/properties/goal/type", 'registered: "string"; offered: "array"')],
    ),
    errors.Superseded(1, 2),
    errors.InFlight("a request with this Idempotency-Key is still in flight"),
    errors.Unreadable("the secret cannot be decrypted", hint="Write it again."),
    errors.Gone(
        "the cursor has expired",
        hint="Changes are retained for a limited time. " + feed_cursors.RESTART_FEED,
    ),
    errors.VersionConflict(1, 2),
    problem_statuses.body_too_large(8388608),
    errors.UnsupportedMediaType(
        "unsupported Content-Type: text/plain",
        hint="Send one of: application/json.",
        supported=["application/json"],
    ),
    problem_statuses.MisdirectedRequest("the host is not served here"),
    errors.Invalid(
        "the value does not satisfy the schema of team_context",
        [Fault("/goal", '1 is not of type "string"')],
    ),
    errors.RateLimited("more than 600 requests in a minute", retry_after=3, limit=600, window=60),
    errors.InternalError(),
    errors.Unavailable("the database did not respond in time"),
    move_problems.WorkspaceFrozen(),
    move_problems.WorkspaceMoved("b"),
    errors.TooSlow("the reader does not keep up with the stream"),
)


def example_of(kind: type[Problem]) -> dict[str, Any]:
    """An example document of a type, for its page."""
    example = next(problem for problem in _EXAMPLES if type(problem) is kind)
    return example.document("5f0c7e2a9d3b4c1e8a6f")
