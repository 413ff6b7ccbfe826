"""Real threads, each with its own connection, released at one barrier."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction

from state_admin.services.errors import Problem
from tests.loops import closing
from tests.patience import PATIENCE
from tests.project.running import wait_for


def race(works: Sequence[Callable[[], Any]], *, patience: float = PATIENCE) -> list[Any]:
    """The result of each function, or the Problem it raised, in order. Any other exception fails,
    and so does a function that takes longer than `patience` seconds."""
    gate = threading.Barrier(len(works))
    outcomes: list[Any] = [None] * len(works)
    crashes: list[BaseException] = []

    def run(index: int) -> None:
        try:
            connections["default"].ensure_connection()
            gate.wait(PATIENCE)
            outcomes[index] = works[index]()
        except Problem as problem:
            outcomes[index] = problem
        except BaseException as error:
            crashes.append(error)
            gate.abort()
        finally:
            connections.close_all()

    racers = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(patience)
    assert not any(racer.is_alive() for racer in racers), "a racer hangs"
    if crashes:
        raise crashes[0]
    return outcomes


def overlap(
    first: Callable[[], Any], second: Callable[[], Any], last: Callable[[], Any] = lambda: None
) -> Any:
    """Run `first` in a transaction that continues with `last`, and commits, only when the
    concurrent `second` waits for it or has finished. Returns the result of `second`; a deadlock is
    an error of either."""

    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            first()
            later = other.submit(closing(second))
            wait_for(lambda: later.done() or holds_up(), "the second waits for the first")
            last()
        return later.result(PATIENCE)


@contextmanager
def interleave(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, second: Callable[[], Any]
) -> Iterator[None]:
    """Within the block, the next call of `owner.name` runs only when the concurrent `second` has
    finished, or waits for the caller's transaction."""
    original = getattr(owner, name)
    later: list[Future[Any]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(owner, name, original)
        later.append(other.submit(closing(second)))
        wait_for(lambda: later[0].done() or holds_up(), "the second waits for the first")
        return original(*args, **kwargs)

    with ThreadPoolExecutor(1) as other:
        monkeypatch.setattr(owner, name, call)
        yield
        later[0].result(PATIENCE)


def holds_up() -> bool:
    """Whether another transaction waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        )
        return cursor.fetchone() != (0,)


def split(outcomes: Sequence[Any]) -> tuple[list[Any], list[Problem]]:
    """The results, and the refusals."""
    won = [outcome for outcome in outcomes if not isinstance(outcome, Problem)]
    return won, [outcome for outcome in outcomes if isinstance(outcome, Problem)]
