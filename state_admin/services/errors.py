"""The problem types: every error that an interface can return (RFC 9457).

Each class is one type. `slug`, `status` and `title` are constant; an instance adds the message of
one occurrence, a hint and data. Interfaces send `document()` and add nothing of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from state_admin.domain import values
from state_admin.domain.moments import timestamp
from state_admin.domain.values import Fault, Raw

if TYPE_CHECKING:
    from .conflicts import ConflictSides


# Members that an operation adds when one part of the request is refused.
COMMON_MEMBERS = {
    "index": "the index of the refused operation of a batch",
    "pointer": "the JSON pointer of the refused part of the body, such as a state key of a plugin; for a "
    "patch whose `test` failed, the JSON pointer of the tested member of the value",
}


class Problem(Exception):
    """The base class.

    `detail` is the message of this occurrence, exact where semantics fixes it. `hint` says what to
    do about it. `data` holds the extension members of the document.
    """

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    # What the page of the type says. Backquotes mark code.
    meaning: ClassVar[str]
    causes: ClassVar[tuple[str, ...]]
    remedy: ClassVar[str]
    # Further members of documents of the type; `all_members` adds those of every type.
    members: ClassVar[dict[str, str]] = {}

    def __init__(self, detail: str, *, hint: str = "", **data: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.data = data

    @classmethod
    def all_members(cls) -> dict[str, str]:
        """The members that documents of the type may have beside the standard ones, by name."""
        return COMMON_MEMBERS | cls.members

    def document(self, request_id: str = "", *, status: int | None = None) -> dict[str, Any]:
        """The problem document. `status` replaces the status of the type."""
        body: dict[str, Any] = {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": status or self.status,
            "detail": self.detail,
        }
        if self.hint:
            body["hint"] = self.hint
        if request_id:
            body["instance"] = request_id
        for name, member in self.data.items():
            body.setdefault(name, timestamp(member) if isinstance(member, datetime) else member)
        return body


def problem_types(base: type[Problem] = Problem) -> Iterator[type[Problem]]:
    """Every problem type, base classes first."""
    for kind in base.__subclasses__():
        yield kind
        yield from problem_types(kind)


class BadRequest(Problem):
    slug = "bad-request"
    status = 400
    title = "Malformed request"
    meaning = "The request is malformed. Nothing was changed."
    causes: ClassVar[tuple[str, ...]] = (
        "The body is not JSON, or it contains an unknown field.",
        "A query parameter is unknown, missing or out of range.",
        "A header has an invalid value, for example an ETag without quotes.",
        "A cursor was not issued by this API, or belongs to other filters.",
    )
    remedy = "Correct the request. Sending it again unchanged fails again."
    members: ClassVar[dict[str, str]] = {
        "parameter": "the query parameter that is wrong",
        "allowed": "the query parameters of the operation",
        "errors": "each JSON pointer into the body and what is wrong there",
    }


class Unauthenticated(Problem):
    slug = "unauthenticated"
    status = 401
    title = "Authentication required"
    meaning = "The request has no credentials, or they are not valid."
    causes: ClassVar[tuple[str, ...]] = (
        "The Authorization header is missing or does not start with `Bearer`.",
        "The token is unknown, expired or revoked.",
        "The browser session has ended.",
    )
    remedy = "Send `Authorization: Bearer ch_…` with a valid token, or sign in again."


class Forbidden(Problem):
    slug = "forbidden"
    status = 403
    title = "Permission denied"
    meaning = "The credentials are valid, but they do not permit this operation."
    causes: ClassVar[tuple[str, ...]] = (
        "The role is too low: viewers read, editors also write, admins also register and delete.",
        "The token is limited to other namespaces or threads.",
        "The namespace is managed by the server and has its own paths.",
    )
    remedy = "Ask an admin of the workspace for the role, or use a token that covers the resource."


class QuotaExceeded(Problem):
    slug = "quota-exceeded"
    status = 403
    title = "Quota exceeded"
    meaning = "The write would exceed a limit of the workspace. Nothing was changed."
    causes: ClassVar[tuple[str, ...]] = (
        "The workspace holds as many entries, bytes or threads as its quota permits.",
        "The workspace has as many webhooks, saved views or policies as permitted.",
    )
    remedy = (
        "Delete what is no longer needed, or ask the operator to raise the quota. Either takes effect within a "
        "minute; on a large server, deletions within an hour."
    )
    members: ClassVar[dict[str, str]] = {"limit": "the quota", "used": "how much of it is used"}


class NotFound(Problem):
    slug = "not-found"
    status = 404
    title = "Resource not found"
    meaning = (
        "The resource does not exist, or the credentials do not permit seeing it. The "
        "response does not tell the two apart."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The path or the id is misspelled.",
        "The resource was deleted or has expired.",
        "The resource is in another workspace, or outside the limits of the token.",
    )
    remedy = "Check the path, the workspace of the token (`GET /api/v1/me`) and its limits."


class NotRegistered(NotFound):
    slug = "not-registered"
    title = "Namespace not registered"
    meaning = (
        "The namespace (profile key) is not registered in this workspace, so it has no entries."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The namespace is misspelled.",
        "The namespace was never registered, or it was deleted.",
        "The namespace is in another workspace, or outside the limits of the token.",
    )
    remedy = "Register it with `PUT /api/v1/namespaces/{namespace}`, or correct the name."

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f"profile key not registered: {namespace}",
            hint="Register the namespace with "
            f"PUT /api/v1/namespaces/{quote(namespace, safe='', errors='replace')}, or check the "
            "spelling, the workspace of the token and its limits.",
        )


class MethodNotAllowed(Problem):
    slug = "method-not-allowed"
    status = 405
    title = "Method not allowed"
    meaning = "The path exists, but it does not support the HTTP method."
    causes: ClassVar[tuple[str, ...]] = (
        "The method is wrong, for example `POST` where the path takes `PUT`.",
        "An `/mcp` request uses `GET` or `DELETE`: the endpoint has no sessions.",
    )
    remedy = "Use one of the methods in the `Allow` header."
    members: ClassVar[dict[str, str]] = {"allowed": "the methods of the path"}


class Conflict(Problem):
    slug = "conflict"
    status = 409
    title = "Conflict with the current state"
    meaning = (
        "The request is valid, but the current state of a resource does not permit it."
        " Nothing was changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "A resource with this id already exists with other content.",
        "The resource is in a state that excludes the operation, for example a run that is done.",
        "Another client made the same decision first.",
        "The resource is still in use by others.",
    )
    remedy = "Read the resource again, then decide whether the operation is still needed."
    members: ClassVar[dict[str, str]] = {
        "key": "the state key whose update is refused",
        "keys": "the state keys that several batches of the commit change",
        "conflicts": "for each of `keys`, the value at the base revision and the value of each batch",
        "count": "the number of entries that the namespace still contains",
        "plugin": "the plugin that the state key or namespace belongs to",
        "until": "when the current lease expires",
        "later": "the id of the later compaction, which must be undone first",
        "dispatch_id": "the id of the existing dispatch with the same `dedupe_key`",
        "dispatch_status": "the status of the dispatch",
        "dependents": "the records that reference this record",
        "hidden": "the number of further referencing records that the caller may not read",
    }


class RevisionConflict(Conflict):
    slug = "revision-conflict"
    title = "Revision conflict"
    meaning = (
        "The thread state changed after the revision that the commit is based on. No "
        "part of the commit was applied. The status is 412 if the revision came from "
        "an `If-Match` header, otherwise 409."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "Another run, a person or a retry committed to the thread in the meantime.",
        "The commit repeats an earlier commit without its `Idempotency-Key`.",
    )
    remedy = (
        "Read the state again and apply the change to it. If `keys` is empty, `on_conflict: rebase`"
        " applies it to the current revision."
    )
    members: ClassVar[dict[str, str]] = {
        "expected": "the revision that the request is based on",
        "actual": "the current revision",
        "keys": "the state keys that both changed",
        "conflicts": "for each key, the values at the base, now, and as requested",
        "base_kept": "whether the values at the base revision are still stored",
    }

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


class SchemaConflict(Conflict):
    """See domain/evolution.py."""

    slug = "schema-conflict"
    title = "Schema conflict"
    meaning = (
        "The namespace is registered with a schema or default that is not compatible with the "
        "requested one. Definitions are compatible if they differ only by optional fields. "
        "Nothing was changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The type of a field changed between two versions of a program.",
        "A new field is required, or the schema does not allow additional properties.",
        "Two programs use one namespace for different values.",
    )
    remedy = (
        "Register a definition that differs only by optional fields, use another namespace, or "
        "replace the registered definition: `replace=True` in the clients, a PUT without "
        "`if_exists=accept` in the API."
    )
    members: ClassVar[dict[str, str]] = {
        "errors": "the differences: each `pointer` into the body, and a `message`",
        "schema_version": "the version of the registered schema",
    }

    def __init__(self, namespace: str, schema_version: int, faults: Sequence[Fault]) -> None:
        super().__init__(
            f"schema conflict: namespace {namespace} is registered with an incompatible definition",
            hint="Change only optional fields, or replace the registered definition.",
            errors=[{"pointer": f.pointer, "message": f.message} for f in faults],
            schema_version=schema_version,
        )


class Superseded(Conflict):
    slug = "fencing-token-superseded"
    title = "Fencing token superseded"
    meaning = (
        "The fencing token is not the newest token of the run: another worker leased "
        "the run, or the lease was released. Nothing was changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The worker paused longer than its lease, and another worker took the run over.",
        "An operator released the lease.",
    )
    remedy = "Stop working on the run. Its new owner continues from the last committed step."
    members: ClassVar[dict[str, str]] = {
        "given": "the token of the request",
        "current": "the newest token",
    }

    def __init__(self, given: int, current: int) -> None:
        super().__init__(
            f"fencing token superseded: {given}, current {current}",
            hint="Stop working on the run: another worker leased it, or the lease was released.",
            given=given,
            current=current,
        )


class InFlight(Problem):
    slug = "in-flight"
    status = 409
    title = "Request in progress"
    meaning = "Another request with the same `Idempotency-Key` is still running."
    causes: ClassVar[tuple[str, ...]] = (
        "The client timed out and retried while the server was still working on the first request.",
    )
    remedy = (
        "Wait for the time in the `Retry-After` header and repeat the request. It "
        "returns the stored response of the first request."
    )


class Unreadable(Conflict):
    slug = "unreadable"
    title = "Secret cannot be decrypted"
    meaning = "A secret is stored, but none of the configured keys decrypts it."
    causes: ClassVar[tuple[str, ...]] = (
        "The key was removed from `CONFIG_SECRET_KEYS`, or `SECRET_KEY` changed.",
        "The database was restored on a server with another key.",
    )
    remedy = "Restore the key, or write the secret again."


class Gone(Problem):
    slug = "gone"
    status = 410
    title = "No longer available"
    meaning = "The resource existed and is no longer available."
    causes: ClassVar[tuple[str, ...]] = (
        "The cursor of the change feed is older than the retention time.",
        "The version or revision was removed by history compaction.",
        "The stored response of an idempotent request was deleted by a redaction or an erasure.",
    )
    remedy = (
        "Read the current state and continue from there. A label or a pin protects a "
        "version or revision from compaction."
    )


class VersionConflict(Problem):
    """`collision`: for an entry, both sides of the conflict."""

    slug = "version-conflict"
    status = 412
    title = "Version conflict"
    meaning = (
        "A precondition failed: the resource is not at the version that the request "
        "expects. Nothing was changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "Another client changed the resource after it was read.",
        "`If-None-Match: *` was sent for a resource that exists.",
        "`expected_message_count` is not the number of messages of the thread.",
    )
    remedy = (
        "Read the resource again, apply the change to the new version, and send its "
        "ETag. `On-Conflict: merge` with `If-Match` lets the server merge changes to different "
        "parts of the value of an entry (Python client: `if_version` with `merge=True`)."
    )
    members: ClassVar[dict[str, str]] = {
        "expected": "the version that the request expects; 0 means that it must not exist",
        "actual": "the current version; 0 means that it does not exist",
        "base": "the value at the expected version",
        "theirs": "the current value",
        "yours": "the value of the request",
        "mergeable": "whether the changes touch different parts",
        "clashes": "the JSON pointers that both changed, with the values of each side; `pointers` has the "
        "place in the sides where an item of an array has another index",
    }

    def __init__(
        self,
        expected: int,
        actual: int,
        *,
        of: str = "entry",
        collision: ConflictSides | None = None,
        **data: Any,
    ) -> None:
        # The versions of a thread may be counts of its messages, where 0 does not mean absent.
        counts = of == "thread"
        if expected == 0 and not counts:
            hint = f"The {of} already exists. To change it, read it and send its version."
        elif actual == 0 and not counts:
            hint = f"The {of} does not exist, or no longer exists. Read it again and retry."
        else:
            hint = f"The {of} changed since you read it. Read it again and retry."
        super().__init__(
            f"version conflict: expected {expected}, actual {actual}",
            hint=hint,
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
    meaning = (
        "The body, the resulting value or the response exceeds a size limit. Nothing was changed."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The request body is larger than the server accepts.",
        "The value is larger than `max_value_bytes` of its namespace, or than the limit of state values.",
        "A patch or an append makes a stored value too large.",
        "The data to be returned exceeds the size limit of one response.",
    )
    remedy = (
        "Send less, request less at once, or split the value into several entries. An admin can raise "
        "`max_value_bytes`, and the operator of the server can raise `MAX_BODY_BYTES`."
    )
    members: ClassVar[dict[str, str]] = {
        "limit": "the limit in bytes",
        "actual": "the size in bytes",
    }


class UnsupportedMediaType(Problem):
    slug = "unsupported-media-type"
    status = 415
    title = "Unsupported media type"
    meaning = "The server does not accept the media type of the request body on this path."
    causes: ClassVar[tuple[str, ...]] = (
        "`PATCH` needs the media type of a patch, for example `application/merge-patch+json`.",
        "The body is compressed or not JSON, or `Content-Type` is missing or lists several types.",
    )
    remedy = "Set `Content-Type` to one of `supported`, and do not compress the body."
    members: ClassVar[dict[str, str]] = {"supported": "the media types of the operation"}


class Invalid(Problem):
    slug = "invalid"
    status = 422
    title = "Validation failed"
    meaning = "The request is well-formed, but its content is not valid. Nothing was changed."
    causes: ClassVar[tuple[str, ...]] = (
        "The value does not match the JSON Schema of its namespace or state key.",
        "A field has the wrong type or is out of range.",
        "A schema, reducer or policy is not valid.",
        "The `Idempotency-Key` was used for a different request.",
    )
    remedy = (
        "Correct the values that `errors` lists. If the list is empty, the error is outside of the body or "
        "concerns the whole request, for example a name in the path, the `Idempotency-Key`, or the number of "
        "entries that match: `detail` says what to correct."
    )
    members: ClassVar[dict[str, str]] = {
        "errors": "each JSON pointer into the body and what is wrong there. Pointers of the value of an "
        "entry or a state key, a decision or a default that does not match its schema start "
        "from that value; so do those of an entry that has too many levels, members or digits, or NUL. "
        "Pointers of a patch that cannot be applied start from the patch",
        "within": "the JSON pointer of the default in the body; the pointers in `errors` start there",
        "schema_version": "the version of the schema that the value does not match",
        "key": "the state key whose value is refused",
        "limit": "the maximum number",
    }

    def __init__(
        self, detail: str, faults: Sequence[Fault] = (), *, hint: str = "", **data: Any
    ) -> None:
        errors = [{"pointer": f.pointer, "message": f.message} for f in faults]
        super().__init__(detail, hint=hint, errors=errors, **data)


def check_storable(raw: Raw, what: str, pointer: str = "", **data: Any) -> None:
    """Raise Invalid if the database cannot store the JSON. `what` names it, and `pointer` its place."""
    try:
        values.check(raw, pointer)
    except values.RefusedJSON as refused:
        raise Invalid(f"{what} cannot be stored", refused.faults, **data) from refused


class RateLimited(Problem):
    slug = "rate-limited"
    status = 429
    title = "Rate limit exceeded"
    meaning = "The client sent too many requests."
    causes: ClassVar[tuple[str, ...]] = (
        "The token exceeds its requests per minute.",
        "A token or user has too many open streams.",
        "There were too many failed sign-in attempts.",
    )
    remedy = (
        "Wait for the number of seconds in the `Retry-After` header. An admin can "
        "raise the limit of a token."
    )
    members: ClassVar[dict[str, str]] = {
        "retry_after": "the number of seconds to wait",
        "limit": "the maximum number of requests per window",
        "window": "the length of the window in seconds",
    }


class InternalError(Problem):
    slug = "internal"
    status = 500
    title = "Internal server error"
    meaning = "An unexpected error occurred in the server."
    causes: ClassVar[tuple[str, ...]] = (
        "A defect in the server, or a failure of the system it runs on.",
    )
    remedy = (
        "Retry once with the same `Idempotency-Key`. If the error persists, give the "
        "request id (`instance`) to the operator: the server's log contains the cause."
    )

    def __init__(self) -> None:
        super().__init__(
            "an unexpected error occurred",
            hint="Report the request id (`instance`) to the operator: the server's log has the cause.",
        )


class Unavailable(Problem):
    slug = "unavailable"
    status = 503
    title = "Service unavailable"
    meaning = "The server or its database cannot serve the request now."
    causes: ClassVar[tuple[str, ...]] = (
        "The database is restarting, locked, overloaded or read-only.",
        "A statement took longer than `STATEMENT_TIMEOUT_MS` or `WEB_STATEMENT_TIMEOUT_MS`, and was cancelled.",
        "The server has too many requests waiting, or is shutting down.",
    )
    remedy = (
        "Retry after the time in the `Retry-After` header, with the same `Idempotency-"
        "Key`. The outcome of a write is unknown if the connection was lost during "
        "commit."
    )
    members: ClassVar[dict[str, str]] = {"retry_after": "the number of seconds to wait"}


class TooSlow(Problem):
    slug = "too-slow"
    status = 503
    title = "Stream reader too slow"
    meaning = (
        "The reader of an event stream does not keep up, and the server closed the "
        "stream. This document is the data of the last event (`closed`), never a "
        "response."
    )
    causes: ClassVar[tuple[str, ...]] = (
        "The client does not read while events arrive.",
        "The network is slower than the changes.",
    )
    remedy = (
        "Reconnect with the id of the last event (`Last-Event-ID`). No event is lost "
        "within the retention time."
    )
