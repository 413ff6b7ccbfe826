"""Limits how long a commit waits for synchronous standbys. A commit that no standby has confirmed
raises UnconfirmedCommit.

PostgreSQL applies no timeout to this wait. If the wait is cancelled, PostgreSQL reports success
with a warning: the transaction is committed on the primary, but a failover may lose it.

To cancel the wait, the process connects again. A server that does not respond to that either hangs: it
does not apply its timeouts, and keeps its connections open. So the process closes them.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus

from project.env import read_environment
from project.failures import describe_error

T = TypeVar("T")

log = structlog.get_logger(__name__)

# The longest wait for a response of a read replica when it is checked.
CHECK_SECONDS = 2.0

# After this many consecutive connections without a response, during one statement, the server counts as
# hung. More than one, because the network may have lost the packets of a single connection.
_MOST_UNANSWERED = 2

# Cancels the statement of a backend only if it waits for standbys.
_RELEASE = (
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
)


@functools.cache
def patience() -> float:
    """Seconds that a commit may wait for its standbys."""
    return read_environment().standby_timeout_ms / 1000


class UnconfirmedCommit(psycopg.OperationalError):
    """The transaction is committed on the primary, but no standby has confirmed it in time."""

    def __init__(self) -> None:
        super().__init__("no standby has confirmed the commit in time")


class ServerHangs(psycopg.OperationalError):
    """The server keeps its connections open, but does not respond."""

    def __init__(self) -> None:
        super().__init__("the database server does not respond")


class Connection(psycopg.Connection[Any]):
    """Raises UnconfirmedCommit from the statement whose commit was not confirmed. `is_obsolete`:
    the server has become read-only; close the connection, so that a new one can reach the new
    primary."""

    # The process ID of the backend, from pg_backend_pid(). Behind a pooler, `info` has another one.
    server_pid = 0
    is_obsolete = False
    # Connections in a row to which the server did not respond, during the present statement.
    unanswered = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unconfirmed = watch(self)

    def _patience(self) -> float:
        return patience()

    def wait(self, gen: Generator[Any, Any, T], *options: Any, **more: Any) -> T:
        try:
            result = super().wait(self._bound(gen), *options, **more)
        except psycopg.errors.ReadOnlySqlTransaction:
            self.is_obsolete = True
            raise
        raise_if_any(self._unconfirmed)
        return result

    def _bound(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """`gen`, but after each `_patience` without a response, `_handle_silence` is called."""
        self.unanswered = 0
        until = time.monotonic() + self._patience()
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                if not ready and time.monotonic() > until:
                    self._handle_silence()
                    until = time.monotonic() + self._patience()
                awaited = gen.send(ready)
        except StopIteration as ended:
            result: T = ended.value
            return result

    def _handle_silence(self) -> None:
        # ACTIVE excludes waiting for notifications. A thread, because connecting may also block.
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            if hangs(self):
                self.close()
                raise ServerHangs
            threading.Thread(target=end_wait, args=[self], daemon=True).start()


class ReplicaConnection(Connection):
    """A connection to a read replica. A server that hangs would not apply its own timeouts, so a
    statement without a response after `seconds` closes the connection and raises OperationalError."""

    seconds = CHECK_SECONDS

    def _patience(self) -> float:
        return self.seconds

    def _handle_silence(self) -> None:
        self.close()
        raise psycopg.OperationalError("the replica does not respond")


class AsyncConnection(psycopg.AsyncConnection[Any]):
    server_pid = 0
    unanswered = 0


def watch(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> list[Diagnostic]:
    """Return the list to which the connection appends a notice for each unconfirmed commit."""
    unconfirmed: list[Diagnostic] = []

    def note(notice: Diagnostic) -> None:
        # PostgreSQL translates the text of a notice, but not the name of the function that sent it.
        if notice.source_function == "SyncRepWaitForLSN":
            unconfirmed.append(notice)

    connection.add_notice_handler(note)
    return unconfirmed


def raise_if_any(unconfirmed: list[Diagnostic]) -> None:
    if unconfirmed:
        unconfirmed.clear()
        raise UnconfirmedCommit


def hangs(stuck: Connection | AsyncConnection) -> bool:
    """Whether the server of a connection that waits for a response hangs, as `end_wait` has found."""
    return stuck.unanswered >= _MOST_UNANSWERED


def end_wait(stuck: Connection | AsyncConnection) -> None:
    """Cancel the statement of a connection if it waits for standbys. Counts in `stuck.unanswered` that the
    server did not respond."""
    unanswered = 0
    try:
        with contextlib.closing(
            psycopg.connect(
                stuck.info.dsn,
                host=stuck.info.host,
                port=stuck.info.port,
                password=stuck.info.password,
                connect_timeout=5,
                autocommit=True,
            )
        ) as connection:
            ended = connection.execute(_RELEASE, [stuck.server_pid]).fetchone()
    except psycopg.errors.ConnectionTimeout:
        unanswered = stuck.unanswered + 1
        log.warning("database.silent", unanswered=unanswered)
    except psycopg.Error as error:
        log.warning("commit.wait_not_ended", error=describe_error(error))
    else:
        if ended:
            log.warning("commit.unconfirmed", seconds=patience())
    stuck.unanswered = unanswered
