"""CommonholdSaver stores the same as InMemorySaver: values of every kind, threads of any name,
races, retries; and the number of round trips."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from commonhold import Commonhold, InvalidArgument, NotFound, NotRegistered
from commonhold.langgraph import CommonholdSaver, CommonholdStore, reading
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from savers import config, counted, put, told, values_of

ODD_VALUES = [
    None,
    True,
    -0.0,
    1.0,
    float("inf"),
    2**63,
    2**64 - 1,
    -(2**63),
    "",
    "nul \0 in it",
    "ünï 🙂 \u2028",
    "x" * 5000,
    b"\x00\xff",
    bytearray(b"ab"),
    [],
    {},
    [[[1]]],
    {"a": {"b": [1, None, "c"]}},
    {1: "number as key"},
    {"nul\0": 1},
    {"json": 1},
    {"type": "msgpack", "base64": "AA=="},
    {"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {}},
    {1, 2},
    datetime(2020, 1, 1, tzinfo=UTC),
    uuid.UUID(int=5),
    list(range(20_000)),
]


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: repr(value)[:40])
def test_value__of_any_kind__comes_back_as_from_memory(
    saver: CommonholdSaver, thread: str, value: Any
) -> None:
    seen = []
    for each in (InMemorySaver(), saver):
        at = put(each, config(thread), {"c": value}, extra=None)
        each.put_writes(at, [("c", value), (ERROR, "e")], "task")
        found = each.get_tuple(at)
        seen.append((found.checkpoint["channel_values"], found.pending_writes, found.metadata))
    assert seen[0] == seen[1]
    # repr distinguishes 1 from True, 1.0 and -0.0, which are equal.
    assert repr(seen[0]) == repr(seen[1])


def test_value__of_ten_megabytes__lies_in_parts_and_goes_with_them(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    big = random.Random(5).randbytes(10_000_000)
    at = put(saver, config(thread), {"big": big, "text": "y" * 5_000_000, "n": 1})
    saver.put_writes(at, [("big", big), ("other", 1)], "task")
    found = saver.get_tuple(at)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"big": big, "text": "y" * 5_000_000, "n": 1}
    assert found.pending_writes == [("task", "big", big), ("task", "other", 1)]
    assert [each.pending_writes for each in saver.list(config(thread))] == [found.pending_writes]
    put(saver, at, {"n": 2})
    saver.prune([thread])
    assert list(state.every(Commonhold.list(f"{namespace}.channels"))) == []


def test_plain_json__in_commonhold__is_readable(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    notes = {"note": "n" * 300}
    at = put(saver, config(thread), {"trip": {"city": "Lisbon"}, "turn": 3, "notes": notes}, step=7)
    saver.put_writes(at, [("trip", {"city": "Porto"})], "task")
    name = at["configurable"]["checkpoint_id"]
    head, written = state.list(f"{namespace}.checkpoints", values=True)
    assert head.key == f"{thread}//{name}/checkpoint"
    assert head.value["metadata"]["step"] == 7
    assert head.value["values"] == {"trip": {"city": "Lisbon"}, "turn": 3}
    assert head.value["channels"] == {"notes": "1"}
    assert written.key.startswith(f"{thread}//{name}/write/")
    assert written.value == {
        "task_id": "task",
        "task_path": "",
        "writes": [{"index": 0, "channel": "trip", "value": {"json": {"city": "Porto"}}}],
    }
    (value,) = state.list(f"{namespace}.channels", values=True)
    assert (value.key, value.value) == (f"{thread}//notes/1", {"json": notes})


def test_unchanged_channel__in_a_hundred_checkpoints__is_stored_once(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    at = put(saver, config(thread), {"doc": ["x" * 500]})
    for _ in range(100):
        at = put(saver, at, {"doc": ["x" * 500]}, fresh={})
    assert values_of(saver, at) == {"doc": ["x" * 500]}
    (only,) = state.list(f"{namespace}.channels")
    assert only.version == 1


class Reversing:
    """A cipher for tests."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


def test_encrypting_serializer__asked_for_every_value__leaves_none_readable(
    state: Commonhold, namespace: str, thread: str
) -> None:
    serde = EncryptedSerializer(Reversing())
    with CommonholdSaver.from_env(namespace=namespace, serde=serde) as saver:
        at = put(saver, config(thread), {"short": "hush", "long": ["hush"], "n": 4711})
        saver.put_writes(at, [("c", "hush")], "task")
        assert values_of(saver, at) == {"short": "hush", "long": ["hush"], "n": 4711}
    for name in ("checkpoints", "channels"):
        stored = str([e.value for e in state.list(f"{namespace}.{name}", values=True)])
        assert "hush" not in stored
        assert "4711" not in stored


