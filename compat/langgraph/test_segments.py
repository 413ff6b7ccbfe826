"""The cost of a step, and segments: checkpoints of long threads are the same as in memory."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import savers
from commonhold import AsyncCommonhold, Commonhold, RateLimited, Unavailable, Unreachable
from commonhold.langgraph import CommonholdSaver, copying
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import INTERRUPT
from savers import config, counted, put, told, values_of


def take_steps(saver: Any, at: Any, count: int, *, begin: int = 0) -> list[Any]:
    """Take steps of a graph: a constant value, a changing one, and writes. Returns the configs."""
    made = []
    for n in range(begin, begin + count):
        versions = {"doc": "1", "n": f"{n:05}"}
        fresh = versions if n == 0 else {"n": versions["n"]}
        values = {"doc": ["x" * 1000], "n": {"turn": n}}
        about = {"step": n, "run_id": f"run-{n % 2}"}
        at = put(saver, at, values, versions=versions, fresh=fresh, **about)
        saver.put_writes(at, [("n", {"turn": n + 1}), ("log", [n])], f"task-{n}")
        made.append(at)
    return made


def test_list__of_any_length__takes_the_same_number_of_requests(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_steps(saver, config(thread), 150)
    anywhere: Any = {"configurable": {"thread_id": thread}}

    def trips(at: Any, limit: int) -> int:
        with counted(monkeypatch) as calls:
            assert len(list(saver.list(at, limit=limit))) == limit
        return len(calls)

    # Single checkpoints, segments and values; without a namespace, the keys of both before.
    assert [trips(config(thread), limit) for limit in (1, 30, 100)] == [2, 3, 3]
    assert [trips(anywhere, limit) for limit in (1, 30, 100)] == [4, 4, 4]


def test_step__with_small_changes__is_one_entry_and_one_request_per_call(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str, monkeypatch: Any
) -> None:
    where = f"{namespace}.checkpoints"
    at = take_steps(saver, config(thread), 2)[-1]
    with counted(monkeypatch) as calls:
        at = take_steps(saver, at, 28, begin=2)[-1]
    assert [call.method for call in calls] == ["PUT"] * 56
    before = list(state.every(Commonhold.list(where)))
    assert len(before) == 60
    with counted(monkeypatch) as calls:
        take_steps(saver, at, 3, begin=30)
    # 32 steps are moved into a segment: one call reads them, one writes the segment.
    assert sorted(call.method for call in calls) == ["GET", "POST"] + ["PUT"] * 6
    after = list(state.every(Commonhold.list(where)))
    assert [entry.key.startswith("%segments/") for entry in after].count(True) == 1
    assert len(after) == 1 + 2 * 4
    assert after[0].size_bytes < sum(entry.size_bytes for entry in before) / 4
    # Nothing else is written: no versions, and no changes.
    assert list(state.history(where, after[-1].key)) == []
    assert [
        c for c in state.changes(namespace=where, limit=200) if c.kind != "namespace.register"
    ] == []


@pytest.fixture
def folded(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[InMemorySaver, list[Any]]:
    """A thread with two segments, and the same thread in memory."""
    memory = InMemorySaver()
    ids = [str(uuid6()) for _ in range(75)]
    for each in (memory, saver):
        remaining = iter(ids)
        monkeypatch.setattr(savers, "uuid6", lambda left=remaining: next(left))
        configs = take_steps(each, config(thread), 75)
    monkeypatch.undo()
    return memory, configs


def test_segments__read_in_every_way__are_as_in_memory(
    saver: CommonholdSaver, thread: str, folded: tuple[InMemorySaver, list[Any]]
) -> None:
    memory, configs = folded
    for at in configs:
        assert told(saver.get_tuple(at)) == told(memory.get_tuple(at))
    assert told(saver.get_tuple(config(thread))) == told(memory.get_tuple(config(thread)))
    assert saver.get_tuple(config(thread, "", str(uuid.UUID(int=1)))) is None
    anywhere: Any = {"configurable": {"thread_id": thread}}
    for kept in (
        {},
        {"limit": 50},
        {"filter": {"step": 7}},
        *({"before": configs[n], "limit": 20} for n in (1, 20, 27, 28, 29, 50, 60, 70, 74)),
    ):
        expected = [told(each) for each in memory.list(config(thread), **kept)]
        assert [told(each) for each in saver.list(config(thread), **kept)] == expected
        assert [told(each) for each in saver.list(anywhere, **kept)] == expected
    (named,) = saver.list(configs[9])
    assert told(named) == told(memory.get_tuple(configs[9]))


def test_segments__writes_to_an_old_checkpoint__are_added_and_the_first_win(
    saver: CommonholdSaver, thread: str, folded: tuple[InMemorySaver, list[Any]]
) -> None:
    memory, configs = folded
    for each in (memory, saver):
        each.put_writes(configs[9], [("n", "late"), ("log", "late"), ("more", 1)], "task-9")
        each.put_writes(configs[9], [(INTERRUPT, "stop")], "other")
    anywhere: Any = {"configurable": {"thread_id": thread}}
    assert told(saver.get_tuple(configs[9])) == told(memory.get_tuple(configs[9]))
    expected = [told(each) for each in memory.list(config(thread))]
    assert [told(each) for each in saver.list(config(thread))] == expected
    assert [told(each) for each in saver.list(anywhere)] == expected


def test_segments__copied_and_deleted__are_as_other_checkpoints(
    saver: CommonholdSaver,
    state: Commonhold,
    namespace: str,
    thread: str,
    folded: tuple[InMemorySaver, list[Any]],
) -> None:
    _, configs = folded
    copy = f"{thread}-copy"
    saver.copy_thread(thread, copy)
    own = [(t.checkpoint, t.metadata, t.pending_writes) for t in saver.list(config(thread))]
    assert [(t.checkpoint, t.metadata, t.pending_writes) for t in saver.list(config(copy))] == own
    assert {t.config["configurable"]["thread_id"] for t in saver.list(config(copy))} == {copy}
    saver.delete_for_runs(["run-1"])
    assert [t.metadata["step"] for t in saver.list(config(thread))] == list(range(74, -1, -2))
    assert saver.get_tuple(configs[9]) is None
    saver.prune([thread])
    assert [t.config for t in saver.list(config(thread))] == [configs[74]]
    assert values_of(saver, config(thread)) == {"doc": ["x" * 1000], "n": {"turn": 74}}
    saver.delete_thread(thread)
    saver.prune([copy], strategy="delete")
    assert list(saver.list(None)) == []
    assert list(state.every(Commonhold.list(f"{namespace}.checkpoints"))) == []


@pytest.mark.parametrize("page", [200, 10])
def test_copy__while_checkpoints_become_a_segment__is_complete(
    saver: CommonholdSaver,
    state: Commonhold,
    namespace: str,
    thread: str,
    page: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = take_steps(saver, config(thread), 32)[-1]
    monkeypatch.setattr(copying, "PAGE", page)
    send, lists = Commonhold.send, 0

    def fold_between(self: Commonhold, call: Any) -> Any:
        nonlocal lists
        lists += call.method == "GET" and f"{namespace}.checkpoints" in str(call)
        if lists == 2:  # after the first page of checkpoints
            monkeypatch.setattr(Commonhold, "send", send)
            put(saver, at, {"n": 1}, step=32)
        return send(self, call)

    monkeypatch.setattr(Commonhold, "send", fold_between)
    copy = f"{thread}-copy"
    saver.copy_thread(thread, copy)
    assert lists == 2
    steps = [t.metadata["step"] for t in saver.list(config(copy))]
    assert steps == list(range(len(steps) - 1, -1, -1))
    assert len(steps) >= 32
    anywhere: Any = {"configurable": {"thread_id": copy}}
    assert [t.metadata["step"] for t in saver.list(anywhere)] == steps
    writes = {t.metadata["step"]: t.pending_writes for t in saver.list(config(thread))}
    assert all(t.pending_writes == writes[t.metadata["step"]] for t in saver.list(config(copy)))
    # No entry is both single and in a segment.
    rows = list(state.every(Commonhold.list(f"{namespace}.checkpoints", prefix=f"{copy}/")))
    assert len(rows) <= 2 * 5


FAILURES = [
    Unreachable("no answer"),
    RateLimited({"status": 429}),
    Unavailable({"status": 503}),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("step", [1, 2], ids=["read", "write"])
def test_put__when_making_a_segment_fails__succeeds(
    saver: CommonholdSaver, thread: str, step: int, failure: Exception, monkeypatch: Any
) -> None:
    at = take_steps(saver, config(thread), 32)[-1]
    send, calls = Commonhold.send, 0

    def fail(self: Commonhold, call: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1 + step:
            raise failure
        return send(self, call)

    with monkeypatch.context() as patched:
        patched.setattr(Commonhold, "send", fail)
        at = put(saver, at, {"n": 1}, step=32)
    assert calls == 1 + step
    assert values_of(saver, at) == {"n": 1}
    assert len(list(saver.list(config(thread)))) == 33


def test_put__when_making_a_segment_fails__succeeds_async(
    namespace: str, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = AsyncCommonhold.send

    async def fail(self: AsyncCommonhold, call: Any) -> Any:
        if call.method == "GET":
            raise Unreachable("no answer")
        return await send(self, call)

    async def run() -> None:
        async with CommonholdSaver.from_env(namespace=namespace) as saver:
            with monkeypatch.context() as patched:
                patched.setattr(AsyncCommonhold, "send", fail)
                at = await saver.aput(
                    config(thread), {**empty_checkpoint(), "id": str(uuid6())}, {"step": 32}, {}
                )
            assert await saver.aget_tuple(at) is not None

    asyncio.run(run())


def test_put__with_a_bug_in_making_a_segment__raises(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Commonhold.send

    def fail(self: Commonhold, call: Any) -> Any:
        if call.method == "GET":
            raise ValueError("bug")
        return send(self, call)

    monkeypatch.setattr(Commonhold, "send", fail)
    with pytest.raises(ValueError, match="bug"):
        put(saver, config(thread), {"n": 1}, step=32)


def test_segments__of_large_writes__are_not_made(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    at = put(saver, config(thread), {"n": 0}, step=0)
    saver.put_writes(at, [("n", "x" * 100_000)], "task")
    take_steps(saver, at, 33, begin=1)
    keys = [e.key for e in state.every(Commonhold.list(f"{namespace}.checkpoints"))]
    assert not any(key.startswith("%segments/") for key in keys)
    assert len(list(saver.list(config(thread)))) == 34


def test_segments__made_by_two_workers_at_once__lose_nothing(
    saver: CommonholdSaver, thread: str
) -> None:
    at = take_steps(saver, config(thread), 31, begin=1)[-1]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: put(saver, at, {"n": 1}, step=32), range(8)))
    assert len(made) == 8
    steps = [t.metadata["step"] for t in saver.list(config(thread))]
    assert steps == [32] * 8 + list(range(31, 0, -1))


def test_thread_of_version_0_1__is_read_and_continued(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    saver.setup()
    old = str(uuid6())
    head = {
        "thread_id": thread,
        "checkpoint_ns": "",
        "checkpoint_id": old,
        "parent_checkpoint_id": None,
        "metadata": {"source": "input", "step": 0, "parents": {}},
        "checkpoint": {
            **{name: part for name, part in empty_checkpoint().items() if name != "channel_values"},
            "id": old,
            "channel_versions": {"n": "1", "doc": "1"},
        },
        "values": {"n": 1},
        "channels": {"doc": "1"},
    }
    about = {"task_id": "t", "task_path": ""}
    for where, key, value in (
        ("checkpoints", f"{old}/checkpoint", head),
        (
            "checkpoints",
            f"{old}/write/t/0",
            {**about, "index": 0, "channel": "a", "value": {"json": 1}},
        ),
        (
            "checkpoints",
            f"{old}/write/t/1",
            {**about, "index": 1, "channel": "b", "value": {"json": 2}},
        ),
        ("channels", "doc/1", {"json": ["short"]}),
    ):
        state.put(f"{namespace}.{where}", f"{thread}//{key}", value)
    found = saver.get_tuple(config(thread))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"n": 1, "doc": ["short"]}
    assert found.pending_writes == [("t", "a", 1), ("t", "b", 2)]
    values = {"n": 2, "doc": ["short"]}
    at = put(saver, found.config, values, versions={"n": "2", "doc": "1"}, fresh={"n": "2"}, step=1)
    saver.put_writes(found.config, [("a", 9), ("c", 3)], "t")
    assert values_of(saver, at) == values
    written = saver.get_tuple(found.config)
    assert written is not None
    assert written.pending_writes == [("t", "a", 1), ("t", "b", 2)]
