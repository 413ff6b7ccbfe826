"""Serves the most frequent calls of the API without Django, and those of one moment together.

The lane handles a request only if it understands all of it: a read, a write or a patch of an entry,
with a token that was used within the last seconds and no headers but those listed here. It responds
only to calls that succeed. Django serves all others, so only Django decides why a request is refused.
A test sends the same requests both ways and compares the responses and the stored rows
(docs/adr/0017-calls-of-one-moment-are-joined.md).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.views import View

from project.channel import Answer
from project.failures import describe_error
from project.hosts import is_served
from project.joining import InThread, Joiner
from project.middleware import read_request_id
from project.paths import RAW_PATH
from state_admin.api.joined_entries import (
    Answered,
    ReadCall,
    WriteCall,
    answer_reads,
    answer_writes,
    is_address,
)
from state_admin.contract import OPERATIONS
from state_admin.contract.base import JSON_TYPE
from state_admin.contract.entries import PATCH_TYPES, READ_ENTRY
from state_admin.rest.authentication import read_run_id
from state_admin.rest.endpoint import read_reason
from state_admin.rest.etags import version_in
from state_admin.rest.problems import answer_error, rate_limit_headers
from state_admin.services.actors import cached_credential
from state_admin.services.errors import Problem
from state_admin.services.token_cache import Credential

log = structlog.get_logger(__name__)

_PREFIX: Final = "/api/v1/state/"
# A larger body would delay the other calls of its group.
_LARGEST_BODY: Final = 64 * 1024
# Headers that do not affect a read or a write of an entry.
_WITHOUT_MEANING: Final = {
    "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_ACCEPT_LANGUAGE", "HTTP_CACHE_CONTROL",
    "HTTP_CONNECTION", "HTTP_DNT", "HTTP_FORWARDED", "HTTP_KEEP_ALIVE", "HTTP_PRAGMA",
    "HTTP_PRIORITY", "HTTP_TRACEPARENT", "HTTP_TRACESTATE", "HTTP_USER_AGENT", "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP",
}  # fmt: skip
_OF_EACH: Final = _WITHOUT_MEANING | {
    "HTTP_AUTHORIZATION", "HTTP_HOST", "HTTP_RUN_ID", "HTTP_X_REQUEST_ID",
}  # fmt: skip
_OF_READS: Final = _OF_EACH | {"HTTP_IF_NONE_MATCH"}
_OF_WRITES: Final = _OF_EACH | {"HTTP_IF_MATCH", "HTTP_CHANGE_REASON"}
_METHODS: Final = {each.method for each in OPERATIONS.values() if each.path == READ_ENTRY.path}
_ALLOW: Final = ", ".join(
    each.upper()
    for each in View.http_method_names
    if each.upper() in _METHODS or each in ("head", "options")
).encode()

Address = tuple[str, str]
Environ = dict[str, Any]
Headers = list[tuple[bytes, bytes]]


class Lane:
    """Handles requests of the bridge. `in_thread` runs a function in a thread that serves requests."""

    def __init__(self, in_thread: InThread) -> None:
        self._reads = Joiner(answer_reads, in_thread)
        self._writes: Joiner[WriteCall, Answered | Exception] = Joiner(answer_writes, in_thread)

    async def answer(self, environ: dict[str, Any], body: bytes) -> Answer | None:
        """The response. None: nothing was done, and Django must serve the request."""
        method, raw_path = environ["REQUEST_METHOD"], environ[RAW_PATH]
        if method not in ("GET", "PUT", "PATCH") or environ["QUERY_STRING"]:
            return None
        if not raw_path.startswith(_PREFIX) or not is_served(environ.get("HTTP_HOST", "")):
            return None
        address = _read_address(raw_path)
        credential = _find_credential(environ)
        if address is None or credential is None:
            return None
        request_id = environ["HTTP_X_REQUEST_ID"] = read_request_id(environ)
        try:
            actor = replace(credential.actor, request_id=request_id, run_id=read_run_id(environ))
            if method == "GET":
                return await self._read(environ, replace(credential, actor=actor), address)
            return await self._write(environ, replace(credential, actor=actor), address, body)
        except Problem:
            return None

    async def _read(
        self, environ: Environ, credential: Credential, address: Address
    ) -> Answer | None:
        if not _understands(environ, _OF_READS) or _has_body(environ):
            return None
        tags = environ.get("HTTP_IF_NONE_MATCH", "")
        call = ReadCall(credential, *address, frozenset(tag.strip() for tag in tags.split(",")))
        try:
            answered = await self._reads.ask(call, credential.actor.workspace_id)
        except Exception as error:  # Django runs into it again, and reports it
            log.info("group.failed", error=describe_error(error))
            return None
        return None if answered is None else _show(answered, credential.actor.request_id)

    async def _write(
        self, environ: Environ, credential: Credential, address: Address, body: bytes
    ) -> Answer | None:
        media_type = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
        patch = PATCH_TYPES.get(media_type) if environ["REQUEST_METHOD"] == "PATCH" else None
        if (
            not _understands(environ, _OF_WRITES)
            or (patch is None and (environ["REQUEST_METHOD"], media_type) != ("PUT", JSON_TYPE))
            or not 0 < len(body) <= _LARGEST_BODY
            or credential.rate_per_minute is not None
        ):
            return None
        actor = credential.actor
        match = environ.get("HTTP_IF_MATCH")
        expected = None if match is None else version_in("If-Match", match)
        if expected == 0:
            return None
        call = WriteCall(actor, *address, body, patch, expected, read_reason(environ))
        answered: Answered | Exception | None
        try:
            answered = await self._writes.ask(call, actor.workspace_id)
        except Exception as error:  # the outcome is unknown: Django must not write again
            answered = error
        if isinstance(answered, Exception):
            return _show_error(answered, environ, actor.request_id)
        return None if answered is None else _show(answered, actor.request_id)


def _read_address(raw_path: str) -> Address | None:
    """Namespace and key, if the path is that of an entry (project/paths.py has the rules)."""
    if not raw_path.isascii():
        return None
    namespace, slash, key = raw_path[len(_PREFIX) :].partition("/")
    address = unquote(namespace), unquote(key)
    return address if slash and is_address(*address) else None


def _understands(environ: Environ, headers: Set[str]) -> bool:
    return all(name in headers for name in environ if name.startswith("HTTP_"))


def _has_body(environ: Environ) -> bool:
    return "CONTENT_TYPE" in environ or environ.get("CONTENT_LENGTH", "0") != "0"


def _find_credential(environ: Environ) -> Credential | None:
    scheme, _, presented = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return cached_credential(presented.strip()) if scheme.lower() == "bearer" else None


def _show(answered: Answered, request_id: str) -> Answer:
    """The response as rest/bodies.py writes it."""
    headers: Headers = [
        (b"cache-control", b"no-store"),
        (b"etag", b'"%d"' % answered.version),
        (b"allow", _ALLOW),
    ]
    if answered.body:
        headers.insert(0, (b"content-type", b"application/json"))
    if left := answered.allowance:
        limits = rate_limit_headers(left.limit, left.remaining, left.reset)
        headers += [(name.lower().encode(), text.encode()) for name, text in limits.items()]
    return _finish(answered.status, headers, answered.body, request_id)


def _show_error(error: Exception, environ: Environ, request_id: str) -> Answer:
    """The problem that Django would return for an error of the database."""
    request = HttpRequest()
    request.META = {**environ, "REQUEST_ID": request_id}
    response = answer_error(error, request)
    headers = [(name.lower().encode(), text.encode()) for name, text in response.headers.items()]
    headers.append((b"allow", _ALLOW))
    return _finish(response.status_code, headers, response.content, request_id)


def _finish(status: int, headers: Headers, body: bytes, request_id: str) -> Answer:
    """Add the headers that project/middleware.py adds, in the same order."""
    if settings.CORS_ALLOWED_ORIGINS:
        headers.append((b"vary", b"origin"))
    headers += [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
    return Answer({"type": "http.response.start", "status": status, "headers": headers}, body)