def test_messages__pydantic_objects__come_back_as_themselves(
    saver: CommonholdSaver, thread: str
) -> None:
    said = [HumanMessage("hi", id="1", additional_kwargs={"k": [1]})]
    assert values_of(saver, put(saver, config(thread), {"messages": said})) == {"messages": said}


# Threads -----------------------------------------------------------------------------------------


def test_threads__with_names_that_could_run_together__stay_apart(
    saver: CommonholdSaver, namespace: str
) -> None:
    names = [f"{namespace}{end}" for end in ("", "/", "//x", "%2F", "%", "b", "ü 🙂", ":", "~")]
    names.append((namespace + "é" * 64)[:70])
    for name in names:
        for ns in ("", "a", "a:1|b:2", "/", "n" * 400):
            put(saver, config(name, ns), {"who": [name, ns]})
    for name in names:
        for ns in ("", "a", "a:1|b:2", "/", "n" * 400):
            assert values_of(saver, config(name, ns)) == {"who": [name, ns]}
            (only,) = saver.list(config(name, ns))
            assert only.config["configurable"]["checkpoint_ns"] == ns
    saver.delete_thread(names[0])
    assert saver.get_tuple(config(names[0])) is None
    assert all(saver.get_tuple(config(name)) for name in names[1:])


def test_long_names__of_channels_tasks_and_versions__do_not_collide(
    saver: CommonholdSaver, thread: str
) -> None:
    values = {"c" * 300 + end: [end] for end in "ab"}
    at = put(saver, config(thread, "n" * 300), values, versions=dict.fromkeys(values, "v" * 200))
    for end in "ab":
        saver.put_writes(at, [("x", end)], "t" * 300 + end)
    found = saver.get_tuple(at)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert [w[2] for w in found.pending_writes or []] == ["a", "b"]
    with pytest.raises(ValueError, match="a checkpoint id of more than 64 bytes"):
        saver.get_tuple(config(thread, "", "i" * 65))


def test_thread__in_commonhold__is_there_until_the_checkpoints_are_deleted(
    saver: CommonholdSaver, state: Commonhold, thread: str
) -> None:
    put(saver, config(thread), {"n": 1})
    assert state.threads.get(thread).document["metadata"] == {"framework": "langgraph"}
    saver.delete_thread(thread)
    with pytest.raises(NotFound):
        state.threads.get(thread)
    put(saver, config(thread), {"n": 2})
    assert values_of(saver, config(thread)) == {"n": 2}
    assert state.threads.get(thread).id == thread


def test_thread__with_messages_of_its_own__outlives_its_checkpoints(
    saver: CommonholdSaver, state: Commonhold, thread: str
) -> None:
    state.threads.create(thread, title="mine")
    put(saver, config(thread), {"n": 1})
    saver.delete_thread(thread)
    assert state.threads.get(thread).title == "mine"


def test_copy__then_a_step_on_each__are_two_threads(saver: CommonholdSaver, thread: str) -> None:
    at = put(saver, config(thread), {"doc": [1]})
    saver.put_writes(at, [("doc", [2])], "task")
    put(saver, config(thread, "sub:1"), {"doc": ["sub"]})
    saver.copy_thread(thread, f"{thread}-copy")
    at = put(saver, at, {"doc": [3]}, versions={"doc": "2"})
    copied = saver.get_tuple(config(f"{thread}-copy"))
    assert copied is not None
    assert copied.config["configurable"]["thread_id"] == f"{thread}-copy"
    assert copied.checkpoint["channel_values"] == {"doc": [1]}
    assert copied.pending_writes == [("task", "doc", [2])]
    assert values_of(saver, config(f"{thread}-copy", "sub:1")) == {"doc": ["sub"]}
    saver.delete_thread(thread)
    assert values_of(saver, config(f"{thread}-copy")) == {"doc": [1]}


def test_copy__of_more_entries_than_a_page__is_complete(
    saver: CommonholdSaver, thread: str
) -> None:
    at = config(thread)
    for n in range(30):
        at = put(saver, at, {"doc": [n]}, versions={"doc": str(n)})
        saver.put_writes(at, [("doc", [w]) for w in range(10)], "task")
    saver.copy_thread(thread, f"{thread}-copy")

    def told(name: str) -> list[Any]:
        return [(t.checkpoint, t.metadata, t.pending_writes) for t in saver.list(config(name))]

    assert len(told(thread)) == 30
    assert told(f"{thread}-copy") == told(thread)


