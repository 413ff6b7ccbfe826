"""A call of the API and how it is made, without any I/O: both clients share all of this.

`Call` says what to send and how to read the response. `exchange` makes one call, with retries: it
yields what to do (a `Request` to send, a `Sleep` to take) and is sent the result (a `Reply`, or the
`RequestError`).
"""

from __future__ import annotations

import math
import random
import re
import secrets
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar
from urllib.parse import quote

import httpx2

from commonhold import arguments, documents
from commonhold.problems import InvalidArgument, Problem, Unreachable, problem_of
from commonhold.reading import Page

R = TypeVar("R")

# The default of a parameter whose None is sent as null. Any, so that it fits the type of each parameter.
NOTHING: Final[Any] = object()
JsonObject: TypeAlias = Mapping[str, Any]
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")
_ARGUMENTS: Final = {"Change-Reason": "reason"}  # the parameters of callers for these headers
_AGAIN: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Call(Generic[R]):
    """`read` converts the JSON of the response to the result (None if it has no content). `operation`: the
    operation of a batch with the same result, if there is one."""

    method: str
    path: str
    read: Callable[[Any], R]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = NOTHING
    headers: Mapping[str, str | None] = field(default_factory=dict)
    media_type: str = "application/json"
    keyed: bool = True
    wait: float = 0
    operation: Mapping[str, str] | None = None

    def with_idempotency_key(self, key: str | None) -> Call[R]:
        """The same call with the key of the caller; None: with a random one for each exchange."""
        if key is None:
            return self
        if self.method == "GET" or not self.keyed:
            raise InvalidArgument(f"{self.method} {self.path} takes no idempotency_key")
        header = arguments.name("idempotency_key", one_line("idempotency_key", key))
        return replace(self, headers={**self.headers, "Idempotency-Key": header})


@dataclass(frozen=True)
class Retries:
    """How often a call is repeated, and after which pauses: after connection errors, 429, 502, 503,
    504, and 409 `in-flight`.

    The pause before attempt n+1 is random between 0 and `first * 2 ** n` seconds, at most `longest`
    ("full jitter"). `Retry-After` is added to it, up to `patience` seconds. If the server requests
    a longer pause, the call fails.
    """

    attempts: int = 6
    first: float = 0.1
    longest: float = 5.0
    patience: float = 30.0

    def __post_init__(self) -> None:
        if not arguments.version("attempts", self.attempts):
            raise InvalidArgument(f"attempts must be at least 1, not {self.attempts!r}")
        for member in ("first", "longest", "patience"):
            arguments.duration(member, getattr(self, member))

    def pause(self, attempt: int) -> float:
        """Seconds after the failed attempt number `attempt`, which counts from 0."""
        # The exponent is limited, because a float cannot represent more than 2**1023.
        return random.uniform(0, min(self.longest, self.first * 2.0 ** min(attempt, 60)))


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: list[tuple[str, str]]
    headers: list[tuple[str, bytes]]
    content: bytes | None
    wait: float


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    content: bytes
    url: str = "the server"

    def describe(self) -> str:
        """Status, type and beginning of a response that does not come from Commonhold."""
        kind = self.headers.get("content-type", "") or "no content type"
        start = " ".join(_CONTROL.sub(" ", self.content[:400].decode(errors="replace")).split())
        text = f"{start[:100]}…" if len(start) > 100 or len(self.content) > 400 else start
        return f"{self.status}, {kind}, {f'begins with {text!r}' if text else 'empty'}"


def reply_of(response: httpx2.Response, content: bytes) -> Reply:
    """The response of an address, which is shown without its query."""
    url = response.url.copy_with(query=None)
    return Reply(response.status_code, response.headers, content, str(url))


@dataclass(frozen=True)
class Sleep:
    seconds: float


Exchange: TypeAlias = Generator[Request | Sleep, Reply | httpx2.RequestError | None, R]


def exchange(call: Call[R], retries: Retries, *, decimals: bool = False) -> Exchange[R]:
    """Make the call. Raises the Problem that the server returns, or Unreachable.

    An unsafe call carries one Idempotency-Key over all attempts: it has one effect.
    """
    request = _request(call)
    for attempt in range(retries.attempts):
        last = attempt == retries.attempts - 1
        answer = yield request
        if isinstance(answer, Reply):
            if answer.status < 300:
                return _result(call, answer, decimals)
            problem = problem_in(answer, decimals=decimals)
            retry_after = problem.retry_after or 0.0
            if last or not is_transient(problem) or retry_after > retries.patience:
                raise problem
            yield Sleep(retry_after + retries.pause(attempt))
        else:
            if last:
                raise unreachable(f"{call.method} {call.path}", answer) from answer
            yield Sleep(retries.pause(attempt))
    raise AssertionError("there is at least one attempt")


