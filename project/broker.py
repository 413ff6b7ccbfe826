"""The broker, whose queue carries job notifications to the workers: its address, whether it
responds, and the queue in the application's own database."""

from __future__ import annotations

import select
import time
from queue import Empty
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import connections
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES, pgmq
from kombu.utils.url import maybe_sanitize_url
from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql
from psycopg_pool import ConnectionPool

from project.env import BadSetting
from project.postgres import base

_DATABASE = (
    "pgmq://database"  # the host is not used: the transport below connects to Django's database
)
_INSTALL_LOCK = 0x5747_0001
_QUEUE: Final = "SELECT to_regclass('pgmq.q_commonhold') IS NOT NULL"
# Timeout of a connection that must not delay its caller.
QUICK_SECONDS = 1.0
# How often an idle worker checks whether it should stop.
_STOP_CHECK_SECONDS = 0.3
# Messages are announced by NOTIFY. A poll finds only what becomes visible with time, such as the
# messages of a killed worker, and messages whose notification was lost with a connection.
_POLL_SECONDS = 2.0
# While every slot of the prefetch is taken, a poll is due as soon as one becomes free.
_BUSY_POLL_SECONDS = 0.02

# One failed attempt is enough: the default retries forever, inside a request.
_ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


def url() -> str:
    """BROKER_URL, or the queues in the application's database."""
    configured: str | None = settings.BROKER_URL
    return _DATABASE if configured in (None, "", "pgmq://") else str(configured)


def uses_database() -> bool:
    return url() == _DATABASE


def transport_options() -> dict[str, Any]:
    """Options of kombu's transport.

    The visibility timeout is never extended, so it must exceed a job's duration times the
    prefetch; it is also how long a killed worker's jobs wait for their second start.
    """
    options: dict[str, Any] = {"visibility_timeout": settings.BROKER_VISIBILITY_SECONDS}
    if url().startswith(("redis://", "rediss://")):
        # Without timeouts, a worker waits for minutes for a host that has disappeared from the network, and
        # seems to hang. `socket_timeout` must exceed the one second for which kombu waits for a message.
        return options | {"socket_connect_timeout": 5, "socket_timeout": 20}
    if not uses_database():
        return options
    return options | {
        # A long poll would keep a snapshot open for seconds, which prevents vacuuming dead rows.
        "wait_time_seconds": 0,
        "use_notify": True,
        # A throttled notification would delay its job until the next poll.
        "notify_throttle_interval_ms": 0,
        "init_extension": False,
        "pool_size": 2,
    }


def prepare() -> None:
    """Install pgmq's tables and functions, and create the queue, if they are missing. Safe to call
    repeatedly and concurrently."""
    if not uses_database():
        return
    with _connect(**_params()) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        found = connection.execute("SELECT to_regtype('pgmq.message_record')").fetchone()
        if found is None or found[0] is None:
            connection.execute(get_embedded_install_sql().encode())
        if connection.execute(_QUEUE).fetchone() != (True,):
            # kombu creates the trigger in each worker and in beat. Two that start at the same time
            # would both find none, and one of them would end with an error.
            connection.execute("SELECT pgmq.create('commonhold')")
            connection.execute("SELECT pgmq.enable_notify_insert('commonhold', 0)")


def check() -> None:
    """Try once to reach the broker. Raises BadSetting with one sentence about the problem."""
    if uses_database():
        return
    if failure := _connect_once(timeout=5):
        where = maybe_sanitize_url(url())
        raise BadSetting(f"Cannot reach the broker at {where}: {failure}. Check BROKER_URL.")


# Health --------------------------------------------------------------------------------------


class BrokerStatus(NamedTuple):
    """Whether the broker responds. `problem` states in plain text why not; "" when it does."""

    where: str
    problem: str


_CACHED_SECONDS = 5.0
_last_status = (0.0, BrokerStatus("", ""))


def ping() -> BrokerStatus:
    """Check whether the broker responds, within a second. The result for a Redis or AMQP server is
    cached for five seconds, so that a dead server delays few pages."""
    global _last_status
    if uses_database():
        with connections["default"].cursor() as cursor:
            cursor.execute(_QUEUE)
            (exists,) = cursor.fetchone()
        return BrokerStatus(address(), "" if exists else "no worker has created the queue")
    until, answer = _last_status
    if time.monotonic() >= until or answer.where != address():
        failure = _connect_once(timeout=int(QUICK_SECONDS))
        problem = f"the broker does not respond: {failure}" if failure else ""
        answer = BrokerStatus(address(), problem)
        _last_status = (time.monotonic() + _CACHED_SECONDS, answer)
    return answer


def _connect_once(*, timeout: int) -> str:
    """Why an attempt to connect failed; "" if it did not."""
    try:
        with quick_connection() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=timeout)
    except Exception as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    """The text of the error, unless it may quote a part of a password that was not escaped."""
    if isinstance(error, ValueError) or "…" in address():
        return type(error).__name__
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def address() -> str:
    """The address of the broker for display, without name, password and options of BROKER_URL."""
    if uses_database():
        return "queues in PostgreSQL"
    return ", ".join(_strip_credentials(each) for each in url().split(";"))


