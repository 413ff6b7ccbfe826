"""The writes of a step and the next checkpoint, which are concurrent, share one request."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from commonhold import AsyncCommonhold, Invalid
from commonhold.langgraph import CommonholdSaver, joining
from commonhold.langgraph.joining import AsyncJoiner, Joiner, StoreEntries
from commonhold.langgraph.operations import store_entries
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from savers import config, counted, put


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOMENT", 30)


def wait_for(queue: Any, count: int) -> None:
    while len(queue._waiting) < count:
        time.sleep(0.001)


@pytest.mark.usefixtures("patient")
def test_writes_and_the_next_checkpoint__in_threads__are_one_request(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = put(saver, config(thread), {"n": 1})
    with ThreadPoolExecutor() as pool, counted(monkeypatch) as calls:
        writes = [
            pool.submit(saver.put_writes, at, [("n", n), ("log", [n])], f"task-{n}")
            for n in range(3)
        ]
        wait_for(saver._wire._joiner, 3)
        after = put(saver, at, {"n": 2})
        for each in writes:
            each.result()
    assert [(call.method, len(call.body["operations"])) for call in calls] == [("POST", 4)]
    assert [t.config for t in saver.list(config(thread))] == [after, at]
    found = saver.get_tuple(at)
    assert found is not None
    assert len(found.pending_writes or []) == 6


@pytest.mark.usefixtures("patient")
def test_joined_calls__one_is_refused__the_others_are_stored(
    saver: CommonholdSaver, thread: str
) -> None:
    at = put(saver, config(thread), {"n": 1})
    with ThreadPoolExecutor() as pool:
        good = pool.submit(saver.put_writes, at, [("n", 1)], "task")
        bad = pool.submit(saver.put_writes, at, [("n", 1)], "nul\0")
        wait_for(saver._wire._joiner, 2)
        after = put(saver, at, {"n": 2})
        good.result()
        with pytest.raises(Invalid):
            bad.result()
    assert saver.get_tuple(after) is not None
    found = saver.get_tuple(at)
    assert found is not None
    assert found.pending_writes == [("task", "n", 1)]


@pytest.mark.usefixtures("patient")
def test_writes_and_the_next_checkpoint__async__are_one_request(
    namespace: str, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    send = AsyncCommonhold.send

    async def count(self: AsyncCommonhold, call: Any) -> Any:
        calls.append(call)
        return await send(self, call)

    async def run() -> None:
        async with CommonholdSaver.from_env(namespace=namespace) as saver:
            checkpoint = {**empty_checkpoint(), "id": str(uuid6())}
            at = await saver.aput(config(thread), checkpoint, {"step": 0}, {})
            monkeypatch.setattr(AsyncCommonhold, "send", count)
            writes = asyncio.create_task(saver.aput_writes(at, [("n", 1)], "task"))
            _, joiner = saver._wire._of_running_loop()
            while not joiner._waiting:
                await asyncio.sleep(0)
            checkpoint = {**empty_checkpoint(), "id": str(uuid6())}
            await asyncio.gather(writes, saver.aput(at, checkpoint, {"step": 1}, {}))
            assert [(c.method, len(c.body["operations"])) for c in calls] == [("POST", 2)]
            found = await saver.aget_tuple(at)
            assert found is not None
            assert found.pending_writes == [("task", "n", 1)]

    asyncio.run(run())


def puts(name: str, *, waits: bool = True) -> StoreEntries:
    operation = {"op": "put", "namespace": "n", "key": name, "value": {}}
    return StoreEntries([operation], store_entries, waits)


def test_cancelled_call__that_waits__does_not_block_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joining, "MOMENT", 0.2)
    joiner = AsyncJoiner()
    calls: list[Any] = []

    async def send(call: Any) -> None:
        calls.append(call)

    async def run() -> None:
        first, second = (asyncio.create_task(joiner.store(puts(n), send)) for n in "ab")
        await asyncio.sleep(0)
        first.cancel()
        async with asyncio.timeout(5):
            await second
        assert first.cancelled()

    asyncio.run(run())
    assert [call.path.rpartition("/")[2] for call in calls] == ["b"]
    assert joiner._waiting == []


@pytest.mark.usefixtures("patient")
def test_cancelled_call__that_sends_for_others__lets_them_send_on_their_own() -> None:
    joiner = AsyncJoiner()
    calls: list[Any] = []

    async def send(call: Any) -> None:
        calls.append(call)
        if call.method == "POST":
            await asyncio.sleep(60)

    async def run() -> None:
        follower = asyncio.create_task(joiner.store(puts("a"), send))
        await asyncio.sleep(0)
        leader = asyncio.create_task(joiner.store(puts("b", waits=False), send))
        while not calls:
            await asyncio.sleep(0)
        leader.cancel()
        async with asyncio.timeout(5):
            await follower
        assert leader.cancelled()

    asyncio.run(run())
    assert [call.method for call in calls] == ["POST", "PUT"]
    assert calls[1].path.endswith("/a")


def test_interrupted_call__in_a_thread__is_not_sent_by_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    joiner = Joiner()
    calls: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Event", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            joiner.store(puts("a"), calls.append)
    joiner.store(puts("b"), calls.append)
    assert [call.path.rpartition("/")[2] for call in calls] == ["b"]


@pytest.mark.usefixtures("patient")
def test_interrupted_call__that_sends_for_others__lets_them_send_on_their_own() -> None:
    joiner = Joiner()
    calls: list[Any] = []

    def send(call: Any) -> None:
        calls.append(call)
        if call.method == "POST":
            raise KeyboardInterrupt

    with ThreadPoolExecutor() as pool:
        follower = pool.submit(joiner.store, puts("a"), send)
        wait_for(joiner, 1)
        with pytest.raises(KeyboardInterrupt):
            joiner.store(puts("b", waits=False), send)
        follower.result(5)
    assert [call.method for call in calls] == ["POST", "PUT"]