def test_delete_for_runs__also_frees_the_values_nobody_needs(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    long = ["x" * 300]
    at = put(saver, config(thread), {"a": [1, *long], "b": long}, run_id=one)
    new = {"a": "2", "b": "1"}
    put(saver, at, {"a": [2, *long], "b": long}, versions=new, fresh={"a": "2"}, run_id=two)
    saver.delete_for_runs([one, "no such run"])
    assert values_of(saver, config(thread)) == {"a": [2, *long], "b": long}
    keys = [e.key for e in state.list(f"{namespace}.channels")]
    assert keys == [f"{thread}//a/2", f"{thread}//b/1"]


def test_prune__also_frees_values_and_leaves_writes_that_are_ahead(
    saver: CommonholdSaver, state: Commonhold, namespace: str, thread: str
) -> None:
    at = config(thread)
    for n in range(5):
        values = {"a": [n, "x" * 300], "b": ["y" * 300]}
        at = put(saver, at, values, versions={"a": str(n), "b": "0"})
    ahead = str(uuid6())
    saver.put_writes(config(thread, "", ahead), [("a", 1)], "task")
    saver.prune([thread])
    assert [t.config for t in saver.list(config(thread))] == [at]
    assert [e.key for e in state.list(f"{namespace}.channels")] == [
        f"{thread}//a/4",
        f"{thread}//b/0",
    ]
    put(saver, at, {"a": [5]}, checkpoint_id=ahead)
    found = saver.get_tuple(config(thread))
    assert found is not None
    assert found.pending_writes == [("task", "a", 1)]
    with pytest.raises(ValueError, match="strategy must be keep_latest or delete, not 'all'"):
        saver.prune([thread], strategy="all")


@pytest.mark.parametrize("size", [300, 10_000_000], ids=["small", "in parts"])
@pytest.mark.parametrize("strategy", ["keep_latest", "delete"])
def test_get__pruned_while_it_is_read__is_whole_or_gone(
    saver: CommonholdSaver,
    thread: str,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    size: int,
) -> None:
    at = put(saver, config(thread), {"a": random.randbytes(size)})  # not compressible
    read_documents, reads = reading.read_documents, []

    def read_after_the_next_step(*args: Any) -> Any:
        reads.append(args)
        if len(reads) == (1 if size == 300 else 2):  # the values or, after them, their parts
            monkeypatch.undo()
            put(saver, at, {"a": [2, "x" * 300]}, versions={"a": "2"})
            saver.prune([thread], strategy=strategy)
        return (yield from read_documents(*args))

    monkeypatch.setattr(reading, "read_documents", read_after_the_next_step)
    found = saver.get_tuple(config(thread))
    if strategy == "delete":
        assert found is None
    else:
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": [2, "x" * 300]}
        assert saver.get_tuple(at) is None


@pytest.mark.parametrize("ns", [{}, {"checkpoint_ns": ""}], ids=["all namespaces", "one"])
def test_list__pruned_while_it_is_read__leaves_out_what_is_gone(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch, ns: dict[str, str]
) -> None:
    at = config(thread)
    for version in "123":
        at = put(saver, at, {"a": [version, "x" * 300]}, versions={"a": version})
    read_documents = reading.read_documents

    def read_after_the_pruning(*args: Any) -> Any:
        monkeypatch.undo()
        saver.prune([thread])
        return (yield from read_documents(*args))

    monkeypatch.setattr(reading, "read_documents", read_after_the_pruning)
    (found,) = saver.list({"configurable": {"thread_id": thread, **ns}})
    assert found.config == at
    assert found.checkpoint["channel_values"] == {"a": ["3", "x" * 300]}


# Lists -------------------------------------------------------------------------------------------


def test_list__of_a_long_thread__reads_only_the_pages_that_are_asked_for(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, ids = config(thread), []
    for n in range(60):
        at = put(saver, at, {"doc": [n]}, versions={"doc": str(n)}, step=n)
        saver.put_writes(at, [("doc", w) for w in range(9)], "task")
        ids.append(at["configurable"]["checkpoint_id"])
    ids.reverse()
    with counted(monkeypatch) as calls:
        listed = saver.list(config(thread))
        assert next(listed).config == at
        assert len(calls) == 1
    assert [t.checkpoint["id"] for t in saver.list(config(thread))] == ids
    assert [t.checkpoint["id"] for t in saver.list(config(thread), limit=25)] == ids[:25]
    below = saver.list(config(thread), before=config(thread, "", ids[29]), limit=3)
    assert [t.checkpoint["id"] for t in below] == ids[30:33]
    assert [len(t.pending_writes or []) for t in saver.list(config(thread))] == [9] * 60
    assert [t.metadata["step"] for t in saver.list(config(thread), filter={"step": 17})] == [17]
    assert list(saver.list(config(thread), limit=0)) == []
    (named,) = saver.list(config(thread, "", ids[7]))
    assert named.checkpoint["id"] == ids[7]
    anywhere: Any = {"configurable": {"thread_id": thread}}
    assert [t.checkpoint["id"] for t in saver.list(anywhere, limit=2)] == ids[:2]


def test_list__without_a_config__is_of_all_threads_newest_first(
    saver: CommonholdSaver, namespace: str
) -> None:
    made = [put(saver, config(f"{namespace}-{n}", ns), {}) for n in range(3) for ns in ("", "s")]
    assert [t.config for t in saver.list(None)] == made[::-1]
    assert [t.config for t in saver.list(None, limit=2)] == made[:-3:-1]


def test_random_steps__on_both_savers__read_the_same(saver: CommonholdSaver, thread: str) -> None:
    chance = random.Random(20)
    memory = InMemorySaver()
    known: list[Any] = [config(thread), config(thread, "sub:1")]

    for step in range(80):
        at = chance.choice(known)
        if chance.random() < 0.6 or "checkpoint_id" not in at["configurable"]:
            values = {c: chance.choice([1, "s", [step], {"k": b"b"}]) for c in "abc"[: step % 4]}
            versions = dict.fromkeys(values, f"{step:03}")
            again = str(uuid6())
            for each in (memory, saver):
                made = put(each, at, values, versions=versions, checkpoint_id=again, step=step % 3)
            known.append(made)
        else:
            writes = [(chance.choice(["a", ERROR, INTERRUPT, RESUME]), step) for _ in range(3)]
            task, path = chance.choice("xyz"), chance.choice(["", "~p1", "~p2"])
            for each in (memory, saver):
                each.put_writes(at, writes, task, path)
    for at in known:
        assert told(saver.get_tuple(at)) == told(memory.get_tuple(at))
    for ns in ("", "sub:1"):
        for kept in ({}, {"filter": {"step": 1}}, {"limit": 3}, {"before": known[9]}):
            at = config(thread, ns)
            ours = [told(each) for each in saver.list(at, **kept)]
            assert ours == [told(each) for each in memory.list(at, **kept)]


# Races and retries -------------------------------------------------------------------------------


def test_put_writes__a_hundred_tasks_at_once__are_all_there(
    saver: CommonholdSaver, thread: str
) -> None:
    at = put(saver, config(thread), {})

    async def run() -> None:
        await asyncio.gather(
            *(saver.aput_writes(at, [("sum", n), ("log", [n])], f"task{n}") for n in range(100))
        )

    asyncio.run(run())
    found = saver.get_tuple(at)
    assert found is not None
    assert sorted(w[2] for w in found.pending_writes or [] if w[1] == "sum") == list(range(100))
    assert len(found.pending_writes or []) == 200


def test_put_writes__one_task_run_by_a_hundred_workers__keeps_the_writes_of_one(
    saver: CommonholdSaver, thread: str
) -> None:
    at = put(saver, config(thread), {})
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: saver.put_writes(at, [("a", n), ("b", n)], "task"), range(100)))
    found = saver.get_tuple(at)
    assert found is not None
    (_, _, a), (_, _, b) = found.pending_writes or []
    assert a == b


