"""Reads on streaming standbys of the primary (DATABASE_REPLICA_URLS): which requests may be answered
by one, and when (docs/adr/0024-reads-on-replicas.md).

Authentication, rate limits, writes and everything that is not declared a replica read stay on the
primary. A replica answers a client only if it has replayed the client's newest write.
"""

from __future__ import annotations

import hashlib
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import psycopg
import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections

from project.failures import describe_error
from project.postgres import replication
from project.postgres.session import statement_timeout_ms
from state_admin.models import write_positions
from state_admin.models.write_positions import EVERYONE, Primary

from .errors import Problem, Unavailable

log = structlog.get_logger(__name__)

T = TypeVar("T")

ALIASES: Final = tuple(alias for alias in settings.DATABASES if alias != DEFAULT_DB_ALIAS)
# Seconds for which a replica is not tried again after an error.
_PAUSE: Final = 5.0
# Seconds between two log lines about a replica that is still not used.
_LOG_AGAIN: Final = 60.0
# When a replica hangs: longer than the timeout of a statement, which it would apply otherwise.
_READ_SECONDS: Final = statement_timeout_ms() / 1000 + 2
# What a primary would not answer differently: the statement took too long.
_ON_ANY_SERVER: Final = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)


class ReplicaState(NamedTuple):
    """`reason`: why it is not used; "" if it is. The lag is None if it is unknown."""

    name: str
    reason: str
    lag_bytes: int | None = None
    lag_seconds: float | None = None


@dataclass
class _Trouble:
    """Why a replica is not used, or was not, how many reads went to the primary for it since it was used
    last, and whether that was logged. `logged`: the reason that was logged last."""

    reason: str
    reads: int = 0
    until: float = 0.0
    is_logged: bool = False
    logged: str = ""
    logged_at: float | None = None


_troubles: dict[str, _Trouble] = {}
_mutex = threading.Lock()


def client_of(authorization: str, api_key: str = "", session_key: str = "") -> str:
    """The key of a client's write position: a hash of its credential. "" without one."""
    credential = authorization.partition(" ")[2].strip() or api_key or session_key
    return hashlib.sha256(credential.encode()).hexdigest()[:32] if credential else ""


def record_write(clients: Sequence[str]) -> None:
    """Record that these clients have written, before their response is sent: no replica answers them
    from an earlier state. Tries it again on a new connection. Raises django.db errors; the response
    must then be `unrecorded()`."""
    try:
        write_positions.record(clients)
    except Error:
        connections[DEFAULT_DB_ALIAS].close()
        write_positions.record(clients)


def unrecorded() -> Problem:
    """The response to a write whose position could not be recorded."""
    return Unavailable(
        "the request was processed, but read replicas may answer this client from an older state",
        hint=(
            "Repeat it with the same Idempotency-Key, or look whether the change is there with"
            " Cache-Control: no-cache."
        ),
    )


def expire_older_states() -> None:
    """Called at the end of a transaction that removes data permanently: from its commit on, no
    replica answers anyone from an earlier state."""
    if ALIASES:
        write_positions.expire()


def read(
    client: str, work: Callable[[], T], refusals: tuple[type[Exception], ...] = (Problem,)
) -> tuple[T, str | None]:
    """The result of `work`, which only reads, and the replica on which it ran; None: on the primary.
    All its statements run on one server.

    A failure and a refusal are repeated on the primary: their reason may be the replica, or its older
    state, which may lack a row or a column. Failures are logged, `refusals` are not.
    """
    alias = _choose(client)
    if alias is None:
        return work(), None
    try:
        with _using(alias):
            return work(), alias
    except (OperationalError, InterfaceError) as error:
        if isinstance(error.__cause__, _ON_ANY_SERVER):
            raise
        connections[alias].close()
        # A conflict with the recovery is not a fault of the replica.
        lasts = not isinstance(error.__cause__, psycopg.errors.SerializationFailure)
        _note(alias, describe_error(error), pause=_PAUSE if lasts else 0.0)
    except refusals:
        pass
    except Exception as error:
        log.warning("replica.read_failed", replica=alias, error=describe_error(error))
    return work(), None


