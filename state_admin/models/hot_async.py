"""Runs the hand-written statements on a connection of the event loop, without a thread. They have the
form that models/hot.py describes.

It calls libpq itself (psycopg.pq), because psycopg's asynchronous cursors cost twice as much as these
statements: they wait several times for each, and register with the event loop each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

from project import tracing
from project.postgres import replication

from .hot import Call, Row, number

# Between two attempts to read although the event loop has not reported anything.
_WATCH_SECONDS = 0.2
_BINARY = pq.Format.BINARY
_Prepared = tuple[bytes, tuple[int, ...]]


class Session:
    """A connection in pipeline mode, used by one task at a time. It takes over `connection`, which must
    be in autocommit mode. After an error it is closed. `hear` gets the payload of each notification."""

    def __init__(
        self, connection: replication.AsyncConnection, hear: Callable[[bytes], None] | None = None
    ) -> None:
        self._hear = hear
        self.connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._names: dict[_Prepared, bytes] = {}
        # Looked up once, because `connections` would create an object for each task.
        self._translate_errors = connections["default"].wrap_database_errors
        self._begins = self._in_transaction = False
        self._results: list[pq.abc.PGresult] = []
        self._done: asyncio.Future[None] | None = None
        self._unconfirmed = replication.watch(connection)
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self.closed = False
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._receive)

    async def fetch_each(self, calls: Sequence[Call], *, commit: bool = False) -> list[list[Row]]:
        """Execute statements one after the other, in one round trip, and return the rows of each.
        Each must be one that returns rows, even if there are none.

        `commit`: these are the last statements of `transaction`, which is committed in the same round
        trip. Raises django.db errors; statements after a failed one are not executed.
        """
        with (
            tracing.statements([statement for statement, _ in calls]),
            self._translate_errors,
            self._closing_on_error(),
        ):
            return await self._fetch_each(calls, commit)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction. It begins with the first statements and is rolled back at the end, unless
        `fetch_each` has committed it."""
        self._begins = True
        try:
            yield
        finally:
            self._begins = False
            if self._in_transaction and not self.closed:
                self._in_transaction = False
                with self._translate_errors, self._closing_on_error():
                    self._send(b"ROLLBACK")
                    await self._exchange()

    def close(self) -> None:
        """Close the connection. The event loop knows its socket by number, which another connection may
        get next, so this happens as soon as an error is noticed."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._pgconn.finish()

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    async def _fetch_each(self, calls: Sequence[Call], commit: bool) -> list[list[Row]]:
        if self._begins:
            self._begins, self._in_transaction = False, True
            self._send(b"BEGIN")
        for call in calls:
            self._execute(*call)
        if commit:
            self._in_transaction = False
            self._send(b"COMMIT")
        return [
            self._rows(result)
            for result in await self._exchange()
            if result.status == pq.ExecStatus.TUPLES_OK
        ]

    def _send(self, command: bytes) -> None:
        self._pgconn.send_query_params(command, None)

    def _execute(self, statement: str, parameters: Any) -> None:
        numbered, values = number(statement, parameters)
        dumped = self._transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = self._transformer.types or (), self._transformer.formats
        prepared = numbered, types
        name = self._names.get(prepared)
        if name is None:
            name = self._names[prepared] = b"hot%d" % len(self._names)
            self._pgconn.send_prepare(name, numbered, types)
        self._pgconn.send_query_prepared(name, dumped, formats, _BINARY)

    def _rows(self, result: pq.abc.PGresult) -> list[Row]:
        self._transformer.set_pgresult(result, format=_BINARY)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    async def _exchange(self) -> list[pq.abc.PGresult]:
        """Send what was queued and return its results. Raises the first error among them."""
        self._done = self._loop.create_future()
        self._pgconn.pipeline_sync()
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._flush)
        self.connection.unanswered = 0
        self._end_wait_at = self._loop.time() + replication.patience()
        self._watch()
        try:
            await self._done
        finally:
            self._watcher.cancel()
        results, self._results = self._results, []
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        replication.raise_if_any(self._unconfirmed)
        return results

    def _watch(self) -> None:
        """uvloop does not call the reader if the socket has an error, such as a reset by a server that
        was killed. So the socket is read from time to time, too."""
        self._watcher = self._loop.call_later(_WATCH_SECONDS, self._read_anyway)

    def _read_anyway(self) -> None:
        if self._loop.time() > self._end_wait_at:
            if replication.hangs(self.connection):
                self._fail(replication.ServerHangs())
                return
            self._end_wait_at = self._loop.time() + replication.patience()
            self._loop.run_in_executor(None, replication.end_wait, self.connection)
        self._watch()
        self._receive()

    def _flush(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._fail(error)

    def _receive(self) -> None:
        try:
            self._pgconn.consume_input()
            self._hear_notifications()
            # The results of each statement end with None, those of all with PIPELINE_SYNC.
            ended = False
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    if ended:
                        break
                elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._finish()
                    # What arrived with the results: if nothing follows, this is not called again.
                    self._hear_notifications()
                    return
                else:
                    self._results.append(result)
                ended = result is None
        except psycopg.Error as error:
            self._fail(error)
            return
        if self._pgconn.status == pq.ConnStatus.BAD:
            self._fail(psycopg.OperationalError("the connection to the database is lost"))

    def _hear_notifications(self) -> None:
        while self._hear and (notification := self._pgconn.notifies()):
            self._hear(notification.extra)

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _fail(self, error: psycopg.Error) -> None:
        self.close()
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
