"""Runs all processes: PostgreSQL, web, worker and beat, from one command until Ctrl-C.

None of them outlives it: children end with it even if it is killed, and a PostgreSQL that remains
after a kill is used by the next start.
"""

from __future__ import annotations

import http.client
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import connections

from project import audit_stream, broker, startup
from project.children import DRAIN_SECONDS, Child
from project.command_lines import command_line
from project.env import BadSetting
from project.logging import log_crashes
from project.ports import check_port
from project.postgres.base import embedded
from state_admin.services.bootstrap import LOGIN_LINK_COMMAND, ensure_first_run

log = structlog.get_logger(__name__)

_READY_TIMEOUT = 60.0
# How often PostgreSQL, which is not a child, is checked; the end of a child wakes the supervisor at
# once.
_TICK = 1.0
# A job may run this much longer at shutdown. An aborted job is repeated later.
_WORKER_SECONDS = 15.0
# A web process that ends this often before its first response is considered misconfigured.
_HOPELESS = 4


def check() -> None:
    """Raise BadSetting if something else uses the data folder or the port."""
    claim = startup.Claim()
    try:
        check_port(patience=startup.killed_run_patience(claim))
    finally:
        claim.release()


class Supervisor:
    def __init__(self, say: Callable[[str], Any], fresh_login: bool) -> None:
        self.say = say
        self.fresh_login = fresh_login
        self.children = [Child("web"), Child("worker"), Child("beat")]
        self.asked_to_stop = 0
        self._interruptible = False
        # Python writes a byte here for each signal, which ends a pause.
        self._signals, self._wakeup = socket.socketpair()
        self._signals.setblocking(False)
        self._wakeup.setblocking(False)

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP. Raises BadSetting if it cannot start."""
        log_crashes()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler no byte is written
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        claim = startup.Claim()
        try:
            self._interruptible = True
            welcome = "" if self.asked_to_stop else self._prepare(claim)
            self._interruptible = False
            if not self.asked_to_stop:
                self.children[0].start()
                self._wait_until_ready()
            if not self.asked_to_stop:
                self.say(welcome)
                self._watch()  # starts the others too
        except KeyboardInterrupt:
            pass
        finally:
            self._interruptible = False
            self._stop()
            claim.release()

    def _on_signal(self, *_: Any) -> None:
        self.asked_to_stop += 1
        if self._interruptible:  # no child runs yet: abort the start
            raise KeyboardInterrupt

    def _prepare(self, claim: startup.Claim) -> str:
        audit_stream.check_tls_files(settings.AUDIT_STREAM)
        broker.check()
        check_port(patience=startup.killed_run_patience(claim))
        startup.reach_database()
        if startup.migrate():
            log.info("database.migrated")
        broker.prepare()
        startup.collect_static()

        first = ensure_first_run(fresh_login=self.fresh_login)
        connections.close_all()
        return _welcome(first.login_url, first.token, str(claim.folder))

    def _wait_until_ready(self) -> None:
        """Start the web process alone first: four processes that import at once would delay the
        first page."""
        web = self.children[0]
        deadline = time.monotonic() + _READY_TIMEOUT
        while not self.asked_to_stop and not answers():
            web.restart_if_ended()
            if web.deaths >= _HOPELESS:
                raise BadSetting("The web process does not start; its last lines are above")
            if time.monotonic() > deadline:
                log.warning("web.start_delayed", seconds=_READY_TIMEOUT)
                break
            self._pause(0.05)

    def _watch(self) -> None:
        while not self.asked_to_stop:
            for child in self.children:
                child.restart_if_ended()
            self._pause(_TICK)
            if startup.is_embedded() and embedded().postmaster() is None:
                log.warning("postgresql.exited")
                embedded().acquire()

    def _pause(self, seconds: float) -> None:
        """Wait for so many seconds, or until a signal arrives."""
        if select.select([self._signals], [], [], seconds)[0]:
            self._signals.recv(4096)

    def _stop(self) -> None:
        """Stop web first, so that no new requests arrive, and PostgreSQL last, because all others
        need it."""
        if any(child.running for child in self.children):
            self.say("\nStopping …")
        before = max(self.asked_to_stop, 1)
        for child in self.children:
            child.stop(
                patience=_WORKER_SECONDS if child.role == "worker" else DRAIN_SECONDS + 2.0,
                hurried=lambda: self.asked_to_stop > before,
            )
        connections.close_all()
        if startup.is_embedded():
            embedded().release()


def answers() -> bool:
    """Whether /healthz responds. The request has the headers of a proxy, so that it is not
    redirected to https."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.HOST, settings.HOST)  # noqa: S104
    headers = {"Host": urlsplit(settings.SITE_URL).netloc, "X-Forwarded-Proto": "https"}
    client = http.client.HTTPConnection(host, settings.PORT, timeout=2)
    try:
        client.request("GET", "/healthz", headers=headers)
        return client.getresponse().status in (200, 301)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def _welcome(login_url: str | None, token: str | None, folder: str) -> str:
    rows = [("Open", settings.SITE_URL)]
    if login_url:
        rows.append(("Log in", f"{login_url}  (works once)"))
    else:
        rows.append(("Log in", f"to get a one-time link, run {command_line(LOGIN_LINK_COMMAND)}"))
    if token:
        rows.append(("API token", f"{token}  (shown once: keep it)"))
    else:
        command = command_line("manage.py create_token --role admin --name NAME")
        rows.append(("API token", f"to create one, run {command}"))
    rows.append(("Data", folder if startup.is_embedded() else "the server of DATABASE_URL"))
    lines = "\n".join(f"    {name:<11}{value}" for name, value in rows)
    return f"\n  Commonhold is ready.\n\n{lines}\n\n  Ctrl-C stops it.\n"