def stream(alias: str, parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts of a response that `read` began, from the same server."""
    while True:
        with _using(alias):
            part = next(parts, None)
        if part is None:
            return
        yield part


@contextmanager
def on_replica() -> Iterator[None]:
    """Let all statements of this thread run on a replica that may be used, for a long read that needs
    no client's newest write. Unavailable if there is none."""
    states = describe()
    usable = [state.name for state in states if not state.reason]
    if not usable:
        reasons = "; ".join(f"{state.name}: {state.reason}" for state in states)
        raise Unavailable(
            f"no read replica can be used: {reasons or 'DATABASE_REPLICA_URLS is empty'}",
            hint="Repair the replica, or read from the primary.",
        )
    connections[usable[0]].connection.seconds = math.inf  # a statement may take hours
    try:
        with _using(usable[0]):
            yield
    finally:
        connections[usable[0]].close()


@contextmanager
def _using(alias: str) -> Iterator[None]:
    """Let every statement of this thread run on the replica: those of the ORM and of models/hot.py
    find their connection under the default alias. A router would miss the latter."""
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[alias]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary


def _choose(client: str) -> str | None:
    """A replica that may answer the client, or None."""
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        return None
    tried = []
    for alias in ALIASES:
        if reason := _paused(alias):
            _note(alias, reason)
        else:
            tried.append(alias)
    if not tried:
        return None
    primary = write_positions.read_primary(client)
    if primary.required is None:
        try:
            write_positions.record([EVERYONE])
        except Error as error:  # the next reader tries it again
            log.warning("write_position.not_recorded", error=describe_error(error))
        return None
    for alias in random.sample(tried, len(tried)):
        state, position = _inspect(alias, primary)
        if state.reason:
            _note(alias, state.reason)
            continue
        _note_use(alias)
        if position >= primary.required:
            return alias
    return None


def _inspect(alias: str, primary: Primary) -> tuple[ReplicaState, int]:
    """The state of a replica, and its position in the log."""
    try:
        connections[alias].ensure_connection()
        connections[alias].connection.seconds = replication.CHECK_SECONDS
        with _using(alias):
            replica = write_positions.read_replica()
        connections[alias].connection.seconds = _READ_SECONDS
    except Error as error:
        connections[alias].close()
        _pause(alias, describe_error(error))
        return ReplicaState(alias, describe_error(error)), 0
    if not replica.is_standby or replica.position is None:
        return ReplicaState(alias, "it is not a standby"), 0
    if primary.era is None or replica.system != primary.era[1]:
        return ReplicaState(alias, "it is a standby of another server"), 0
    if replica.era is not None and replica.era[-1] != primary.era[-1]:
        return ReplicaState(alias, "it is another database of this server"), 0
    behind = max(0, primary.position - replica.position)
    seconds = 0.0
    if behind:
        if replica.replayed_at is None:
            return ReplicaState(alias, "its lag is unknown", behind), 0
        seconds = max(0.0, (primary.at - replica.replayed_at).total_seconds())
    reason = ""
    if replica.era != primary.era:
        reason = "it has not followed the primary since the last failover or restore"
    elif seconds > settings.DATABASE_REPLICA_MAX_LAG_SECONDS:
        reason = "it is too far behind"
    return ReplicaState(alias, reason, behind, seconds), replica.position


def describe() -> list[ReplicaState]:
    """The state of all replicas, for doctor, metrics and the system page."""
    if not ALIASES:
        return []
    primary = write_positions.read_primary(EVERYONE)
    return [
        ReplicaState(alias, reason) if (reason := _paused(alias)) else _inspect(alias, primary)[0]
        for alias in ALIASES
    ]


def _paused(alias: str) -> str:
    """Why a replica is not tried now; "" if it may be."""
    trouble = _troubles.get(alias)
    return trouble.reason if trouble is not None and time.monotonic() < trouble.until else ""


def _pause(alias: str, reason: str) -> None:
    with _mutex:
        trouble = _troubles.setdefault(alias, _Trouble(reason))
        trouble.reason = reason
        trouble.until = time.monotonic() + _PAUSE


def _note(alias: str, reason: str, pause: float = 0.0) -> None:
    """Count a read that goes to the primary because of the replica, and log it: the first one, and
    then the count from time to time."""
    now = time.monotonic()
    with _mutex:
        trouble = _troubles.setdefault(alias, _Trouble(reason))
        trouble.reads += 1
        trouble.until = max(trouble.until, now + pause)
        due = (
            trouble.logged_at is None
            or trouble.logged != reason
            or now > trouble.logged_at + _LOG_AGAIN
        )
        trouble.reason = reason
        if due:
            trouble.is_logged, trouble.logged, trouble.logged_at = True, reason, now
        reads = trouble.reads
    if due:
        log.warning("replica.not_used", replica=alias, reason=reason, reads=reads)


def _note_use(alias: str) -> None:
    """Log that a replica is used again, if it was logged that it is not. The time of that stays, because
    a replica may be late many times in a minute, for some milliseconds each."""
    trouble = _troubles.get(alias)
    if trouble is None or not trouble.reads:
        return
    with _mutex:
        reads, was_logged = trouble.reads, trouble.is_logged
        trouble.reads, trouble.is_logged, trouble.until = 0, False, 0.0
    if reads and was_logged:
        log.info("replica.used_again", replica=alias, reads=reads)
