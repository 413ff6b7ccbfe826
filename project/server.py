"""Starts granian with the application: the only module that depends on the web server."""

from __future__ import annotations

import errno
import gc
import importlib
import multiprocessing
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from project.env import BadSetting
from project.parents import die_with_parent
from state_admin import __version__

log = structlog.get_logger(__name__)

# How workers start. A fork shares the memory of this process, and starts in a tenth of the time of a new
# interpreter. It is set because it is not the default on Linux since Python 3.14 (granian would start new
# interpreters). On macOS, system libraries do not support forks.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
# Seconds between SIGTERM and the abort of requests that are still running.
DRAIN_SECONDS = 10
# How long a restarted web server waits for the port of the one before, whose workers were killed.
_RESTART_SECONDS = 3.0
# Connections of one worker. Open streams count, so the limit is far above the concurrent requests.
_CONNECTIONS = 4096
# File descriptors of a worker that are not client connections: databases, logs, pipes.
_OTHER_FILES = 256
# Read buffer of a connection. It limits the headers of a request (beyond: 431) and a part of a
# body.
_BUFFER_BYTES = 64 * 1024


def load(target: str) -> Any:
    """Import `module:name` in a new web worker.

    The worker inherits the parent's signal handlers, with which a SIGTERM during the import would
    be lost. The default action is to end the process, which is right before the first request.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    die_with_parent()
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _connections() -> int:
    """Return how many connections a worker accepts, and raise its limit of open files to fit them.
    A worker without free file descriptors could not connect to the database."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - _OTHER_FILES)
    return _CONNECTIONS


def check_port(*, patience: float = 0.0) -> None:
    """Raise BadSetting unless HOST and PORT can be bound; waits up to `patience` seconds for a port
    in use. granian would share the port with another process of the same user (SO_REUSEPORT)."""
    deadline = time.monotonic() + patience
    while True:
        try:
            _bind(settings.HOST, settings.PORT)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise BadSetting(_why_not(error)) from None
        return


def _bind(host: str, port: int) -> None:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _why_not(error: OSError) -> str:
    host, port = settings.HOST, settings.PORT
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use; stop the other program or set PORT={port + 1}"
    if error.errno == errno.EACCES:
        return f"Port {port} is reserved for root; set PORT=8000 or another one above 1023"
    return f"Cannot listen on {host}:{port} ({error.strerror}); check HOST and PORT"


def serve(target: str = "project.asgi:application", **options: Any) -> None:
    """Serve until SIGTERM. `options` are granian's and override the settings.

    Django is imported before the workers are forked, so that they start quickly and share its
    memory. It must not connect or start threads here; `project.asgi`, imported by each worker,
    does.
    """
    multiprocessing.set_start_method(START_METHOD, force=True)
    check_port(patience=_RESTART_SECONDS)
    gc.disable()  # imports leave no garbage, and collection takes a tenth of their time
    importlib.import_module("project.wsgi")
    gc.freeze()
    gc.enable()
    log.info("process.started", version=__version__, port=settings.PORT)
    Granian(
        target,
        **{
            "address": settings.HOST,
            "port": settings.PORT,
            "interface": Interfaces.ASGI,
            # With "auto", granian detects HTTP/2 by the first bytes, for which it waits without a
            # timeout.
            "http": HTTPModes.http1,
            "loop": Loops.uvloop,
            "workers": settings.WEB_WORKERS,
            "backlog": 2048,
            "backpressure": _connections(),
            "websockets": False,
            "http1_settings": HTTP1Settings(
                header_read_timeout=round(settings.HEADER_SECONDS * 1000),
                max_buffer_size=_BUFFER_BYTES,
            ),
            "workers_kill_timeout": DRAIN_SECONDS,
            "respawn_failed_workers": True,
            "respawn_interval": 0.5,
            "log_dictconfig": {"loggers": {"_granian": {"propagate": True}}},
            "log_level": "warning",
            "working_dir": Path.cwd(),
            **options,
        },
    ).serve(target_loader=load)
