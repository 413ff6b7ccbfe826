"""Real threads, each with its own connection, let go at one barrier."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

from state_admin.services.errors import Problem


def race(works: Sequence[Callable[[], Any]], *, patience: float = 60) -> list[Any]:
    """What each work answered, or the Problem it raised, in their order. Anything else fails, and so
    does one that takes longer than `patience` in seconds."""
    gate = threading.Barrier(len(works))
    outcomes: list[Any] = [None] * len(works)
    crashes: list[BaseException] = []

    def run(index: int) -> None:
        try:
            connections["default"].ensure_connection()
            gate.wait(30)
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


def split(outcomes: Sequence[Any]) -> tuple[list[Any], list[Problem]]:
    """The answers, and the refusals."""
    won = [outcome for outcome in outcomes if not isinstance(outcome, Problem)]
    return won, [outcome for outcome in outcomes if isinstance(outcome, Problem)]
