"""Receivers of syslog: real servers over TCP and TLS, each with its own behaviour."""

from __future__ import annotations

import contextlib
import json
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, socket
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from project.audit_stream import Destination
from tests.receiving import serving

# Called with the connection and its number, from 1, when the client has sent everything.
Manners = Callable[[socket, int], None]


def close(connection: socket, number: int) -> None:
    """What a receiver does that has read everything."""
    if isinstance(connection, ssl.SSLSocket):
        with contextlib.suppress(OSError):
            connection.unwrap().close()


def reset(connection: socket, number: int) -> None:
    connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))


class Handler(socketserver.BaseRequestHandler):
    server: SyslogReceiver

    def handle(self) -> None:
        connection: socket = self.request
        if self.server.tls:
            try:
                connection = self.server.tls.wrap_socket(connection, server_side=True)
            except OSError:  # the client refuses the certificate, or has none
                return
            self.request = connection
        data = b""
        with contextlib.suppress(OSError):
            while chunk := connection.recv(65536):
                data += chunk
        number = self.server.note(data)
        with contextlib.suppress(OSError):
            self.server.manners(connection, number)

    def finish(self) -> None:
        self.request.close()


class SyslogReceiver(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, manners: Manners = close, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.manners = manners
        self.tls = tls
        self.messages: list[str] = []
        self.connections = 0
        self._noted = threading.Lock()

    def note(self, data: bytes) -> int:
        with self._noted:
            self.messages += unframe(data)
            self.connections += 1
            return self.connections

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def rows(self) -> list[Any]:
        """The audit rows, as they arrived."""
        return [json.loads(message.split(" ", 7)[7]) for message in self.messages]

    @property
    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows]

    def destination(self, **options: str) -> Destination:
        scheme = "syslog+tls" if self.tls else "syslog+tcp"
        url = f"{scheme}://127.0.0.1:{self.port}"
        return Destination(url, scheme, "127.0.0.1", self.port, "", **options)  # type: ignore[arg-type]


def unframe(data: bytes) -> Iterator[str]:
    """The messages of a stream with octet counting."""
    while data:
        count, _, data = data.partition(b" ")
        assert len(data) >= int(count), "the last message is incomplete"
        yield data[: int(count)].decode()
        data = data[int(count) :]


@contextlib.contextmanager
def receiving_syslog(
    manners: Manners = close, tls: ssl.SSLContext | None = None
) -> Iterator[SyslogReceiver]:
    receiver = SyslogReceiver(manners, tls)
    with serving(receiver):
        yield receiver


def make_certificate(folder: Path) -> Path:
    """A file with a certificate for 127.0.0.1, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "audit")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def server_side(certificate: Path, *, mutual: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if mutual:
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
