"""Sessions for code that runs on the event loop of a web worker (state_admin/models/hot_async.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from django.db import transaction

from project.postgres.aio import connect
from state_admin.models import hot
from state_admin.models.hot_async import Session
from tests import loops

T = TypeVar("T")
Work = Callable[[Session], Coroutine[Any, Any, T]]


class DjangoSession(Session):
    """Uses Django's connection, which has the test's transaction. `trips`: for each round trip, whether
    it committed."""

    def __init__(self) -> None:
        self.trips: list[bool] = []
        self.closed = False

    async def fetch_each(
        self, calls: Sequence[hot.Call], *, commit: bool = False
    ) -> list[list[hot.Row]]:
        self.trips.append(commit)
        return hot.fetch_each(calls)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with transaction.atomic():
            yield
            if not self.trips or not self.trips[-1]:
                transaction.set_rollback(True)


def run_in_test(work: Work[T]) -> T:
    """The result of `work` on Django's connection, in this thread and without an event loop."""
    steps = work(DjangoSession())
    try:
        steps.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("the work waits for something else than the session")


def run_on_loop(work: Work[T]) -> T:
    """The result of `work` on a connection of an event loop."""

    async def run() -> T:
        session = Session(await connect("test"))
        try:
            return await work(session)
        finally:
            session.close()

    result: T = loops.run(run())
    return result
