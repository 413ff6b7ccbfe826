"""Serves the operations of the contract: authenticates, checks the role and the request, rolls back
dry runs, returns problems, and returns stored responses for repeated idempotency keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, TypedDict, TypeVar, cast

import msgspec
from django.db import Error
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from project import tracing
from state_admin.contract.base import PROBLEM_TYPE, DryRun, Operation
from state_admin.contract.batches import RUN_BATCH
from state_admin.contract.openapi import problems_of
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.services import idempotency as keys
from state_admin.services.actors import require
from state_admin.services.dry_runs import discard_writes
from state_admin.services.errors import (
    BadRequest,
    NotFound,
    Problem,
    RevisionConflict,
    VersionConflict,
)
from state_admin.services.throttles import Allowance
from state_admin.services.traffic import CallKind, counter, kind_of_call

from . import bodies, etags, idempotency, problems, replica_reads
from .authentication import PageAuthentication, TokenAuthentication
from .long_polling import is_repeated
from .parameters import check_body, read_query

T = TypeVar("T", bound=msgspec.Struct)
Handler = Callable[..., HttpResponse]

_MAX_REASON = 1000
_PATHS = (
    "GET /api/schema lists every path of this API. Paths do not end with a slash. Send a slash "
    "within an id as %2F."
)


class Author(TypedDict):
    """See Endpoint.author."""

    actor: Actor
    reason: str


class Endpoint(APIView):
    """One path of the contract; view_of makes its class."""

    schema = None
    # The operations of the path by method.
    operations: ClassVar[dict[str, Operation]] = {}
    # Whether `x-api-key` may hold the token, and the media type of problems: for other protocols.
    api_key = False
    problem_type = PROBLEM_TYPE
    # The query parameters, checked and converted: an instance of the operation's `query`.
    query: Any
    dry_run = False
    # The caller's reason: the Change-Reason header, kept in history and audit.
    reason = ""
    # The remaining rate limit of the token; None if it has no limit.
    allowance: Allowance | None = None

    @property
    def actor(self) -> Actor:
        return cast(Actor, self.request.user)

    @property
    def author(self) -> Author:
        """The arguments of every write: who makes it, and why."""
        return {"actor": self.actor, "reason": self.reason}

    def given(self, **lookups: str) -> dict[str, Any]:
        """The conditions of a QuerySet for the query parameters that were given, by the lookup of
        each."""
        return {
            lookup: value
            for parameter, lookup in lookups.items()
            if (value := getattr(self.query, parameter))
        }

    def body(self, kind: type[T]) -> T:
        """Return the request body, which the operation declares as `kind`."""
        raw = self.request.data
        if not raw and not self.operations[self.request.method or ""].body_required:
            return kind()
        return bodies.decode(raw, kind)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate and check the request. DRF's content negotiation and versioning are skipped,
        because they would cost more than most operations."""
        self.perform_authentication(request)
        self.allowance = cast(Allowance | None, request.auth)
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest("a path or a query must not contain NUL")
        method = request.method or "GET"
        operation = self.operations.get("GET" if method == "HEAD" else method)
        if operation is not None:
            self._check(operation, request)
        else:
            require(self.actor, Role.VIEWER)

    def _check(self, operation: Operation, request: Request) -> None:
        """Check the caller's role, and raise for parameters and headers that the operation does not
        declare."""
        require(self.actor, operation.least_role)
        query = read_query(operation.parameters, operation.required, request.query_params)
        self.dry_run = query.pop("dry_run", False)
        self.query = operation.read(query)
        if request.META.get("CONTENT_LENGTH") not in (None, "", "0"):
            check_body(request, operation.accepted)
        for name, header in etags.CONDITIONS.items():
            if name in request.META and not operation.reads and header not in operation.headers:
                raise BadRequest(
                    f"{operation.method} does not support {header} on this path",
                    hint="Nothing was changed. Remove the header.",
                )
        if not (operation.kept or operation.reads) and "HTTP_IDEMPOTENCY_KEY" in request.META:
            raise BadRequest(
                "Idempotency-Key is not supported on this path",
                hint=(
                    "Use the equivalent operation of /api/v1, or the protocol's own duplicate "
                    "detection."
                ),
            )
        if operation.kept and not operation.reads:
            self.reason = read_reason(request.META)
        if self.dry_run:
            handler = getattr(self, operation.method.lower())
            setattr(self, operation.method.lower(), partial(_run_dry, handler))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        def work() -> HttpResponse:
            response = cast(HttpResponse, super(Endpoint, self).dispatch(request, *args, **kwargs))
            if writes and not self.dry_run and response.status_code < 300:
                keys.confirm()
            return response

        def check() -> None:
            self.request = self.initialize_request(request, *args, **kwargs)
            self.initial(self.request, *args, **kwargs)

        def whose() -> int | None:
            return getattr(self.request.user, "workspace_id", None)

        operation = self.operations.get(request.method or "")
        repeatable = operation is not None and operation.kept and not operation.reads
        # Operations permitted to viewers, such as POST /search, write nothing, except a batch.
        writes = (
            operation is not None
            and not operation.reads
            and (operation.least_role is not Role.VIEWER or operation is RUN_BATCH)
        )
        if not repeatable or "HTTP_IDEMPOTENCY_KEY" not in request.META:
            try:
                response = work()
            except Error as error:
                response = problems.answer_error(error, request)
        else:
            response = idempotency.once(request, work, check, whose)
            if response.status_code >= 500 and not isinstance(cast(object, self.request), Request):
                # It failed before `work` and `check`: find out whose call it was, for the count.
                self.request = self.initialize_request(request, *args, **kwargs)
                with suppress(Error, Problem):
                    self.perform_authentication(self.request)
        self._count(response)
        if allowance := self.allowance:
            problems.add_rate_limit(response, allowance.limit, allowance.remaining, allowance.reset)
        return response

    def _count(self, response: HttpResponse) -> None:
        """Count the call as traffic of the workspace, by its final response: a commit may fail
        after the handler. Only calls with a token count; a long poll counts once, and so does a
        call that gets its stored response again. A failed call may have no actor, if the database
        could not check its token."""
        outcome = kind_of_call(self.request.method, response.status_code)
        if outcome is None or "Idempotent-Replayed" in response:
            return
        if outcome is CallKind.WRITE and self.dry_run:
            outcome = CallKind.READ
        actor: Actor | None = vars(self.request).get("_user")
        if actor is not None and actor.kind == "token" and not is_repeated(self.request):
            counter.count(actor.workspace_id, outcome)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Return the methods of the path (in Allow, which every response has) and the media types of
        a patch. DRF's description of the view would repeat its class name and docstring."""
        response = bodies.no_content()
        if (patch := self.operations.get("PATCH")) is not None:
            response["Accept-Patch"] = ", ".join(patch.accepted)
        return response

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Accept the token as `x-api-key`, as LangGraph's SDK sends it."""
        key = request.META.get("HTTP_X_API_KEY")
        if key and self.api_key and "HTTP_AUTHORIZATION" not in request.META:
            request.META["HTTP_AUTHORIZATION"] = f"Bearer {key}"
        return super().initialize_request(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]
        if isinstance(exc, VersionConflict) and exc.collision and exc.collision.mergeable:
            operation = self.operations.get(self.request.method or "")
            if operation is not None and "On-Conflict" in operation.headers:
                exc.hint = exc.hint.removesuffix(".") + ", or send On-Conflict: merge."
        response = problems.answer_error(exc, self.request)
        response["Content-Type"] = self.problem_type
        return response


