"""The database connections of the event loop on which groups of calls are handled
(project/lane.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import connection as django_connection

from project.postgres.aio import connect
from project.postgres.base import is_dead
from state_admin.models.hot_async import Session

# The statements read rows by their keys, so one plan serves all parameters. By itself, PostgreSQL
# expects less work for a few parameters in a large database, and plans each commit again, which
# takes longer than the commit.
_PLAN_ONCE = "SET plan_cache_mode = force_generic_plan"


class Sessions:
    """Sessions of one event loop. They stay open; there are as many as were used at the same time.
    `name` is shown in pg_stat_activity."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[Session] = []

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Session]:
        """A session, for one task. Raises django.db errors if the database cannot be reached."""
        session = await self._find()
        try:
            yield session
        finally:
            if not session.closed:
                self._idle.append(session)

    async def _find(self) -> Session:
        while self._idle:
            session = self._idle.pop()
            if not is_dead(session.connection):
                return session
            session.close()
        with django_connection.wrap_database_errors:
            connection = await connect(self._name)
            await connection.execute(_PLAN_ONCE)
            return Session(connection)
