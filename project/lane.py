"""Serves the most frequent API calls on the event loop, without Django and without a thread. Calls that
arrive together share work.

The lane handles a request only if it understands all of it: a read, a write or a patch of an
entry, a batch of reads or of writes, or a commit, with a token that was used within the last
seconds and no headers but those listed here. It responds only to calls that succeed, and to writes
whose outcome is unknown because the database failed. Django serves all other requests, so only
Django decides why a request is refused. A test sends the same requests both ways and compares the
responses and the stored rows (docs/adr/0017-calls-of-one-moment-are-joined.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils.encoding import escape_uri_path
from django.views import View

from project import log_context, tracing
from project.channel import Answer, Header, headers_of
from project.failures import describe_error
from project.hosts import is_served
from project.joining import Joiner
from project.paths import RAW_PATH, encoded_path
from state_admin.api.commits import CommitCall, answer_commits
from state_admin.api.joined_entries import (
    BatchRead,
    BatchWrite,
    ReadCall,
    WriteCall,
    answer_reads,
    answer_writes,
    is_address,
    items_of,
    read_batch,
)
from state_admin.contract import OPERATIONS
from state_admin.contract.base import JSON_TYPE
from state_admin.contract.batches import RUN_BATCH
from state_admin.contract.commits import COMMIT
from state_admin.contract.entries import PATCH_TYPES, READ_ENTRY
from state_admin.models import write_positions
from state_admin.models.hot_async import Session
from state_admin.rest.authentication import read_bearer, read_run_id
from state_admin.rest.endpoint import read_reason
from state_admin.rest.etags import tags_in, version_in
from state_admin.rest.idempotency import identify
from state_admin.rest.preferences import prefers_minimal
from state_admin.rest.problems import answer_error, rate_limit_headers
from state_admin.services import replicas
from state_admin.services.actors import cached_credential
from state_admin.services.errors import Problem
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.throttles import Allowance
from state_admin.services.token_cache import Credential
from state_admin.services.traffic import CallKind, counter

log = structlog.get_logger(__name__)

Address = tuple[str, str]
Environ = dict[str, Any]
# What a group returns for a call that writes.
Written = StoredResponse | Exception
C = TypeVar("C", WriteCall | BatchWrite, CommitCall)

_API: Final = "/api/v1"
_STATE: Final = f"{_API}/state/"
_BATCH: Final = f"{_API}/state/batch"
_RUNS: Final = f"{_API}/runs/"
_COMMITS: Final = "/commits"
# A larger body would delay the other calls of its group.
_LARGEST_BODY: Final = 64 * 1024
_MOST_GETS: Final = 100
# Of batches of puts that weigh more, a group holds too few to gain anything: threads store several of
# them at the same time.
_HEAVIEST: Final = 24
# So many bytes of a body weigh as much as a call without a body. A group has at most 64 of them.
_BYTES_PER_CALL: Final = 2048
# Headers that do not affect these calls.
_WITHOUT_MEANING: Final = {
    "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_ACCEPT_LANGUAGE", "HTTP_CACHE_CONTROL",
    "HTTP_CONNECTION", "HTTP_DNT", "HTTP_FORWARDED", "HTTP_KEEP_ALIVE", "HTTP_PRAGMA",
    "HTTP_PRIORITY", "HTTP_TRACEPARENT", "HTTP_TRACESTATE", "HTTP_USER_AGENT", "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP",
}  # fmt: skip
_OF_EACH: Final = _WITHOUT_MEANING | {
    "HTTP_AUTHORIZATION", "HTTP_HOST", "HTTP_PREFER", "HTTP_RUN_ID", "HTTP_X_REQUEST_ID",
}  # fmt: skip
_OF_READS: Final = _OF_EACH | {"HTTP_IF_NONE_MATCH"}
_OF_BATCHES: Final = _OF_EACH | {"HTTP_CHANGE_REASON", "HTTP_IDEMPOTENCY_KEY"}
_OF_WRITES: Final = _OF_BATCHES | {"HTTP_IF_MATCH"}


def _allow(path: str) -> Header:
    """The Allow header of a path of the contract, as Django writes it."""
    methods = {each.method for each in OPERATIONS.values() if each.path == path}
    names = [
        name.upper()
        for name in View.http_method_names
        if name.upper() in methods or name == "options" or (name == "head" and "GET" in methods)
    ]
    return b"allow", ", ".join(names).encode()


_ALLOW_ENTRY: Final = _allow(READ_ENTRY.path)
_ALLOW_BATCH: Final = _allow(RUN_BATCH.path)
_ALLOW_COMMIT: Final = _allow(COMMIT.path)
_ALLOW: Final = {"_write": _ALLOW_ENTRY, "_batch": _ALLOW_BATCH, "_commit": _ALLOW_COMMIT}
# Routes for spans, by the method that serves them; the other methods serve _ENTRY_ROUTE.
_ENTRY_ROUTE: Final = f"{_API}{READ_ENTRY.path}"
_ROUTES: Final = {"_batch": _BATCH, "_commit": f"{_API}{COMMIT.path}"}


class Lane:
    """Handles requests of the bridge, on the event loop. `take` gives a session to each group."""

    def __init__(self, take: Callable[[], AbstractAsyncContextManager[Session]]) -> None:
        self._reads = Joiner(
            answer_reads, take, name="joined reads", weigh=lambda call: len(call.addresses)
        )
        self._writes: Joiner[WriteCall | BatchWrite, Written, Session] = Joiner(
            answer_writes, take, name="joined writes", weigh=_weigh
        )
        self._commits: Joiner[CommitCall, Written, Session] = Joiner(
            answer_commits, take, name="joined commits", weigh=_weigh
        )

        # Only if there are replicas: see WritePositions in project/middleware.py.
        self._positions: Joiner[str, bool, Session] | None = (
            Joiner(_record_writes, take, name="joined write positions")
            if replicas.ALIASES
            else None
        )

    async def answer(self, environ: Environ, body: bytes) -> Answer | None:
        """The response. None: nothing was done, and Django must serve the request."""
        if environ["QUERY_STRING"] or not is_served(environ.get("HTTP_HOST", "")):
            return None
        take: Callable[[Environ, Credential, Any, bytes], Awaitable[Answer | None]]
        target: Any
        match environ["REQUEST_METHOD"]:
            case "GET":
                take, target = self._read, _read_address(environ[RAW_PATH])
            case "PUT" | "PATCH":
                take, target = self._write, _read_address(environ[RAW_PATH])
            case "POST" if environ[RAW_PATH] == _BATCH:
                take, target = self._batch, _BATCH
            case "POST":
                take, target = self._commit, _read_run(environ[RAW_PATH])
            case _:
                return None
        if target is None:
            return None
        credential = cached_credential(read_bearer(environ.get("HTTP_AUTHORIZATION", "")))
        if credential is None or _is_refused(environ, credential):
            return None
        request_id = environ["HTTP_X_REQUEST_ID"] = log_context.choose_request_id(
            environ.get("HTTP_X_REQUEST_ID", "")
        )
        try:
            actor = replace(
                credential.actor,
                request_id=request_id,
                run_id=read_run_id(environ),
                traceparent=tracing.traceparent(),
            )
            if tracing.is_on():
                log_context.bind_actor(actor)
                tracing.describe({}, route=_ROUTES.get(take.__name__, _ENTRY_ROUTE))
            answer = await take(environ, replace(credential, actor=actor), target, body)
        except Problem:
            return None
        if answer is None or self._positions is None or environ["REQUEST_METHOD"] == "GET":
            return answer
        client = replicas.client_of(environ["HTTP_AUTHORIZATION"])
        try:
            await _ask_twice(self._positions, client)
        except Exception as error:
            log.warning("write_position.not_recorded", error=describe_error(error))
            if answer.status < 500:
                allow = _ALLOW[take.__name__]
                return _show_error(replicas.unrecorded(), environ, request_id, allow)
        return answer

    async def _read(
        self, environ: Environ, credential: Credential, address: Address, body: bytes
    ) -> Answer | None:
        if body or not _understands(environ, _OF_READS):
            return None
        etags = tags_in(environ.get("HTTP_IF_NONE_MATCH", ""))
        return await self._ask_reads(ReadCall(credential, *address, etags), _ALLOW_ENTRY)

    async def _ask_reads(self, call: ReadCall | BatchRead, allow: Header) -> Answer | None:
        actor = call.credential.actor
        try:
            answered = await self._reads.ask(call, actor.workspace_id)
        except Exception as error:  # Django runs into it again, and reports it
            log.info("group.failed", error=describe_error(error), **log_context.ids_of(actor))
            return None
        if answered is None:
            return None
        return _show(answered.response, actor.request_id, allow, answered.allowance)

    async def _write(
        self, environ: Environ, credential: Credential, address: Address, body: bytes
    ) -> Answer | None:
        media_type = _media_type(environ)
        patch = PATCH_TYPES.get(media_type) if environ["REQUEST_METHOD"] == "PATCH" else None
        if patch is None and (environ["REQUEST_METHOD"], media_type) != ("PUT", JSON_TYPE):
            return None
        if not _is_small_write(environ, credential, body):
            return None
        actor, expected = credential.actor, _read_match(environ)
        if expected == 0:
            return None
        once = _read_key(environ, body)
        call = WriteCall(
            actor,
            *address,
            body,
            patch,
            expected,
            read_reason(environ),
            once,
            prefers_minimal(environ),
        )
        return await _ask(self._writes, call, environ, _ALLOW_ENTRY)

    async def _batch(
        self, environ: Environ, credential: Credential, path: str, body: bytes
    ) -> Answer | None:
        if _media_type(environ) != JSON_TYPE or not _is_small(environ, body, _OF_BATCHES):
            return None
        # Estimated before the body is parsed, which Django would do again.
        weight = body.count(b'"put"') + len(body) // _BYTES_PER_CALL
        if weight > _HEAVIEST or body.count(b'"get"') > _MOST_GETS:
            return None
        reason = read_reason(environ)
        operations = read_batch(body)
        if not operations or len(operations) > _MOST_GETS:
            return None
        once = _read_key(environ, body)
        if all(each.op == "get" and not each.unused for each in operations) and once is None:
            addresses = [(each.namespace, each.key) for each in operations]
            return await self._ask_reads(BatchRead(credential, addresses), _ALLOW_BATCH)
        items = items_of(operations)
        if items is None or credential.rate_per_minute is not None:
            return None
        call = BatchWrite(
            credential.actor, items, reason, once, max(weight, 1), prefers_minimal(environ)
        )
        return await _ask(self._writes, call, environ, _ALLOW_BATCH)

    async def _commit(
        self, environ: Environ, credential: Credential, run_id: str, body: bytes
    ) -> Answer | None:
        if _media_type(environ) != JSON_TYPE or not _is_small_write(environ, credential, body):
            return None
        match, reason = _read_match(environ), read_reason(environ)
        call = CommitCall(credential.actor, run_id, body, match, reason, _read_key(environ, body))
        return await _ask(self._commits, call, environ, _ALLOW_COMMIT)


async def _ask_twice(positions: Joiner[str, bool, Session], client: str) -> None:
    """Record the write of a client, after an error once more on another connection."""
    try:
        await positions.ask(client, client)
    except Exception:
        await positions.ask(client, client)


async def _record_writes(clients: Sequence[str], session: Session) -> list[bool]:
    await session.fetch_each([(write_positions.RECORD, {"clients": sorted(set(clients))})])
    return [True] * len(clients)


def _weigh(call: WriteCall | BatchWrite | CommitCall) -> int:
    """The event loop does nothing else while it checks the bodies of a group."""
    if isinstance(call, BatchWrite):
        return call.weight
    return 1 + len(call.body) // _BYTES_PER_CALL


async def _ask(
    joiner: Joiner[C, Written, Session], call: C, environ: Environ, allow: Header
) -> Answer | None:
    response: Written | None
    try:
        response = await joiner.ask(call, call.actor.workspace_id)
    except Exception as error:  # the outcome is unknown: Django must not write again
        response = error
    if isinstance(response, Exception):
        log_context.bind_actor(call.actor)
        counter.count(call.actor.workspace_id, CallKind.FAILURE)
        return _show_error(response, environ, call.actor.request_id, allow)
    return None if response is None else _show(response, call.actor.request_id, allow)


def _read_address(raw_path: str) -> Address | None:
    """Namespace and key, if the path is that of an entry (project/paths.py has the rules)."""
    if not raw_path.startswith(_STATE) or not raw_path.isascii():
        return None
    namespace, slash, key = raw_path[len(_STATE) :].partition("/")
    address = unquote(namespace), unquote(key)
    return address if slash and is_address(*address) else None


def _read_run(raw_path: str) -> str | None:
    """The id of a run, if the path is that of its commits."""
    if not raw_path.startswith(_RUNS) or not raw_path.endswith(_COMMITS) or not raw_path.isascii():
        return None
    segment = raw_path[len(_RUNS) : -len(_COMMITS)]
    run_id = unquote(segment)
    return run_id if segment and "/" not in segment and "\0" not in run_id else None


def _media_type(environ: Environ) -> str:
    text: str = environ.get("CONTENT_TYPE", "")
    return text.partition(";")[0].strip().lower()


def _is_small_write(environ: Environ, credential: Credential, body: bytes) -> bool:
    """Whether the lane may handle a write: known headers, a small body, no rate limit of the token."""
    return credential.rate_per_minute is None and _is_small(environ, body, _OF_WRITES)


def _is_small(environ: Environ, body: bytes, headers: Set[str]) -> bool:
    return 0 < len(body) <= _LARGEST_BODY and _understands(environ, headers)


def _read_match(environ: Environ) -> int | None:
    match = environ.get("HTTP_IF_MATCH")
    return None if match is None else version_in(match)


def _read_key(environ: Environ, body: bytes) -> Key | None:
    if "HTTP_IDEMPOTENCY_KEY" not in environ:
        return None
    return identify(environ, escape_uri_path(encoded_path(environ[RAW_PATH])), body)


def _understands(environ: Environ, headers: Set[str]) -> bool:
    return all(name in headers for name in environ if name.startswith("HTTP_"))


def _is_refused(environ: Environ, credential: Credential) -> bool:
    """Whether the database would refuse the call, and with it all calls of its group."""
    return credential.actor.frozen and environ["REQUEST_METHOD"] != "GET"


def _show(
    response: StoredResponse, request_id: str, allow: Header, left: Allowance | None = None
) -> Answer:
    """The response as rest/bodies.py writes it."""
    headers = headers_of(response.headers)
    at = 1 if "Content-Type" in response.headers else 0
    headers.insert(at, (b"cache-control", b"no-store"))
    headers.append(allow)
    if left is not None:
        limits = rate_limit_headers(left.limit, left.remaining, left.reset)
        headers += headers_of(limits)
    return finish(response.status, headers, response.body, request_id)


def _show_error(error: Exception, environ: Environ, request_id: str, allow: Header) -> Answer:
    """The problem that Django would return for an error of the database."""
    request = HttpRequest()
    request.META = {**environ, "REQUEST_ID": request_id}
    response = answer_error(error, request)
    headers = [*headers_of(response.headers), allow]
    return finish(response.status_code, headers, response.content, request_id)


def finish(status: int, headers: list[Header], body: bytes, request_id: str) -> Answer:
    """Add the headers that project/middleware.py adds, in the same order."""
    if settings.CORS_ALLOWED_ORIGINS:
        headers.append((b"vary", b"origin"))
    headers += [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
    return Answer(status, headers, body)
