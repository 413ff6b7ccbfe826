"""The order in which the threads of a web process take reads and writes."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from project.threads import RequestKind, Threads, request_kind_of
from tests.patience import PATIENCE
from tests.project.running import wait_for

EACH_AND_OTHER = [(RequestKind.READ, RequestKind.WRITE), (RequestKind.WRITE, RequestKind.READ)]


class Held:
    """A job that runs until it is released."""

    def __init__(self) -> None:
        self.running, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.running.set()
        assert self.released.wait(PATIENCE)


def finish(threads: Threads, kind: RequestKind) -> bool:
    """Whether a new job of this kind finishes."""
    done = threading.Event()
    threads.submit(done.set, kind)
    return done.wait(PATIENCE)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"])
def test_kind_of__method__is_a_read_if_it_is_safe(method: str) -> None:
    assert request_kind_of(method) is (
        RequestKind.READ if method in ("GET", "HEAD", "OPTIONS") else RequestKind.WRITE
    )


@pytest.mark.parametrize(("many", "few"), EACH_AND_OTHER)
def test_threads__many_jobs_of_one_kind_wait__the_other_kind_has_every_second_turn(
    many: RequestKind, few: RequestKind
) -> None:
    threads, first, order = Threads(1), Held(), list[str]()
    threads.submit(first, many)
    assert first.running.wait(PATIENCE)

    def submit(name: str, kind: RequestKind) -> None:
        threads.submit(lambda: order.append(name), kind)

    for number in range(10):
        submit(f"many {number}", many)
    for number in range(2):
        submit(f"few {number}", few)
    first.released.set()
    assert finish(threads, many)

    assert {*order[:5]} == {"few 0", "few 1", "many 0", "many 1", "many 2"}
    for name in ("few", "many"):
        kept = [each for each in order if each.startswith(name)]
        assert kept == sorted(kept)
    assert len(order) == 12


@pytest.mark.parametrize(("stuck", "other"), EACH_AND_OTHER)
def test_threads__jobs_of_one_kind_do_not_end__one_thread_serves_the_other(
    stuck: RequestKind, other: RequestKind
) -> None:
    threads, jobs = Threads(3), [Held() for _ in range(5)]
    for job in jobs:
        threads.submit(job, stuck)
    try:
        assert jobs[0].running.wait(PATIENCE)
        assert jobs[1].running.wait(PATIENCE)
        assert finish(threads, other)
        assert not jobs[2].running.is_set()
    finally:
        for job in jobs:
            job.released.set()
    for job in jobs:  # each thread is available again
        assert job.running.wait(PATIENCE)
    assert finish(threads, stuck)


def test_threads__thread_is_lent__its_job_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("project.threads._MOST_LENT", 1)
    threads = Threads(1)

    for _ in range(3):  # a thread that has ended can be lent again
        lent = Held()

        def lend(job: Held = lent) -> None:
            threads.lend()
            job()

        try:
            threads.submit(lend, RequestKind.WRITE)
            assert lent.running.wait(PATIENCE)
            assert finish(threads, RequestKind.WRITE)
            assert finish(threads, RequestKind.READ)
        finally:
            lent.released.set()
        wait_for(lambda: threads._lent == 0, "the thread ends")


def test_threads__job_ends_its_thread__its_kind_is_still_served() -> None:
    threads = Threads(3)

    async def end() -> None:
        with pytest.raises(SystemExit):
            await threads.run(sys.exit)

    for _ in range(4):
        asyncio.run(end())
    assert finish(threads, RequestKind.READ)
