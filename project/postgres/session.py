"""What every connection requires of its server: durable writes, no values in its log, and an era of
the feed's clock that began on this server.

The settings are read over the connection itself, so those of its role and database are included.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, Final

import psycopg

from project.env import read_environment
from project.postgres import replication

OLDEST: Final = 15

# Commands have no role. A move of a workspace has a transaction on one server while it works on the other.
_IDLE_OF_COMMANDS_MS: Final = 60_000

# Settings with which PostgreSQL logs neither statements nor parameters, nor messages that quote
# them: "log" leaves out ERROR and WARNING, whose texts quote the input, and "terse" leaves out
# DETAIL and CONTEXT. Reports about the server itself (LOG, FATAL, PANIC) are still logged.
PRIVATE_LOG: Final = {
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_transaction_sample_rate": "0",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "debug_print_parse": "off",
    "debug_print_rewritten": "off",
    "debug_print_plan": "off",
}
_OF_EXTENSIONS = {"auto_explain.log_min_duration": "-1"}
_REQUIRED = ", ".join(f"('{k}', '{v}')" for k, v in {**PRIVATE_LOG, **_OF_EXTENSIONS}.items())
_LEAKS: Final = f"""
SELECT name, current_setting(name, true) FROM (VALUES {_REQUIRED}) AS required(name, value)
WHERE current_setting(name, true) <> value
"""
# Without the privilege, which superusers have, the setting is not changed and find_log_leaks
# reports it.
_HIDE: Final = f"""
SELECT set_config(name, value, false) FROM (VALUES {_REQUIRED}) AS required(name, value)
WHERE current_setting(name, true) <> value AND has_parameter_privilege(name, 'SET')
"""

# Must precede the first write on a server that the database has moved to (models/feed_eras.py).
_ENSURE_ERA: Final = "SELECT ensure_feed_era()"

_DURABILITY: Final = """
SELECT name, setting, source FROM pg_settings
WHERE (name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off')
    OR (name = 'standard_conforming_strings' AND setting <> 'on')
    OR (name = 'client_min_messages' AND setting = 'error')
ORDER BY name
"""
_EFFECTS = {
    "fsync": "acknowledged writes can be lost in a crash",
    "full_page_writes": "a crash can damage pages",
    "synchronous_commit": "acknowledged writes can be lost in a crash",
    "standard_conforming_strings": "backslashes in strings are read as escapes",
    # project/postgres/replication.py reads the warning.
    "client_min_messages": "a commit that no standby has confirmed appears to be safe",
}
_REMEDIES = {
    "global": "ALTER ROLE ALL RESET {0}",
    "database": "ALTER DATABASE … RESET {0}",
    "user": "ALTER ROLE … RESET {0}",
    "database user": "ALTER ROLE … IN DATABASE … RESET {0}",
    "client": "remove it from the options of DATABASE_URL",
    "command line": "remove it from the command line of the server",
}


class UnsafeServer(psycopg.OperationalError):
    """The server could lose or misinterpret acknowledged writes. The message says what to
    change."""


class StandbyServer(psycopg.OperationalError):
    """The server is a standby. After a failover, a proxy or DNS may still point to one."""


def statement_timeout_ms() -> int:
    """The statement timeout of this process."""
    env = read_environment()
    own = env.web_statement_timeout_ms if env.commonhold_role == "web" else None
    return own or env.statement_timeout_ms


@functools.cache
def _set_up() -> bytes:
    """Return the statement that applies our settings and selects the backend's pid, which a pooler
    does not pass on, and whether the server is a standby.

    Poolers such as PgBouncer do not accept the settings as connection options. Settings from
    DATABASE_URL (source "client") take precedence.
    """
    env = read_environment()
    own = {
        # A request waits at most this long for a statement or a lock; the client then gets a 503.
        "statement_timeout": str(statement_timeout_ms()),
        "lock_timeout": str(env.lock_timeout_ms),
        "idle_in_transaction_session_timeout": str(
            env.idle_in_transaction_timeout_ms if env.commonhold_role else _IDLE_OF_COMMANDS_MS
        ),
        "TimeZone": "UTC",
        # Every role may set this one of PRIVATE_LOG; _HIDE sets the others.
        "log_parameter_max_length_on_error": "0",
    }
    rows = ", ".join(f"('{name}', '{value}')" for name, value in own.items())
    return f"""
        SELECT pg_backend_pid(), pg_is_in_recovery(), count(set_config(name, value, false))
        FROM (VALUES {rows}) AS own(name, value) JOIN pg_settings USING (name)
        WHERE source <> 'client'
    """.encode()


def prepare(connection: replication.Connection) -> None:
    """Prepare a new connection, outside any transaction; its autocommit mode is restored.

    UnsafeServer or StandbyServer if the server must not be used; the connection is then closed.
    """
    autocommit = connection.autocommit
    try:
        connection.autocommit = True
        check_server(connection)
        connection.server_pid = _read_setup(connection.execute(_set_up()).fetchone())
        connection.execute(_HIDE)
        with contextlib.suppress(psycopg.errors.UndefinedFunction):  # before the first migration
            connection.execute(_ENSURE_ERA)
        connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise


def prepare_replica(connection: replication.Connection) -> None:
    """Prepare a new connection to a read replica: it is read-only, even if the server becomes a
    primary. services/replicas.py checks before each use that the server is a standby of our primary.
    """
    try:
        connection.autocommit = True
        _check_kind(connection.info)
        connection.execute(_set_up())
        connection.execute(_HIDE)
        connection.execute("SET default_transaction_read_only = on")
        connection.autocommit = False
    except BaseException:
        connection.close()
        raise


async def prepare_async(connection: replication.AsyncConnection) -> None:
    """As `prepare`, for a connection in autocommit mode."""
    try:
        _check_kind(connection.info)
        settings = await (await connection.execute(_DURABILITY)).fetchall()
        _check_settings(connection.info, settings)
        setup = await (await connection.execute(_set_up())).fetchone()
        connection.server_pid = _read_setup(setup)
        await connection.execute(_HIDE)
        with contextlib.suppress(psycopg.errors.UndefinedFunction):
            await connection.execute(_ENSURE_ERA)
    except BaseException:
        await connection.close()
        raise


def check_server(connection: psycopg.Connection[Any]) -> None:
    """Raise UnsafeServer unless version, encoding and durability settings are as required."""
    _check_kind(connection.info)
    _check_settings(connection.info, connection.execute(_DURABILITY).fetchall())


def _check_kind(info: psycopg.ConnectionInfo) -> None:
    major = info.server_version // 10_000
    if major < OLDEST:
        raise UnsafeServer(
            f"The database server is PostgreSQL {major}; Commonhold requires {OLDEST} or newer. "
            "Check DATABASE_URL."
        )


def _read_setup(row: tuple[Any, ...] | None) -> int:
    """The pid in the row of `_set_up`. StandbyServer if the server is a standby."""
    pid, is_standby, _ = row or (0, False, 0)
    if is_standby:
        raise StandbyServer(
            "The database server is a standby, which accepts no writes. DATABASE_URL must name the "
            "primary; with several hosts, add target_session_attrs=read-write."
        )
    return int(pid)


def _check_settings(info: psycopg.ConnectionInfo, unsafe: Sequence[tuple[Any, ...]]) -> None:
    """`unsafe`: the rows of _DURABILITY."""
    faults = []
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        faults.append(
            f"the database is encoded in {encoding}, which cannot store every text: create it "
            "with ENCODING 'UTF8' TEMPLATE template0"
        )
    for name, setting, source in unsafe:
        remedy = _REMEDIES.get(source, "remove {0} from postgresql.conf and reload the server")
        faults.append(f"{name} is {setting}, so {_EFFECTS[name]}: {remedy.format(name)}")
    if faults:
        raise UnsafeServer(f"The database server is not safe to use: {'; '.join(faults)}.")


def find_log_leaks(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The settings of this connection under which the server may log values, by name."""
    return dict(connection.execute(_LEAKS).fetchall())