def test_put_writes__again_with_more__adds_and_replaces_as_in_memory(
    saver: CommonholdSaver, thread: str
) -> None:
    seen = []
    for each in (InMemorySaver(), saver):
        at = put(each, config(thread), {})
        each.put_writes(at, [("a", 1), (INTERRUPT, "one")], "task")
        each.put_writes(at, [("a", 2), (INTERRUPT, "two"), ("b", 3)], "task")
        found = each.get_tuple(at)
        seen.append(found and found.pending_writes)
    assert seen[0] == seen[1]


def test_lost_answers__every_write_sent_twice__have_one_effect(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    do = Commonhold._do

    def lose(self: Any, step: Any) -> Any:
        if getattr(step, "method", "GET") != "GET":
            do(self, step)  # processed, but its response is lost
        return do(self, step)

    monkeypatch.setattr(Commonhold, "_do", lose)
    at = put(saver, config(thread), {"doc": [1]})
    saver.put_writes(at, [("doc", [2]), (ERROR, "e")], "task")
    (found,) = saver.list(config(thread))
    assert found.checkpoint["channel_values"] == {"doc": [1]}
    assert sorted(found.pending_writes or []) == [("task", ERROR, "e"), ("task", "doc", [2])]


def test_round_trips__of_each_call__are_one_or_two(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = put(saver, config(thread), {"n": 1})

    def trips(work: Any) -> int:
        with counted(monkeypatch) as calls:
            work()
        return len(calls)

    assert trips(lambda: saver.get_tuple(config(thread))) == 1  # includes short values
    big = {"doc": ["x" * 300], "more": ["y" * 300], "n": 2}
    assert trips(lambda: put(saver, at, big)) == 1
    newest = saver.get_tuple(config(thread))
    assert newest is not None
    at = newest.config
    assert trips(lambda: saver.put_writes(at, [("a", 1), ("b", [2]), (ERROR, "e")], "task")) == 1
    assert trips(lambda: saver.get_tuple(config(thread))) == 2
    assert trips(lambda: saver.get_tuple(at)) == 2
    assert trips(lambda: list(saver.list(config(thread)))) == 3
    assert trips(lambda: put(saver, config(str(uuid.uuid4())), {"n": 1})) == 2  # creates the thread


def test_setup__again_and_async__changes_nothing(
    saver: CommonholdSaver, state: Commonhold, namespace: str
) -> None:
    saver.setup()
    asyncio.run(saver.asetup())
    made = state.namespaces.get(f"{namespace}.checkpoints")
    assert made.schema_version == 1
    assert made.document["max_value_bytes"] == 8 * 1024 * 1024


def test_values__larger_than_a_response__are_read_in_several(
    saver: CommonholdSaver, thread: str
) -> None:
    values = {f"c{n}": "x" * (6 << 20) for n in range(7)}
    put(saver, config(thread), values)
    found = saver.get_tuple(config(thread))
    assert found is not None
    assert found.checkpoint["channel_values"] == values


# Mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread_id", [None, ""])
def test_thread_id__missing__is_refused_and_stores_nothing(
    saver: CommonholdSaver, thread_id: Any
) -> None:
    """LangGraph lets None pass: all runs without an id would share one thread."""
    with pytest.raises(InvalidArgument, match=r"^thread_id must "):
        put(saver, config(thread_id), {"n": 1})
    assert list(saver.list(None)) == []


def test_thread_id__uuid_or_number__is_taken_as_text(saver: CommonholdSaver) -> None:
    for thread_id in (uuid.uuid4(), random.getrandbits(60)):
        put(saver, config(cast(str, thread_id)), {"n": 1})
        assert saver.get_tuple(config(str(thread_id))) is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "127.0.0.1:8000"}, "it must begin with http"),
        ({"token": None}, "token must be a str"),
        ({"timeout": "5"}, "timeout must be a number of seconds"),
        ({"timout": 5}, "unexpected keyword argument 'timout'"),
    ],
)
def test_saver__mistaken_argument__is_refused_when_it_is_created(
    arguments: dict[str, Any], message: str
) -> None:
    for kind in (CommonholdSaver, CommonholdStore):
        with pytest.raises(TypeError, match=message):
            kind.from_url(**{"url": "http://127.0.0.1:8000", "token": "t", **arguments})


def test_from_env__not_set__names_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMMONHOLD_TOKEN")
    for kind in (CommonholdSaver, CommonholdStore):
        with pytest.raises(KeyError, match="set COMMONHOLD_TOKEN"):
            kind.from_env()


def test_namespaces__token_may_not_register_them__says_that_they_are_not_registered(
    state: Commonhold, namespace: str
) -> None:
    made = state.request("POST", "/tokens", {"name": namespace, "role": "editor"})
    url = os.environ["COMMONHOLD_URL"]
    with CommonholdSaver.from_url(url, token=made["secret"], namespace=namespace) as saver:
        for put_it in (saver.put, lambda *given: asyncio.run(saver.aput(*given))):
            with pytest.raises(NotRegistered, match=rf"{namespace}.*once with a token of the role"):
                put_it(config("t"), empty_checkpoint(), {}, {})
