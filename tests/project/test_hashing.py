"""The queue in which passwords are hashed: one at a time, bounded, in order of rank."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password

from project import hashing
from project import settings as deployment
from project.hashing import MOST_WAITING, Busy, HashingQueue, QueuedPasswordHasher
from tests.project.running import wait_for


class Jobs:
    """Callers of a queue whose thread is blocked by the first job until `release`."""

    def __init__(self, most_waiting: int) -> None:
        self.queue = HashingQueue(most_waiting)
        self.pool = ThreadPoolExecutor(max_workers=20)
        self.done: list[str] = []
        self.running = 0
        self.most_running = 0
        self._release = threading.Event()
        started = threading.Event()

        def hold() -> str:
            started.set()
            self._release.wait()
            return "held"

        self.holder = self.pool.submit(self.queue.run, hold, 0)
        started.wait()

    def release(self) -> None:
        self._release.set()

    def work(self, name: str) -> Callable[[], str]:
        def run() -> str:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.done.append(name)
            self.running -= 1
            return name

        return run

    def submit(self, name: str, rank: int) -> Future[str]:
        """Submit a job, and wait until it is in the queue or refused."""
        before = self.queue._count
        asked = self.pool.submit(self.queue.run, self.work(name), rank)
        wait_for(lambda: self.queue._count > before, "the job is in the queue")
        return asked


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(3)
    yield made
    made.release()
    made.pool.shutdown()


def test_queue__ranks_differ__lower_first_then_by_arrival(jobs: Jobs) -> None:
    asked = [jobs.submit(*job) for job in (("worse", 9), ("bad", 5), ("good", 0))]
    assert jobs.done == []
    jobs.release()
    wait(asked)
    assert jobs.done == ["good", "bad", "worse"]
    assert jobs.holder.result() == "held"
    assert jobs.most_running == 1


def test_queue__full__newest_of_the_same_rank_is_refused(jobs: Jobs) -> None:
    asked = [jobs.submit(str(number), 1) for number in range(3)]
    with pytest.raises(Busy):
        jobs.submit("late", 1).result()
    jobs.release()
    assert [each.result() for each in asked] == ["0", "1", "2"]
    assert jobs.done == ["0", "1", "2"]


def test_queue__full__lower_rank_displaces_the_last(jobs: Jobs) -> None:
    asked = [jobs.submit(str(rank), rank) for rank in (2, 7, 5)]
    first = jobs.submit("0", 0)
    with pytest.raises(Busy):
        asked[1].result()
    jobs.release()
    assert first.result() == "0"
    assert asked[0].result() == "2"
    assert asked[2].result() == "5"
    assert jobs.done == ["0", "2", "5"]


def test_queue__job_fails__its_caller_gets_the_error_and_the_next_one_is_done(jobs: Jobs) -> None:
    def fail() -> str:
        raise ValueError("broken")

    failed = jobs.pool.submit(jobs.queue.run, fail, 0)
    after = jobs.submit("after", 1)
    jobs.release()
    with pytest.raises(ValueError, match="broken"):
        failed.result()
    assert after.result() == "after"


def test_hasher__every_hash_and_check__uses_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks: list[int] = []

    def run(work: Callable[[], str], rank: int) -> str:
        ranks.append(rank)
        return work()

    monkeypatch.setattr(hashing.QUEUE, "run", run)
    encoded = make_password("secret")
    with hashing.ranked(4):
        assert check_password("secret", encoded)
    assert not check_password("other", encoded)
    assert ranks == [0, 4, 0]
    assert MOST_WAITING > 0


def test_hasher__configured__is_queued_with_djangos_cost() -> None:
    assert deployment.PASSWORD_HASHERS == ["project.hashing.QueuedPasswordHasher"]
    assert QueuedPasswordHasher.iterations == PBKDF2PasswordHasher.iterations >= 1_000_000


def test_hasher__thread__has_low_priority() -> None:
    import os
    import sys

    if sys.platform != "linux":
        pytest.skip("threads have a priority of their own on Linux only")
    niceness = HashingQueue(1).run(
        lambda: str(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())), 0
    )
    assert int(niceness) > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
