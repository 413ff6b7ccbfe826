"""The destinations of the audit stream: syslog, files and S3.

`send` returns when the destination has confirmed all rows, and raises Failed otherwise. The operator
chose the address (AUDIT_STREAM), so egress.py does not apply.
"""

from __future__ import annotations

import base64
import fcntl
import functools
import hashlib
import os
import socket
import ssl
import sys
import termios
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from project.audit_stream import Destination, Scheme

# Seconds for each step: to connect, to send, and until the receiver confirms.
TIMEOUT: Final = 10.0
# Facility 13 (log audit), severity 6 (informational): RFC 5424, section 6.2.1.
_PRIORITY: Final = 13 * 8 + 6


class Line(NamedTuple):
    """A row of the audit: its id, its time, its action, and the row as JSON."""

    id: int
    at: datetime
    action: str
    json: bytes


class Failed(Exception):
    """The destination did not confirm the rows. The message is for the operator, without values."""


def send(destination: Destination, lines: Sequence[Line]) -> None:
    """Send rows, at least one. Raises Failed: the destination may have any of them."""
    try:
        _SINKS[destination.scheme](destination, lines)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or "the connection was lost"
        raise Failed(f"TLS: {reason}") from error
    except TimeoutError as error:
        raise Failed(f"no reply within {TIMEOUT:g} s") from error
    except OSError as error:
        raise Failed(error.strerror or str(error)) from error
    except UnicodeError as error:
        raise Failed("the name of the host is invalid") from error


def _send_syslog(destination: Destination, lines: Sequence[Line]) -> None:
    """RFC 5424 with octet counting: RFC 6587 over TCP, RFC 5425 over TLS.

    Syslog has no acknowledgement. What a socket has accepted may never be read, so we end the
    connection and wait until the receiver has read to its end and closes it, too.
    """
    name = socket.gethostname()
    data = b"".join(_frame(line, name) for line in lines)
    with socket.create_connection((destination.host, destination.port), TIMEOUT) as plain:
        if destination.scheme == "syslog+tcp":
            plain.sendall(data)
            _await_end(plain)
            return
        with _tls(destination).wrap_socket(plain, server_hostname=destination.host) as secure:
            secure.sendall(data)
            try:
                _await_end(secure.unwrap())
            except ssl.SSLEOFError:  # rsyslog with GnuTLS closes without close_notify
                _check_end(secure)


def _await_end(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    if connection.recv(1):
        raise Failed("the receiver sent data, so it does not speak syslog")
    _check_end(connection)


def _check_end(connection: socket.socket) -> None:
    """Whether the receiver closed the connection after it had everything. Its end acknowledges what
    it got before. If it closed too early, or without reading, something is not acknowledged, or the
    connection is reset."""
    if _unacknowledged(connection) or connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise Failed("the receiver closed the connection before it had read all rows")


def _unacknowledged(connection: socket.socket) -> int:
    """The number of bytes that the other side has not acknowledged."""
    if sys.platform == "darwin":
        return connection.getsockopt(socket.SOL_SOCKET, 0x1024)  # SO_NWRITE
    return int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def _tls(destination: Destination) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=destination.tls_ca or None)
        if destination.tls_cert:
            context.load_cert_chain(destination.tls_cert)
    except OSError as error:
        names = "AUDIT_STREAM_TLS_CA or AUDIT_STREAM_TLS_CERT"
        raise Failed(f"cannot read {names}: {error.strerror}") from error
    return context


def _frame(line: Line, hostname: str) -> bytes:
    at = line.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    head = f"<{_PRIORITY}>1 {at} {hostname} commonhold - {line.action[:32]} - "
    message = head.encode() + line.json
    return b"%d %b" % (len(message), message)


def _write_file(destination: Destination, lines: Sequence[Line]) -> None:
    """A new file for the batch, which appears with its whole content."""
    data = b"".join(line.json + b"\n" for line in lines)
    folder = Path(destination.path)
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)  # rows have names and keys
    path = folder / segment_name(lines, data)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    # The folder of the day may be new, too.
    for each in (path.parent, folder):
        _flush_folder(each)


def _flush_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _put_object(destination: Destination, lines: Sequence[Line]) -> None:
    """A new object for the batch. With its MD5, which buckets with object lock require, and not with
    the checksums that S3-compatible servers may not know."""
    from botocore.exceptions import BotoCoreError, ClientError

    data = b"".join(line.json + b"\n" for line in lines)
    digest = hashlib.md5(data, usedforsecurity=False).digest()
    folder = destination.path.strip("/")
    name = segment_name(lines, data)
    try:
        _s3_client(destination.endpoint).put_object(
            Bucket=destination.host,
            Key=f"{folder}/{name}" if folder else name,
            Body=data,
            ContentMD5=base64.b64encode(digest).decode(),
            ContentType="application/x-ndjson",
        )
    except ClientError as error:
        raise Failed(f"S3: {error.response['Error']['Code']}") from error
    except BotoCoreError as error:
        raise Failed(f"S3: {error}") from error


@functools.cache
def _s3_client(endpoint: str) -> Any:
    """The client, which is imported and built on first use, because that takes a second."""
    import botocore.session
    from botocore.config import Config

    config = Config(
        connect_timeout=TIMEOUT,
        read_timeout=TIMEOUT,
        retries={"total_max_attempts": 1},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    return botocore.session.get_session().create_client(
        "s3", endpoint_url=endpoint or None, config=config
    )


def segment_name(lines: Sequence[Line], data: bytes) -> str:
    """`YEAR-MONTH-DAY/FIRST-LAST-HASH.ndjson`. Other rows never get the same name, so nothing is
    overwritten: not when a batch is repeated, and not by another server."""
    first, last = lines[0], lines[-1]
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"{first.at.astimezone(UTC):%Y-%m-%d}/{first.id:019d}-{last.id:019d}-{digest}.ndjson"


_SINKS: Final[dict[Scheme, Callable[[Destination, Sequence[Line]], None]]] = {
    "syslog+tcp": _send_syslog,
    "syslog+tls": _send_syslog,
    "file": _write_file,
    "s3": _put_object,
}