def read_reason(environ: Mapping[str, Any]) -> str:
    """The Change-Reason header."""
    text: str = environ.get("HTTP_CHANGE_REASON", "")
    # WSGI decodes headers as latin-1; clients send UTF-8.
    try:
        text = text.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        raise BadRequest("Change-Reason must be UTF-8") from None
    if len(text) > _MAX_REASON or "\0" in text:
        raise BadRequest(f"Change-Reason must have at most {_MAX_REASON} characters and no NUL")
    return text


def _run_dry(handler: Callable[..., HttpResponse], *args: Any, **kwargs: Any) -> HttpResponse:
    """Run an operation, roll back its writes, and mark the response as a dry run."""
    with discard_writes():
        response = handler(*args, **kwargs)
    return bodies.dry_run_answer(response)


class UnknownPath(Endpoint):
    """Any path that no other pattern matches. Requires a token, like every path."""

    api_key = True  # the path may belong to a part of another protocol that is not served

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound("path not found", hint=_PATHS)

    def get(self, request: Request, rest: str = "") -> HttpResponse:
        raise AssertionError("initial always raises")


# Handlers ------------------------------------------------------------------------------------

HANDLERS: dict[str, Handler] = {}


def handles(operation: Operation) -> Callable[[Handler], Handler]:
    """Register the handler of an operation. It takes the Endpoint and the parameters of the
    path."""

    def register(handler: Handler) -> Handler:
        HANDLERS[operation.id] = handler
        return handler

    return register


def row_id(noun: str, text: str) -> int:
    """Parse the id of a row in a path. Raises NotFound if it is not an integer."""
    number = read_whole(text)
    if number is None:
        raise NotFound(f"{noun} not found: {text}")
    return number


def view_of(operations: list[Operation]) -> type[Endpoint]:
    """Create the view of one path."""
    methods = {each.method.lower(): _method(each) for each in operations}
    by_method = {each.method: each for each in operations}
    first = operations[0]
    members: dict[str, Any] = {
        **methods,
        "operations": by_method,
        "api_key": first.api_key,
        "problem_type": first.problem_type,
    }
    if any(each.session for each in operations):
        members["authentication_classes"] = [PageAuthentication, TokenAuthentication]
    return type("PathEndpoint", (Endpoint,), members)


def _method(operation: Operation) -> Handler:
    handler = HANDLERS[operation.id]

    def method(view: Endpoint, request: Request, **ids: str) -> HttpResponse:
        with tracing.span(operation.id):
            if operation.replica:
                return replica_reads.read(request._request, lambda: handler(view, **ids))
            return handler(view, **ids)

    def delete(view: Endpoint, request: Request, **ids: str) -> HttpResponse:
        try:
            return method(view, request, **ids)
        except NotFound as absent:
            if absent.slug in problems_of(operation):
                raise
        return _answer_absent(view, operation)

    return delete if operation.method == "DELETE" else method


def _answer_absent(view: Endpoint, operation: Operation) -> HttpResponse:
    """Return the response to the deletion of something that does not exist or is not visible: the
    same as for a deletion that removes nothing. A precondition on its version fails."""
    if (version := etags.expected_version(view.request)) is not None:
        raise VersionConflict(version, 0, of="resource")
    if (revision := getattr(view.query, "expected_revision", None)) is not None:
        raise RevisionConflict(revision, 0)
    if view.dry_run and operation.dry_run is not DryRun:
        report = _zeros(msgspec.inspect.type_info(operation.dry_run))
        return bodies.answer(msgspec.convert(report, operation.dry_run))
    return bodies.no_content()


def _zeros(info: msgspec.inspect.Type) -> Any:
    """Return the report of a dry run that removes nothing: its members are counts or nested
    reports."""
    match info:
        case msgspec.inspect.Metadata():
            return _zeros(info.type)
        case msgspec.inspect.StructType():
            return {each.encode_name: _zeros(each.type) for each in info.fields}
    return 0
