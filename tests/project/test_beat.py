"""The end of beat."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
from celery.beat import Service

from project import beat, celery


class Ticks(beat.Scheduler):
    """Gets SIGTERM in its first tick, and loses the SystemExit, as a finalizer would."""

    def __init__(self, *args: object, **options: object) -> None:
        self.count = 0
        self.closed_in: list[int] = []
        super().__init__(*args, lazy=True, **{k: v for k, v in options.items() if k != "lazy"})

    def tick(self, *_: object, **__: object) -> float:
        self.count += 1
        if self.count == 1:
            with suppress(SystemExit):
                os.kill(os.getpid(), signal.SIGTERM)
            assert self.closed_in == []
        assert self.count < 5
        return 0.01

    def sync(self) -> None:
        """There are no times to store."""

    def close(self) -> None:
        self.closed_in.append(self.count)


@pytest.fixture
def handlers() -> Iterator[None]:
    """The handlers of the tests' process, afterwards."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_beat__sigterm_whose_exit_is_lost__ends_after_the_tick() -> None:
    service = Service(celery.app, scheduler_cls=Ticks, remote_control=False)
    beat.Beat(app=celery.app, quiet=True).install_sync_handler(service)
    service.start()
    assert service.scheduler.closed_in == [1]
