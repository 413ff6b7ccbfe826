"""Starts the web workers, each with uvicorn (docs/adr/0032-uvicorn.md)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import multiprocessing
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

import structlog
import uvicorn
from django.conf import settings

from project.children import DRAIN_SECONDS
from project.client_connection import ClientConnection
from project.parents import die_with_parent
from project.ports import bind, check_port
from state_admin import __version__

log = structlog.get_logger(__name__)

# How workers start. A fork shares the memory of this process, and starts in a tenth of the time of a new
# interpreter. On macOS, system libraries do not support forks.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
# How long a restarted web server waits for the port of the one before, whose workers were killed.
_RESTART_SECONDS = 3.0
# Connections of one worker. Open streams count, so the limit is far above the concurrent requests.
_CONNECTIONS = 4096
# File descriptors of a worker that are not client connections: databases, logs, pipes.
_OTHER_FILES = 256
# Connections that the kernel has accepted and a worker has not.
_BACKLOG = 2048
# What a worker may need after DRAIN_SECONDS, to end the requests that are left and run its last chore.
_LAST_SECONDS = 1.0
# Pause before a worker that has ended is replaced.
_RESPAWN_SECONDS = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


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


def serve() -> None:
    """Serve until SIGTERM.

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
    Workers().run()


class Workers:
    """The web workers. One that ends is replaced."""

    def __init__(self) -> None:
        self._connections = _connections()
        self._listeners = _listen()
        self._processes: list[BaseProcess] = []

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, which give requests DRAIN_SECONDS to finish."""
        # The signals are blocked, so that none is lost between two calls of sigwait. They need handlers,
        # because a signal that is ignored by default (SIGCHLD) could be discarded.
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._processes = [self._start(listener) for listener in self._listeners]
        while signal.sigwait(_SIGNALS) == signal.SIGCHLD:
            for place, process in enumerate(self._processes):
                if not process.is_alive():
                    log.warning("web_worker.ended", code=process.exitcode)
                    time.sleep(_RESPAWN_SECONDS)
                    self._processes[place] = self._start(self._listeners[place])
        self._stop()

    def _start(self, listener: socket.socket) -> BaseProcess:
        others = [each for each in self._listeners if each is not listener]
        process = multiprocessing.Process(target=work, args=(listener, others, self._connections))
        process.start()
        return process

    def _stop(self) -> None:
        for listener in self._listeners:
            listener.close()
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + DRAIN_SECONDS + _LAST_SECONDS
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()


def _listen() -> list[socket.socket]:
    """A listening socket for each worker. They stay open while a worker is replaced. On Linux, each worker
    has its own, and the kernel distributes the connections."""
    if sys.platform != "linux":
        return [bind(settings.HOST, settings.PORT)] * settings.WEB_WORKERS
    return [bind(settings.HOST, settings.PORT, shared=True) for _ in range(settings.WEB_WORKERS)]


def work(listener: socket.socket, others: Sequence[socket.socket], connections: int) -> None:
    """Run a web worker until SIGTERM. Ctrl-C reaches its parent too, which stops it. `others`: the
    listening sockets of other workers."""
    for other in others:  # otherwise, they would remain open after those workers have ended
        other.close()
    # With the handlers of the parent, a SIGTERM during the import would be lost. The default action is to
    # end the process, which is right before the first request.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    die_with_parent()
    # Each worker has an application of its own, which connects and starts threads.
    from project.asgi import application
    from project.bridge import render_refusal
    from state_admin.services.errors import BadRequest

    # Other types than uvicorn declares (a class, an int), which it accepts.
    undeclared: dict[str, Any] = {
        "http": functools.partial(
            ClientConnection, most=connections, refuse=lambda why: render_refusal(BadRequest(why))
        ),
        "timeout_keep_alive": settings.HEADER_SECONDS,
    }
    config = uvicorn.Config(
        application,
        loop="uvloop",
        ws="none",
        lifespan="on",
        interface="asgi3",
        # The bridge decides which headers of a proxy to trust.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level="error",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        **undeclared,
    )
    _Server(config).run([listener])


class _Server(uvicorn.Server):
    """Stops only on SIGTERM, and wakes once a second instead of ten times, which saves processor time while
    it is idle."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        signal.signal(signal.SIGTERM, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._ending.wait()
