"""Starts granian with our application: the only place that knows the web server."""

from __future__ import annotations

import gc
import importlib
import resource
import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from project.parents import die_with_parent

# Seconds between SIGTERM and the end of requests that still run.
DRAIN_SECONDS = 10
# Connections of one worker. Open streams count, so it is far above the requests it can serve.
_CONNECTIONS = 4096
# File descriptors of a worker that are not client connections: databases, logs, pipes.
_OTHER_FILES = 256
# Read buffer of a connection. It bounds the headers of a request (431 beyond) and a part of a body.
_BUFFER_BYTES = 64 * 1024


def load(target: str) -> Any:
    """Import `module:name` in a fresh web worker.

    The worker was forked with the parent's signal handlers: a SIGTERM during the import would be
    swallowed. By default it kills, which is right before the first request.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's
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


def serve(target: str = "project.asgi:application", **options: Any) -> None:
    """Serve until SIGTERM. `options` are granian's; they win over the settings.

    Django is imported before the workers are forked: they start at once and share its memory. It
    must not connect or start threads here; `project.asgi`, imported by each worker, does.
    """
    importlib.import_module("project.wsgi")
    gc.freeze()
    Granian(
        target,
        **{
            "address": settings.HOST,
            "port": settings.PORT,
            "interface": Interfaces.ASGI,
            # With "auto", granian detects HTTP/2 by the first bytes, and waits for them without a timeout.
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
