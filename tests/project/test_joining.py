"""Concurrent calls form a group; no call waits for a timer, or behind a client that sends many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from project.joining import Joiner
from tests import loops


class Sessions:
    """Lets each group start when the test says so. A session is the number of its group."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Event] = []

    @asynccontextmanager
    async def take(self) -> AsyncIterator[int]:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        yield len(self.gates)

    async def open_all(self) -> None:
        for _ in range(20):
            for gate in self.gates:
                gate.set()
            await asyncio.sleep(0)


class Groups(list[list[str]]):
    async def work(self, calls: Sequence[str], session: int) -> list[str | None]:
        self.append(list(calls))
        if "broken" in calls:
            raise ValueError("broken")
        return [None if call == "odd" else call.upper() for call in calls]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_joiner__call_while_a_group_may_start__goes_at_once_and_alone() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take)
        first = asyncio.ensure_future(joiner.ask("a", 1))
        await settle()
        assert len(sessions.gates) == 1
        await sessions.open_all()
        assert await first == "A"
        assert groups == [["a"]]

    loops.run(run())


def test_joiner__calls_of_one_turn_of_the_loop__are_one_group() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take)
        asked = [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("a", "b")]
        await settle()
        await sessions.open_all()
        await asyncio.gather(*asked)
        assert groups == [["a", "b"]]

    loops.run(run())


def test_joiner__calls_while_all_groups_run__go_together_in_their_order() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask("a", 1))]
        await settle()
        asked += [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("b", "odd", "c")]
        await settle()
        assert len(sessions.gates) == 1
        await sessions.open_all()
        assert await asyncio.gather(*asked) == ["A", "B", None, "C"]
        assert groups == [["a"], ["b", "odd", "c"]]

    loops.run(run())


def test_joiner__group_takes_long__another_starts_beside_it_but_no_third() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, slow=0.0)
        asked = [asyncio.ensure_future(joiner.ask("a", 1))]
        while len(sessions.gates) < 1:
            await asyncio.sleep(0.001)
        asked += [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("b", "c")]
        while len(sessions.gates) < 2:
            await asyncio.sleep(0.001)
        asked.append(asyncio.ensure_future(joiner.ask("d", 1)))
        await asyncio.sleep(0.01)
        assert len(sessions.gates) == 2
        sessions.gates[1].set()
        while len(sessions.gates) < 3:
            await asyncio.sleep(0.001)
        assert groups  # of those that came later
        assert ["a"] not in groups
        await sessions.open_all()
        assert await asyncio.gather(*asked) == ["A", "B", "C", "D"]

    loops.run(run())


def test_joiner__one_owner_sends_much__others_are_in_the_next_group() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, most_groups=1, most=4)
        many = [asyncio.ensure_future(joiner.ask("x0", 1))]
        await settle()
        many += [asyncio.ensure_future(joiner.ask(f"x{n}", 1)) for n in range(1, 9)]
        other = asyncio.ensure_future(joiner.ask("y0", 2))
        await settle()
        await sessions.open_all()
        await asyncio.gather(*many, other)
        assert groups == [["x0"], ["x1", "y0", "x2", "x3"], ["x4", "x5", "x6", "x7"], ["x8"]]

    loops.run(run())


def test_joiner__heavy_calls__make_smaller_groups_but_each_is_handled() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, weigh=len, most=4, most_groups=1)
        names = ["x", "bb", "cc", "dd", "eeeeee", "f"]
        asked = [asyncio.ensure_future(joiner.ask(name, 1)) for name in names]
        await settle()
        await sessions.open_all()
        await asyncio.gather(*asked)
        assert groups == [["x", "bb"], ["cc", "dd"], ["eeeeee"], ["f"]]

    loops.run(run())


def test_joiner__group_fails__its_calls_alone_raise() -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask("a", 1))]
        await settle()
        asked += [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("broken", "b")]
        await settle()
        await sessions.open_all()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert results[0] == "A"
        assert [type(each) for each in results[1:]] == [ValueError, ValueError]
        later = asyncio.ensure_future(joiner.ask("c", 1))
        await settle()
        await sessions.open_all()
        assert await later == "C"

    loops.run(run())


@pytest.mark.parametrize("place", [0, 1], ids=["running", "waiting"])
def test_joiner__caller_gone__does_not_disturb_the_others(place: int) -> None:
    async def run() -> None:
        sessions, groups = Sessions(), Groups()
        joiner = Joiner(groups.work, sessions.take, most_groups=1)
        asked = [asyncio.ensure_future(joiner.ask("a", 1))]
        await settle()
        asked += [asyncio.ensure_future(joiner.ask(each, 1)) for each in ("b", "c")]
        await settle()
        asked[place].cancel()
        await sessions.open_all()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(results.pop(place), asyncio.CancelledError)
        assert results == (["B", "C"] if place == 0 else ["A", "C"])

    loops.run(run())
