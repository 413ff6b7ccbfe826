"""Sends POST requests to URLs that users configure, with protection against server-side request
forgery (SSRF; OWASP API7:2023). All outgoing requests to such URLs must use this module.

The host name is resolved once. All its addresses are checked, and the connection is made to one of
them, so that DNS rebinding has no effect. Redirects are not followed. Proxies and .netrc from the
environment are ignored. The response body is discarded unless the caller requests it.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from .domain.networks import is_public

# The maximum number of bytes read from a response body that is discarded. Reading a usual body to
# its end lets the receiver close the connection without an error.
_MOST_ANSWER = 64 * 1024
LONGEST_URL = 2048
_OPEN_PORTS = (80, 443)
# A host name (international names in their ASCII form) or an IP address.
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


class Refused(Exception):
    """The URL or its address is not permitted. The message is shown to users."""


class Failed(Exception):
    """No complete response: a connection, timeout, TLS or protocol error, or a body that is too
    large."""


@dataclass(frozen=True)
class Reply:
    """A response. `body` and `content_type` (lower case, without parameters) are empty unless the
    caller requested the body."""

    status: int
    retry_after: str = ""
    content_type: str = ""
    body: bytes = b""


@dataclass(frozen=True)
class Timeout:
    """In seconds: for connecting, for each read, and for the whole request."""

    connect: float
    read: float
    total: float


def check_url(url: str, *, allow_private: bool) -> None:
    """Raise Refused for a URL that `post` would refuse without resolving its name. `post` checks
    the addresses at each call, because they can change."""
    _parse(url, allow_private)


def is_private(url: str, *, seconds: float = 2.0) -> bool:
    """Whether the host of the URL is a private address, localhost, or a name that resolves to a
    private address. False if the name cannot be resolved within `seconds`."""
    parsed = httpx2.URL(url)
    host = parsed.raw_host.decode("ascii").lower().removesuffix(".").strip("[]")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return not is_public(host)
    resolver = ThreadPoolExecutor(max_workers=1)
    try:
        addresses = resolver.submit(_resolve, host, parsed.port or 443).result(seconds)
    except (OSError, UnicodeError, TimeoutError):
        return False
    finally:
        resolver.shutdown(wait=False)
    return not all(map(is_public, addresses))


def origin_of(url: str) -> str:
    """Return scheme, host and port: the part of a URL that contains no secret."""
    parsed = httpx2.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    seconds: float | Timeout,
    allow_private: bool,
    most: int = 0,
) -> Reply:
    """POST `body` and return the response.

    `seconds` limits the total time, also if the peer sends slowly. It does not interrupt the
    system's name resolution. `most` is the maximum size of the response body in bytes; with 0, the
    body is discarded.

    Raises Refused for an invalid URL and, unless `allow_private`, for an address that is not
    public. Raises Failed if there is no complete response, or its body exceeds `most`.
    """
    timeout = seconds if isinstance(seconds, Timeout) else Timeout(seconds, seconds, seconds)
    target = _parse(url, allow_private)
    deadline = time.monotonic() + timeout.total
    backend = _Backend(deadline, timeout, allow_private)
    address = httpcore2.URL(
        scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path
    )
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), timeout.total)
    sent = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    try:
        with (
            httpcore2.ConnectionPool(ssl_context=_tls(), network_backend=backend) as pool,
            pool.stream(
                "POST", address, headers=sent, content=body, extensions={"timeout": timeouts}
            ) as response,
        ):
            fields = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            retry_after = fields.get(b"retry-after", "")[:64]
            if not most:
                _drop_body(response)
                return Reply(response.status, retry_after)
            kind = fields.get(b"content-type", "").partition(";")[0].strip().lower()[:128]
            return Reply(response.status, retry_after, kind, _read_body(response, most))
    except httpcore2.TimeoutException as late:
        if time.monotonic() >= deadline:
            raise Failed(f"no answer within {timeout.total:g} s") from late
        if isinstance(late, httpcore2.ConnectTimeout):
            raise Failed(f"no connection within {timeout.connect:g} s") from late
        raise Failed(f"no data received for {timeout.read:g} s") from late
    except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError) as broken:
        raise Failed(_plain(broken)) from broken


def _parse(url: str, allow_private: bool) -> httpx2.URL:
    if len(url) > LONGEST_URL:
        raise Refused(f"a URL must have at most {LONGEST_URL} characters")
    try:
        parsed = httpx2.URL(url)
        port = parsed.port
        host = parsed.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        raise Refused("the URL is not valid") from None
    if parsed.scheme not in ("http", "https"):
        raise Refused("the URL must begin with https:// or http://")
    if not _HOST.fullmatch(host):
        raise Refused("the URL has no valid host name or address")
    if parsed.userinfo:
        raise Refused("the URL must not contain a user name or password")
    if parsed.fragment:
        raise Refused("the URL must not contain a #fragment")
    if port is not None and not 1 <= port <= 65535:
        raise Refused("the port must be between 1 and 65535")
    if port is not None and port < 1024 and port not in _OPEN_PORTS and not allow_private:
        raise Refused("the port must be 80, 443, or 1024 and above")
    return parsed


def _drop_body(response: httpcore2.Response) -> None:
    """Read and discard up to _MOST_ANSWER bytes of the body. Errors are ignored, because the
    status is already known."""
    seen = 0
    try:
        for part in response.iter_stream():
            seen += len(part)
            if seen > _MOST_ANSWER:
                return
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
        return


def _read_body(response: httpcore2.Response, most: int) -> bytes:
    body = bytearray()
    for part in response.iter_stream():
        body += part
        if len(body) > most:
            raise Failed(f"the response body has more than {most:,} bytes")
    return bytes(body)


def _plain(error: Exception) -> str:
    """Return a short description of the error, without addresses of this server."""
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the TLS certificate is not valid: {cause.verify_message}"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return "the host name has no address"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return str(error) or type(error).__name__


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


def _resolve(host: str, port: int) -> list[str]:
    """Return all IP addresses of a host name, in the order in which to try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Backend(httpcore2.NetworkBackend):
    """Connects only to permitted addresses, and enforces the deadline."""

    def __init__(self, deadline: float, limits: Timeout, allow_private: bool) -> None:
        self._deadline = deadline
        self._limits = limits
        self._allow_private = allow_private
        self._tcp = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            addresses = _resolve(host, port)
        except (OSError, UnicodeError) as unknown:
            raise httpcore2.ConnectError("the host name has no address") from unknown
        # Refuse the host if any of its addresses is private. The message omits the address, because
        # users who create webhooks must not learn the results of the internal name server.
        if not self._allow_private and not all(map(is_public, addresses)):
            raise Refused(
                "its address is not public; the operator of the server can permit private "
                "addresses with WEBHOOK_ALLOW_PRIVATE=true"
            )
        until = min(self._deadline, time.monotonic() + self._limits.connect)
        failure: Exception = httpcore2.ConnectError("the host name has no address")
        for number, address in enumerate(addresses):
            # Divide the remaining time equally among the remaining addresses.
            share = _left(until, httpcore2.ConnectTimeout) / (len(addresses) - number)
            try:
                stream = self._tcp.connect_tcp(
                    address, port, timeout=share, socket_options=socket_options
                )
                return _Stream(stream, self._deadline, self._limits.read)
            except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
                failure = error
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        raise Refused("not a network address")


class _Stream(httpcore2.NetworkStream):
    """A connection on which every operation ends at the deadline, so that a peer that sends one
    byte per second cannot keep it open."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float, patience: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._patience = patience

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, min(self._patience, _left(self._deadline)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        tls = self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline))
        return _Stream(tls, self._deadline, self._patience)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, late: type[httpcore2.TimeoutException] = httpcore2.ReadTimeout) -> float:
    """Return the seconds until the deadline. Raises `late` if it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise late("the deadline has passed")
    return left