def unreachable(request: str, error: Exception | None) -> Unreachable:
    server = "the server"
    if isinstance(error, httpx2.RequestError):
        with suppress(RuntimeError):  # the error has no request
            url = error.request.url
            server = f"{url.scheme}://{url.netloc.decode()}"  # without a password
    return Unreachable(f"no response from {server} to {request}: {error!r}")


def problem_in(answer: Reply, *, decimals: bool = False) -> Problem:
    """The exception for a response that is not a success."""
    try:
        document = documents.load(answer.content, decimals=decimals)
    except (ValueError, RecursionError):
        document = None
    location = answer.headers.get("location", "")
    if location and answer.status < 400:
        hint = (
            f"{answer.url} redirects to {location}, which is not followed: correct the URL of the "
            "client."
        )
    else:
        hint = (
            f"The response of {answer.url} is not from Commonhold ({answer.describe()}): check the "
            "address, and any proxy before the server."
        )
    retry_after = _seconds(answer.headers.get("retry-after"))
    return problem_of(answer.status, document, retry_after, hint=hint)


def _result(call: Call[R], answer: Reply, decimals: bool) -> R:
    try:
        document = documents.load(answer.content, decimals=decimals) if answer.content else None
    except (ValueError, RecursionError) as error:
        raise not_of_commonhold(answer, "JSON") from error
    try:
        result = call.read(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise not_of_commonhold(answer, f"that of {call.method} {call.path}") from error
    if isinstance(result, Page):
        sent: Any = call  # For the type checker, R is not known to be a page.
        return replace(result, call=sent)
    return result


def not_of_commonhold(answer: Reply, expected: str) -> Unreachable:
    """The error for a success that cannot come from this API."""
    return Unreachable(
        f"the response of {answer.url} is not {expected} ({answer.describe()}); is this the address "
        "of a Commonhold server?"
    )


def segment(argument: str, value: str) -> str:
    """A name, id or key as one segment of a path, which cannot contain a separator."""
    return quoted(arguments.name(argument, value))


def quoted(text: str) -> str:
    """The text, with every character encoded that has a meaning in a path."""
    # A client or proxy that normalizes the URL would remove a segment that is a lone dot.
    return quote(text, safe="").replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def join_id(*parts: str) -> str:
    """Build one id from several parts. Each is percent-encoded, so that different parts give different
    ids."""
    return ":".join(quote(part, safe="") for part in parts)


def one_line(argument: str, value: str) -> str:
    """The text as a header value: line breaks and other control characters become spaces."""
    return _CONTROL.sub(" ", arguments.text(argument, value)).strip()


def polling(wait: float) -> int | None:
    """The parameter `wait` of a long poll: whole seconds, so that a short wait does not become none."""
    return math.ceil(arguments.duration("wait", wait)) or None


def random_id() -> str:
    """128 random bits of the operating system, in hexadecimal. Not `uuid.uuid4`, which test suites
    replace by a counter: a repeated idempotency key would drop a write."""
    return secrets.token_hex(16)


class Listing(TypedDict, total=False):
    """How a list is read: `limit` items per page, from `cursor` on, "asc" or "desc", and only items
    created at `created_after` or later and before `created_before`."""

    limit: int | None
    cursor: str | None
    order: Literal["asc", "desc"] | None
    created_after: datetime | None
    created_before: datetime | None


def given(**members: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def if_match(argument: str, value: int | None, reason: str) -> dict[str, str | None]:
    """The headers of a write that may require a version or revision."""
    number = arguments.version(argument, value)
    return {"If-Match": None if number is None else f'"{number}"', "Change-Reason": reason}


def _request(call: Call[Any]) -> Request:
    headers = {
        name: line
        for name, value in call.headers.items()
        if value is not None and (line := one_line(_ARGUMENTS.get(name, name), value))
    }
    content = None
    if call.body is not NOTHING:
        content = documents.encode(call.body)
        headers["Content-Type"] = call.media_type
    if call.method != "GET" and call.keyed:
        headers.setdefault("Idempotency-Key", random_id())
    _inject_trace(headers)
    return Request(
        method=call.method,
        path=call.path,
        query=[
            (name, arguments.parameter(name, each))
            for name, value in given(**call.query).items()
            for each in (value if isinstance(value, tuple) else (value,))
        ],
        headers=[(name, value.encode()) for name, value in headers.items()],
        content=content,
        wait=call.wait,
    )


def _inject_trace(headers: dict[str, str]) -> None:
    """Add traceparent and tracestate if the caller's program has an active span of OpenTelemetry, which
    is not imported here."""
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)


def is_transient(problem: Problem) -> bool:
    """Whether the same request may succeed later."""
    return problem.status in _AGAIN or problem.document.get("type") == "/problems/in-flight"


def _seconds(retry_after: str | None) -> float | None:
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    # "-0000" is UTC, without information about the local time zone.
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
