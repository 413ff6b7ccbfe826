"""The port that the web server listens on."""

from __future__ import annotations

import errno
import socket
import time

from django.conf import settings

from project.env import BadSetting


def check_port(*, patience: float = 0.0) -> None:
    """Raise BadSetting unless HOST and PORT can be bound; waits up to `patience` seconds for a port
    in use. The workers would share it with another server of the same user (SO_REUSEPORT)."""
    deadline = time.monotonic() + patience
    while True:
        try:
            bind(settings.HOST, settings.PORT).close()
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise BadSetting(_describe_bind_error(error)) from None
        return


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A bound socket. `shared`: others of this user can bind the same port."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


def _describe_bind_error(error: OSError) -> str:
    host, port = settings.HOST, settings.PORT
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use; stop the other program or set PORT={port + 1}"
    if error.errno == errno.EACCES:
        return f"Port {port} is reserved for root; set PORT=8000 or another one above 1023"
    return f"Cannot listen on {host}:{port} ({error.strerror}); check HOST and PORT"
