"""Django's PostgreSQL backend with three additions: an embedded server, detection of dead
connections, and refusal of servers that are not safe to use.

The first process that connects starts the embedded server (manage.py, pytest, a worker). A hook in
manage.py would not cover pytest, which reads the settings before any other code runs.
"""

from __future__ import annotations

import contextlib
import functools
import select
import time
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.base.creation import TEST_DATABASE_PREFIX
from django.db.backends.postgresql import base
from psycopg import IsolationLevel, sql

from project.env import data_dir
from project.postgres import replication, session
from project.postgres.cluster import Cluster
from project.postgres.server import PORT

# Longer than a restart, shorter than usual timeouts of clients.
_RESTART_PATIENCE = 15.0
_RESTARTING = ("starting up", "shutting down", "in recovery mode", "not yet accepting")


@functools.cache
def embedded() -> Cluster:
    """The cluster of the data folder; one object per process."""
    return Cluster(data_dir() / "postgres")


def connect(params: dict[str, Any], *, to_embedded: bool) -> replication.Connection:
    """A prepared connection. UnsafeServer or StandbyServer if the server must not be used."""
    connection = (
        _connect_embedded(params) if to_embedded else replication.Connection.connect(**params)
    )
    session.prepare(connection)
    return connection


def _connect_embedded(params: dict[str, Any]) -> replication.Connection:
    """A connection to the embedded server. Starts it if it is down, and waits if it is restarting.

    Creates the database `dbname` if it is missing, except test databases, which the test runner
    creates.
    """
    cluster = embedded()
    cluster.acquire()
    params = {**params, "host": str(cluster.socket_folder), "port": PORT}
    name = str(params["dbname"])
    deadline = time.monotonic() + _RESTART_PATIENCE
    while True:
        try:
            return replication.Connection.connect(**params)
        except psycopg.OperationalError as error:
            missing = f'database "{name}" does not exist' in str(error)
            restarting = any(word in str(error) for word in _RESTARTING) or not cluster.is_up()
            is_test = name.startswith(TEST_DATABASE_PREFIX)
            if (missing and is_test) or not (missing or restarting) or time.monotonic() > deadline:
                raise
            if missing:
                _create_database(name, params)
        cluster.acquire()
        time.sleep(0.05)


def _create_database(name: str, params: dict[str, Any]) -> None:
    where = {key: params[key] for key in ("host", "port", "user")}
    # The suppressed errors mean that another process created it first.
    with (
        contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation),
        psycopg.connect(**where, dbname="postgres", autocommit=True) as connection,
    ):
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


class DatabaseWrapper(base.DatabaseWrapper):
    """`EMBEDDED: True` in DATABASES means the cluster in the data folder.

    Raises OperationalError caused by session.UnsafeServer if the server must not be used.
    """

    _is_committed = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self.isolation_level = IsolationLevel.READ_COMMITTED  # as Django's method
        if self.settings_dict.get("REPLICA"):
            replica = replication.ReplicaConnection.connect(**conn_params)
            session.prepare_replica(replica)
            return replica
        return connect(conn_params, to_embedded=self.settings_dict.get("EMBEDDED", False))

    def commit(self) -> None:
        """Commit. UnconfirmedCommit means that the transaction is committed, so the functions of
        transaction.on_commit still run."""
        try:
            super().commit()
        except OperationalError as error:
            if isinstance(error.__cause__, replication.UnconfirmedCommit):
                self._is_committed = self.run_commit_hooks_on_set_autocommit_on = True
            raise

    def rollback(self) -> None:
        """Called by Django after a failed commit. After an unconfirmed one, keep the functions of
        on_commit."""
        if self._is_committed:
            self._is_committed = self.needs_rollback = False
        else:
            super().rollback()

    def close_if_unusable_or_obsolete(self) -> None:
        """Called by Django before and after every request and task: drop a connection that is dead,
        or to a server that is read-only.

        Django notices only after a query failed through its own cursor, but the hot paths use
        psycopg's. A server sends nothing on an idle connection except when it closes it, so one
        poll of the socket, which takes microseconds, keeps requests from failing after a restart.
        (A notice, which is rare, causes a reconnect.)
        """
        connection = self.connection
        if (
            connection is not None
            and not self.in_atomic_block
            and (connection.is_obsolete or is_dead(connection))
        ):
            self.close()
        super().close_if_unusable_or_obsolete()


def is_dead(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether an idle connection is closed, or has data to read, as when the server has closed
    it."""
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))