def _strip_credentials(one: str) -> str:
    """Scheme, host and port. An unescaped `/`, `?` or `#` in a password may have split the URL
    there, so that the host may be a part of the password."""
    parts = urlsplit(one)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or "@" in one.rpartition(parts.netloc)[2]:
        return f"{parts.scheme}://…"
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def quick_connection() -> Connection:
    """A connection with short timeouts, separate from the worker's connection."""
    options: dict[str, Any] = {**transport_options(), **_ONCE}
    if uses_database():
        # Only workers need notifications.
        options |= {"pool_timeout": QUICK_SECONDS, "pool_size": 1, "use_notify": False}
    elif url().startswith("redis"):
        options |= {"socket_connect_timeout": QUICK_SECONDS, "socket_timeout": QUICK_SECONDS}
    elif url().startswith("amqp"):
        options |= {"read_timeout": QUICK_SECONDS, "write_timeout": QUICK_SECONDS}
    return Connection(url(), transport_options=options, connect_timeout=QUICK_SECONDS)


# Queues in our database ----------------------------------------------------------------------


def _params() -> dict[str, Any]:
    """Django's connection parameters without Django's adapters: pgmq expects psycopg's."""
    params: dict[str, Any] = connections["default"].get_connection_params()
    for ours in ("context", "cursor_factory", "prepare_threshold", "server_side_binding"):
        params.pop(ours, None)
    return params


def _connect(**params: Any) -> psycopg.Connection[Any]:
    embedded = connections["default"].settings_dict.get("EMBEDDED", False)
    return base.connect(params, to_embedded=embedded)


class _BrokerConnection(psycopg.Connection[tuple[Any, ...]]):
    @classmethod
    def connect(cls, conninfo: str = "", **params: Any) -> Any:
        return _connect(**params)


def _alive(connection: psycopg.Connection[Any]) -> None:
    if base.is_dead(connection):
        connection.close()  # otherwise the pool would reuse it
        raise psycopg.OperationalError("the server closed this connection")


class _NotifyWaiter(pgmq._NotifyWaiter):
    """kombu's listener on Django's connection parameters; kombu's own needs a DSN with the
    password."""

    _conn: Any

    def __init__(self) -> None:
        super().__init__("")

    def _ensure_conn(self) -> None:
        if self._conn is None:
            connection = _connect(**_params(), autocommit=True)
            try:
                for channel in self._channels:
                    self._listen(connection, channel)
            except BaseException:
                connection.close()
                raise
            self._conn = connection

    def wait(self, timeout: float | None) -> bool:
        with self._lock:
            if self._closed or not self._channels:
                return False
            self._ensure_conn()
            connection = self._conn
        # psycopg itself would wake up ten times per second.
        if not select.select([connection], [], [], timeout)[0]:
            return False
        return bool(super().wait(0))


class Transport(pgmq.Transport):
    """kombu's pgmq transport on Django's database, with all of its connection parameters, such as
    TLS."""

    cycle: Any
    channels: Any
    _next_poll = 0.0

    def drain_events(  # type: ignore[override]  # kombu's own classes disagree about it
        self, connection: Any, timeout: float | None = None
    ) -> None:
        """Deliver available messages, or else wait for a notification; socket.timeout if none
        arrives.

        kombu's own loop polls twice per call. To keep an idle server cheap, this one polls only
        after a notification or after `_POLL_SECONDS`.
        """
        if time.monotonic() >= self._next_poll:
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                free = all(channel.qos.can_consume() for channel in self.channels)
                self._next_poll = time.monotonic() + (_POLL_SECONDS if free else _BUSY_POLL_SECONDS)
            else:
                return  # there may be more: the next call polls immediately
        wait = min(timeout or _STOP_CHECK_SECONDS, self._next_poll - time.monotonic())
        if self._get_notify_waiter().wait(max(0.0, min(wait, _STOP_CHECK_SECONDS))):
            self._next_poll = 0.0
        raise TimeoutError

    def verify_connection(self, connection: Any) -> bool:
        """kombu calls it before each call. Always true: the pool checks its connections without a
        statement."""
        return True

    def _get_notify_waiter(self) -> pgmq._NotifyWaiter:
        if self._notify_waiter is None:
            self._notify_waiter = _NotifyWaiter()
        return self._notify_waiter

    def _create_pgmq_client(self) -> PGMQueue:
        connection: Any = self.client
        options: dict[str, Any] = connection.transport_options
        pool: ConnectionPool[Any] = ConnectionPool(
            kwargs=_params(),
            connection_class=_BrokerConnection,
            min_size=1,
            max_size=options["pool_size"],
            num_workers=1,
            timeout=options.get("pool_timeout", 10.0),
            check=_alive,
            open=True,
        )
        client = PGMQueue(
            pool=pool, conn_string=None, vt=options["visibility_timeout"], init_extension=False
        )
        client._own_pool = True  # its close() closes the pool
        return client


TRANSPORT_ALIASES["pgmq"] = "project.broker:Transport"
