"""The check that a process runs when it starts, before it serves requests or jobs."""

from __future__ import annotations

import psycopg
import structlog
from django.db import DEFAULT_DB_ALIAS, connections

from project.env import BadSetting
from project.failures import describe_error
from project.postgres.session import UnsafeServer, find_log_leaks

log = structlog.get_logger(__name__)


def refuse_unsafe_server() -> None:
    """Raise BadSetting if DATABASE_URL names a server that is not safe to use.

    An unreachable server is not refused: it may be restarting, and every later connection is
    checked too (session.prepare). A server that logs values is not refused either, but reported.
    The embedded server needs no check: its settings are on its command line.
    """
    default = connections[DEFAULT_DB_ALIAS]
    if default.settings_dict.get("EMBEDDED"):
        return
    try:
        # Closed immediately, because the web server forks after this.
        with default.get_new_connection(default.get_connection_params()) as connection:
            connection.autocommit = True
            leaks = find_log_leaks(connection)
    except UnsafeServer as error:
        raise BadSetting(str(error)) from None
    except psycopg.OperationalError as error:
        log.warning("database.unreachable", error=describe_error(error))
        return
    if leaks:
        log.warning("database.logs_values", settings=sorted(leaks))
