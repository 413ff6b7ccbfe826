"""Calls of one moment go together; nobody waits for a timer, or behind somebody who sends much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from project.joining import Joiner
from tests import loops


class Threads:
    """Runs each group when the test lets it."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Event] = []

    async def run(self, work: Callable[[], Any]) -> Any:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return work()

    async def open_all(self) -> None:
        for _ in range(20):
            for gate in self.gates:
                gate.set()
            await asyncio.sleep(0)


class Groups(list[list[str]]):
    def work(self, calls: Sequence[str]) -> list[str | None]:
        self.append(list(calls))
        if "broken" in calls:
            raise ValueError("broken")
        return [None if call == "odd" else call.upper() for call in calls]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_joiner__call_while_a_group_may_start__goes_at_once_and_alone() -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run)
        first = asyncio.ensure_future(joiner.ask("a", 1))
        await settle()
        assert len(threads.gates) == 1
        await threads.open_all()
        assert await first == "A"
        assert groups == [["a"]]

    loops.run(run())


def test_joiner__calls_while_all_groups_run__go_together_in_their_order() -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("a", "b", "odd", "c")]
        await settle()
        assert len(threads.gates) == 1
        await threads.open_all()
        assert await asyncio.gather(*asked) == ["A", "B", None, "C"]
        assert groups == [["a"], ["b", "odd", "c"]]

    loops.run(run())


def test_joiner__group_takes_long__another_starts_beside_it_but_no_third() -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run, slow=0.0)
        asked = [asyncio.ensure_future(joiner.ask("a", 1))]
        while len(threads.gates) < 1:
            await asyncio.sleep(0.001)
        asked += [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("b", "c")]
        while len(threads.gates) < 2:
            await asyncio.sleep(0.001)
        asked.append(asyncio.ensure_future(joiner.ask("d", 1)))
        await asyncio.sleep(0.01)
        assert len(threads.gates) == 2
        threads.gates[1].set()
        while len(threads.gates) < 3:
            await asyncio.sleep(0.001)
        assert groups  # of those that came later
        assert ["a"] not in groups
        await threads.open_all()
        assert await asyncio.gather(*asked) == ["A", "B", "C", "D"]

    loops.run(run())


def test_joiner__one_owner_sends_much__others_are_in_the_next_group() -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run, most_groups=1, most_calls=4)
        many = [asyncio.ensure_future(joiner.ask(f"x{n}", 1)) for n in range(9)]
        other = asyncio.ensure_future(joiner.ask("y0", 2))
        await settle()
        await threads.open_all()
        await asyncio.gather(*many, other)
        assert groups == [["x0"], ["x1", "y0", "x2", "x3"], ["x4", "x5", "x6", "x7"], ["x8"]]

    loops.run(run())


def test_joiner__group_fails__its_calls_alone_raise() -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("a", "broken", "b")]
        await settle()
        await threads.open_all()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert results[0] == "A"
        assert [type(each) for each in results[1:]] == [ValueError, ValueError]
        later = asyncio.ensure_future(joiner.ask("c", 1))
        await settle()
        await threads.open_all()
        assert await later == "C"

    loops.run(run())


@pytest.mark.parametrize("place", [0, 1], ids=["running", "waiting"])
def test_joiner__caller_gone__does_not_disturb_the_others(place: int) -> None:
    async def run() -> None:
        threads, groups = Threads(), Groups()
        joiner = Joiner(groups.work, threads.run, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("a", "b", "c")]
        await settle()
        asked[place].cancel()
        await threads.open_all()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(results.pop(place), asyncio.CancelledError)
        assert results == (["B", "C"] if place == 0 else ["A", "C"])

    loops.run(run())
