"""Runs the hand-written statements on a connection of the event loop, without a thread. They have the
form that models/hot.py describes.

It calls libpq itself (psycopg.pq), because psycopg's asynchronous cursors cost twice as much as these
statements: they wait several times for each, and register with the event loop each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

from .hot import Call, Row, number

_BINARY = pq.Format.BINARY
_Prepared = tuple[bytes, tuple[int, ...]]


class Session:
    """A connection in pipeline mode, used by one task at a time. It takes over `connection`, which must
    be in autocommit mode. After an error it is closed."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._names: dict[_Prepared, bytes] = {}
        # Asked for once, because each task would create an object for `connections`.
        self._translate_errors = connections["default"].wrap_database_errors
        self._begins = self._in_transaction = False
        self._results: list[pq.abc.PGresult] = []
        self._done: asyncio.Future[None] | None = None
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
        with self._translate_errors:
            try:
                return await self._fetch_each(calls, commit)
            except BaseException:
                await self.close()
                raise

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
                self._send(b"ROLLBACK")
                await self._exchange()

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._socket)
            await self._connection.close()

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
        await self._done
        results, self._results = self._results, []
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results

    def _flush(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._fail(error)

    def _receive(self) -> None:
        try:
            self._pgconn.consume_input()
            # The results of each statement end with None, those of all with PIPELINE_SYNC.
            ended = False
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    if ended:
                        return
                elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._finish()
                    return
                else:
                    self._results.append(result)
                ended = result is None
        except psycopg.Error as error:
            self._fail(error)

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _fail(self, error: psycopg.Error) -> None:
        """The server has closed the connection."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self.closed = True
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
