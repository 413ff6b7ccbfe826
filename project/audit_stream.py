"""The destination of the audit stream, from the environment (docs/guides/audit.md)."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

from project.addresses import is_http_url
from project.env import BadSetting, read_environment

Scheme = Literal["syslog+tcp", "syslog+tls", "file", "s3"]

_FORMS: Final = (
    "AUDIT_STREAM must be syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT, file:///FOLDER or "
    "s3://BUCKET/PREFIX"
)
_EXTRA: Final = (
    "An AUDIT_STREAM that begins with s3:// needs the packages of requirements-s3.txt, which are not "
    "installed: pip install --require-hashes -r requirements-s3.txt"
)


@dataclass(frozen=True)
class Destination:
    """The destination of the audit. `url` identifies it and contains no secret. `host`: also the bucket of
    `s3`. `path`: the folder of `file`, the prefix of `s3`. `tls_ca`, `tls_cert`: names of files, empty
    for the defaults of the system. `endpoint`: the address of an S3 server, empty for AWS."""

    url: str
    scheme: Scheme
    host: str
    port: int
    path: str
    tls_ca: str = ""
    tls_cert: str = ""
    endpoint: str = ""


def read_destination() -> Destination | None:
    """The destination that the environment names; None without one. Raises BadSetting."""
    env = read_environment()
    tls = bool(env.audit_stream_tls_ca or env.audit_stream_tls_cert)
    if tls and not env.audit_stream.startswith("syslog+tls:"):
        raise BadSetting(
            "AUDIT_STREAM_TLS_CA and AUDIT_STREAM_TLS_CERT need an AUDIT_STREAM that begins with "
            "syslog+tls://"
        )
    endpoint = env.audit_stream_s3_endpoint
    if endpoint and not env.audit_stream.startswith("s3:"):
        raise BadSetting("AUDIT_STREAM_S3_ENDPOINT needs an AUDIT_STREAM that begins with s3://")
    if not env.audit_stream:
        return None
    try:
        address = urlsplit(env.audit_stream)
        port = address.port
    except ValueError:
        raise BadSetting(_FORMS) from None
    if endpoint and not (is_http_url(endpoint) and "@" not in urlsplit(endpoint).netloc):
        raise BadSetting("AUDIT_STREAM_S3_ENDPOINT must be an http:// or https:// URL")
    if not _is_complete(address, port):
        raise BadSetting(_FORMS)
    if address.scheme == "s3" and find_spec("botocore") is None:
        raise BadSetting(_EXTRA)
    return Destination(
        # The same bucket of another server is another destination.
        url=f"{env.audit_stream} at {endpoint}" if endpoint else env.audit_stream,
        scheme=cast(Scheme, address.scheme),
        host=address.hostname or "",
        port=port or 0,
        path=address.path,
        tls_ca=env.audit_stream_tls_ca,
        tls_cert=env.audit_stream_tls_cert,
        endpoint=endpoint,
    )


def check_tls_files(destination: Destination | None) -> None:
    """Raise BadSetting if a file of AUDIT_STREAM_TLS_CA or AUDIT_STREAM_TLS_CERT cannot be used. For
    worker and `serve`: other processes send nothing, and may run where the files do not exist."""
    if destination is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The password keeps OpenSSL from asking for one on the terminal.
    load_own = functools.partial(context.load_cert_chain, password="none")  # noqa: S106
    own = "a certificate and its unencrypted private key"
    for name, path, load, content in (
        ("AUDIT_STREAM_TLS_CA", destination.tls_ca, context.load_verify_locations, "certificates"),
        ("AUDIT_STREAM_TLS_CERT", destination.tls_cert, load_own, own),
    ):
        try:
            if path:
                load(path)
        except ssl.SSLError:
            raise BadSetting(f"{path}, which {name} names, must contain {content} (PEM)") from None
        except OSError as error:
            raise BadSetting(f"Cannot read {path}, which {name} names: {error.strerror}") from None


def _is_complete(address: SplitResult, port: int | None) -> bool:
    """Whether the address has what its scheme needs, and nothing else."""
    if address.query or address.fragment or "@" in address.netloc:
        return False
    if address.scheme == "file":
        return not address.netloc and len(address.path) > 1
    if address.scheme == "s3":
        return bool(address.hostname) and port is None
    return (
        address.scheme in get_args(Scheme)
        and bool(address.hostname and port)
        and address.path in ("", "/")
    )
