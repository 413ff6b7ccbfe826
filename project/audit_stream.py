"""The destination of the audit stream, from the environment (docs/guides/audit.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

from project.env import BadSetting, read_environment

Scheme = Literal["syslog+tcp", "syslog+tls", "file"]

_FORMS: Final = (
    "AUDIT_STREAM must be syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT or file:///FOLDER"
)


@dataclass(frozen=True)
class Destination:
    """Where the audit is sent. `url` identifies it and holds no secret. `path`: the folder of `file`.
    `tls_ca`, `tls_cert`: names of files, empty for the defaults of the system."""

    url: str
    scheme: Scheme
    host: str
    port: int
    path: str
    tls_ca: str = ""
    tls_cert: str = ""


def read_destination() -> Destination | None:
    """The destination that the environment names; None without one. Raises BadSetting."""
    env = read_environment()
    tls = bool(env.audit_stream_tls_ca or env.audit_stream_tls_cert)
    if tls and not env.audit_stream.startswith("syslog+tls:"):
        raise BadSetting(
            "AUDIT_STREAM_TLS_CA and AUDIT_STREAM_TLS_CERT need an AUDIT_STREAM that begins with "
            "syslog+tls://"
        )
    if not env.audit_stream:
        return None
    try:
        address = urlsplit(env.audit_stream)
        port = address.port
    except ValueError:
        raise BadSetting(_FORMS) from None
    if not _is_complete(address, port):
        raise BadSetting(_FORMS)
    return Destination(
        url=env.audit_stream,
        scheme=cast(Scheme, address.scheme),
        host=address.hostname or "",
        port=port or 0,
        path=address.path,
        tls_ca=env.audit_stream_tls_ca,
        tls_cert=env.audit_stream_tls_cert,
    )


def _is_complete(address: SplitResult, port: int | None) -> bool:
    """Whether the address has what its scheme needs, and nothing else."""
    if address.query or address.fragment or "@" in address.netloc:
        return False
    if address.scheme == "file":
        return not address.netloc and len(address.path) > 1
    return (
        address.scheme in get_args(Scheme)
        and bool(address.hostname and port)
        and address.path in ("", "/")
    )
