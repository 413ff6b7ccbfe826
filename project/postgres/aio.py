"""An async connection to Django's default database, with the same settings."""

from __future__ import annotations

import asyncio

from django.db import connections

from project.postgres.base import embedded
from project.postgres.replication import AsyncConnection
from project.postgres.server import PORT
from project.postgres.session import prepare_async


async def connect(name: str) -> AsyncConnection:
    """Open a connection in autocommit mode. `name` identifies it in pg_stat_activity.

    Starts the embedded server if it is down. psycopg.OperationalError: try again.
    """
    default = connections["default"]
    params = dict(default.get_connection_params())
    for key in ("context", "cursor_factory"):  # options of Django's connections only
        params.pop(key, None)
    params["application_name"] = name
    if default.settings_dict.get("EMBEDDED"):
        cluster = embedded()
        await asyncio.to_thread(cluster.acquire)
        params |= {"host": str(cluster.socket_folder), "port": PORT}
    connection = await AsyncConnection.connect(**params, autocommit=True)
    await prepare_async(connection)
    return connection
