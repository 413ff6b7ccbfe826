"""Real graphs behave the same over CommonholdSaver and InMemorySaver, sync and async, and when
another process continues them."""

from __future__ import annotations

import asyncio
import operator
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from commonhold import AsyncCommonhold
from commonhold.langgraph import CommonholdSaver, CommonholdStore, pages, reading
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedStore, ToolNode, create_react_agent, tools_condition
from langgraph.types import Command, Send, interrupt


class Trip(TypedDict, total=False):
    city: str
    log: Annotated[list[str], operator.add]
    approved: bool


def plan(state: Trip) -> Trip:
    return {"log": [f"plan {state['city']}"]}


def ask(state: Trip) -> Trip:
    return {"approved": interrupt({"question": f"book {state['city']}?"})}


def book(state: Trip) -> Trip:
    return {"log": ["booked" if state["approved"] else "refused"]}


def trip(saver: BaseCheckpointSaver[Any]) -> Any:
    builder = StateGraph(Trip)
    builder.add_sequence([plan, ask, book])
    builder.add_edge(START, "plan")
    return builder.compile(checkpointer=saver)


def at(thread: str, **more: str) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def told(snapshot: Any) -> Any:
    return snapshot.values, snapshot.next, snapshot.metadata["source"], snapshot.metadata["step"]


def test_interrupt__resumed_by_another_saver__goes_on(
    saver: CommonholdSaver, namespace: str, thread: str
) -> None:
    stopped = trip(saver).invoke({"city": "Lisbon"}, at(thread))
    assert stopped["__interrupt__"][0].value == {"question": "book Lisbon?"}
    with CommonholdSaver.from_env(namespace=namespace) as other:
        assert trip(other).get_state(at(thread)).next == ("ask",)
        done = trip(other).invoke(Command(resume=True), at(thread))
    assert done == {"city": "Lisbon", "approved": True, "log": ["plan Lisbon", "booked"]}
    assert trip(saver).get_state(at(thread)).next == ()


def test_interrupt__async__resumes(namespace: str, thread: str) -> None:
    async def run() -> Any:
        async with CommonholdSaver.from_env(namespace=namespace) as saver:
            await trip(saver).ainvoke({"city": "Porto"}, at(thread))
            assert (await trip(saver).aget_state(at(thread))).next == ("ask",)
            return await trip(saver).ainvoke(Command(resume=False), at(thread))

    assert asyncio.run(run())["log"] == ["plan Porto", "refused"]


def test_async__of_a_saver_made_outside__works_in_every_event_loop(
    saver: CommonholdSaver, thread: str
) -> None:
    graph = trip(saver)
    asyncio.run(graph.ainvoke({"city": "Faro"}, at(thread)))
    assert asyncio.run(graph.ainvoke(Command(resume=True), at(thread)))["approved"] is True
    assert graph.get_state(at(thread)).values["approved"] is True


def test_async__event_loops_in_turns__each_keeps_its_connections(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    senders: list[AsyncCommonhold] = []
    send = AsyncCommonhold.send

    async def record(self: AsyncCommonhold, call: Any) -> Any:
        senders.append(self)
        return await send(self, call)

    async def close() -> None:
        async with saver:
            pass

    monkeypatch.setattr(AsyncCommonhold, "send", record)
    with asyncio.Runner() as one, asyncio.Runner() as two:
        for runner in (one, two, one, two):
            assert runner.run(saver.aget_tuple(at(thread))) is None
        for runner in (one, two):
            runner.run(close())
    assert len(set(senders)) == 2


def test_time_travel__history_replay_and_fork__are_as_in_memory(
    saver: CommonholdSaver, thread: str
) -> None:
    seen = []
    for each in (InMemorySaver(), saver):
        graph = trip(each)
        graph.invoke({"city": "Lisbon"}, at(thread))
        graph.invoke(Command(resume=True), at(thread))
        history = list(graph.get_state_history(at(thread)))
        asked = next(s for s in history if s.next == ("ask",))
        forked = graph.update_state(asked.config, {"city": "Braga"})
        graph.invoke(None, forked)
        again = graph.invoke(Command(resume=False), at(thread))
        replayed = graph.get_state(asked.config)
        page = list(graph.get_state_history(at(thread), limit=2))
        rest = list(graph.get_state_history(at(thread), before=page[-1].config))
        everything = list(graph.get_state_history(at(thread)))
        assert [s.config for s in page + rest] == [s.config for s in everything]
        looped = graph.get_state_history(at(thread), filter={"source": "update"})
        seen.append(
            (
                [told(s) for s in history],
                again,
                told(replayed),
                [told(s) for s in everything],
                [told(s) for s in looped],
            )
        )
    assert seen[0] == seen[1]
    assert seen[1][1]["city"] == "Braga"


def nested(saver: BaseCheckpointSaver[Any]) -> Any:
    inner = StateGraph(Trip)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(Trip)
    outer.add_node("plan", plan)
    outer.add_node("approval", inner.compile())
    outer.add_node("book", book)
    outer.add_edge(START, "plan")
    outer.add_edge("plan", "approval")
    outer.add_edge("approval", "book")
    return outer.compile(checkpointer=saver)


def test_subgraph__stopped_inside__shows_its_state_and_resumes(
    saver: CommonholdSaver, thread: str
) -> None:
    graph = nested(saver)
    graph.invoke({"city": "Lisbon"}, at(thread))
    (task,) = graph.get_state(at(thread), subgraphs=True).tasks
    assert task.state.values["city"] == "Lisbon"
    assert task.state.next == ("ask",)
    assert task.state.config["configurable"]["checkpoint_ns"].startswith("approval:")
    assert graph.invoke(Command(resume=True), at(thread))["log"][-1] == "booked"
    # All checkpoint namespaces of the thread, newest first across them.
    listed = [each.config["configurable"] for each in saver.list(at(thread))]
    assert len({each["checkpoint_ns"] for each in listed}) == 2
    ids = [each["checkpoint_id"] for each in listed]
    assert ids == sorted(ids, reverse=True)


def fan(saver: BaseCheckpointSaver[Any], width: int) -> Any:
    class Sum(TypedDict):
        parts: Annotated[list[int], operator.add]

    builder = StateGraph(Sum)
    builder.add_node("work", lambda state: {"parts": [state["n"]]})
    builder.add_conditional_edges(START, lambda _: [Send("work", {"n": n}) for n in range(width)])
    return builder.compile(checkpointer=saver)


def test_fan_out__a_hundred_tasks_at_once__lose_no_write(
    saver: CommonholdSaver, thread: str
) -> None:
    assert fan(saver, 100).invoke({"parts": []}, at(thread))["parts"] == list(range(100))
    assert fan(saver, 100).get_state(at(thread)).values["parts"] == list(range(100))
    start = next(iter(saver.list(at(thread, checkpoint_ns=""), filter={"step": 0})))
    assert len([w for w in start.pending_writes or [] if w[1] == "parts"]) == 100


def test_failed_branch__retried__does_not_run_the_finished_one_again(
    saver: CommonholdSaver, thread: str
) -> None:
    runs = {"good": 0, "bad": 0}

    def good(state: Trip) -> Trip:
        runs["good"] += 1
        return {"log": ["good"]}

    def bad(state: Trip) -> Trip:
        runs["bad"] += 1
        if runs["bad"] == 1:
            raise OSError("no line")
        return {"log": ["bad"]}

    builder = StateGraph(Trip)
    builder.add_node("good", good)
    builder.add_node("bad", bad)
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(OSError, match="no line"):
        graph.invoke({"city": "x", "log": []}, at(thread), durability="sync")
    done = graph.invoke(None, at(thread))
    assert sorted(done["log"]) == ["bad", "good"]
    assert runs == {"good": 1, "bad": 2}


# Delta channels ----------------------------------------------------------------------------------


def joined(value: Sequence[str] | None, updates: Sequence[Sequence[str]]) -> list[str]:
    return [*(value or []), *(each for update in updates for each in update)]


class Notes(TypedDict):
    notes: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=5)]
    turn: int


def notes(saver: BaseCheckpointSaver[Any]) -> Any:
    builder = StateGraph(Notes)
    builder.add_node("left", lambda s: {"notes": [f"l{s['turn']}"]})
    builder.add_node("right", lambda s: {"notes": [f"r{s['turn']}"]})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    return builder.compile(checkpointer=saver)


def test_delta_channel__many_turns_and_a_fork__is_as_in_memory(
    saver: CommonholdSaver, thread: str
) -> None:
    seen = []
    for each in (InMemorySaver(), saver):
        graph = notes(each)
        for turn in range(7):
            graph.invoke({"notes": [f"in{turn}"], "turn": turn}, at(thread))
        history = list(graph.get_state_history(at(thread)))
        forked = graph.update_state(history[8].config, {"notes": ["fork"]}, as_node="left")
        graph.invoke({"notes": ["more"], "turn": 99}, at(thread))
        then = [told(graph.get_state(s.config)) for s in history]
        seen.append((then, told(graph.get_state(forked)), told(graph.get_state(at(thread)))))
    assert seen[0] == seen[1]
    assert len(seen[1][0][0][0]["notes"]) == 21


def test_delta_channel__history__is_what_the_base_class_finds_ancestor_by_ancestor(
    saver: CommonholdSaver, thread: str
) -> None:
    graph = notes(saver)
    for turn in range(6):
        graph.invoke({"notes": [f"in{turn}"], "turn": turn}, at(thread))
    for each in list(saver.list(at(thread, checkpoint_ns=""))):
        asked: Any = {"config": each.config, "channels": ["notes", "turn", "none"]}
        slow = BaseCheckpointSaver.get_delta_channel_history(saver, **asked)
        assert saver.get_delta_channel_history(**asked) == slow
        assert asyncio.run(saver.aget_delta_channel_history(**asked)) == slow
    absent: Any = at(thread, checkpoint_ns="", checkpoint_id=str(uuid.UUID(int=1)))
    assert saver.get_delta_channel_history(config=absent, channels=["notes"]) == {
        "notes": {"writes": []}
    }
    assert saver.get_delta_channel_history(config=absent, channels=[]) == {}


@pytest.mark.parametrize("turns", range(1, 8))
def test_prune__of_a_delta_channel__keeps_what_its_value_is_made_of(
    saver: CommonholdSaver, thread: str, turns: int
) -> None:
    graph = notes(saver)
    for turn in range(turns):
        graph.invoke({"notes": [f"in{turn}"], "turn": turn}, at(thread))
    before = graph.get_state(at(thread))
    count = len(list(saver.list(at(thread))))
    saver.prune([thread])
    assert graph.get_state(at(thread)).values == before.values
    assert len(list(saver.list(at(thread)))) <= min(count, 8)
    graph.invoke({"notes": ["more"], "turn": 50}, at(thread))
    grown = graph.get_state(at(thread)).values["notes"]
    assert grown == [*before.values["notes"], "more", "l50", "r50"]


# Agents ------------------------------------------------------------------------------------------


class Scripted(BaseChatModel):
    """A model that calls a tool once, then returns the tool's result."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            answer = AIMessage(f"done: {last.content}")
        else:
            call = {"name": "remember", "args": {"what": last.content}, "id": uuid.uuid4().hex}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def remember(what: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Keep something."""
    store.put(("memories",), what, {"text": what})
    return f"kept {what}"


def test_react_agent__tool_store_and_a_second_turn__remember_everything(
    saver: CommonholdSaver, store: CommonholdStore, namespace: str, thread: str
) -> None:
    with pytest.warns(DeprecationWarning, match="create_react_agent has been moved"):
        agent = create_react_agent(Scripted(), [remember], checkpointer=saver, store=store)
    first = agent.invoke({"messages": [HumanMessage("aisle seat")]}, at(thread))
    assert first["messages"][-1].content == "done: kept aisle seat"
    agent.invoke({"messages": [HumanMessage("no red-eye")]}, at(thread))
    messages = agent.get_state(at(thread)).values["messages"]
    assert [each.type for each in messages] == ["human", "ai", "tool", "ai"] * 2
    assert messages == agent.get_state(at(thread)).values["messages"]
    assert [each.key for each in store.search(("memories",))] == ["aisle seat", "no red-eye"]


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def test_hand_built_agent__async_and_streamed__resumes_before_its_tool(
    namespace: str, thread: str
) -> None:
    async def run() -> tuple[list[str], Any]:
        async with (
            CommonholdSaver.from_env(namespace=namespace) as saver,
            CommonholdStore.from_env(namespace=namespace) as store,
        ):
            builder = StateGraph(Talk)
            builder.add_node("model", lambda s: {"messages": [Scripted().invoke(s["messages"])]})
            builder.add_node("tools", ToolNode([remember]))
            builder.add_edge(START, "model")
            builder.add_conditional_edges("model", tools_condition, ["tools", END])
            builder.add_edge("tools", "model")
            graph = builder.compile(checkpointer=saver, store=store, interrupt_before=["tools"])
            steps = []
            asked: Any = {"messages": [HumanMessage("window")]}
            while True:
                async for each in graph.astream(asked, at(thread), stream_mode="updates"):
                    steps += list(each)
                if not (await graph.aget_state(at(thread))).next:
                    break
                asked = None
            return steps, await store.aget(("memories",), "window")

    steps, kept = asyncio.run(run())
    assert steps == ["model", "__interrupt__", "tools", "model"]
    assert kept.value == {"text": "window"}


@pytest.mark.parametrize("when", ["values", "second page"])
def test_delta_channel__pruned_while_its_history_is_read__is_whole_or_gone(
    saver: CommonholdSaver, thread: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    graph = notes(saver)
    for turn in range(4):
        graph.invoke({"notes": [f"in{turn}" + "x" * 300], "turn": turn}, at(thread))
    found = saver.get_tuple(at(thread))
    assert found is not None
    asked: Any = {"config": found.config, "channels": ["notes"]}
    assert "seed" in saver.get_delta_channel_history(**asked)["notes"]
    owner, name = (reading, "read_documents") if when == "values" else (pages, "next_page")
    original = getattr(owner, name)
    if when == "second page":
        sizes = {"size": 8, "needed": 8}  # of the entries of some ancestors
        monkeypatch.setattr(pages.CheckpointPages.__init__, "__kwdefaults__", sizes)

    def after_the_pruning(*args: Any) -> Any:
        monkeypatch.undo()
        saver.prune([thread], strategy="delete")
        return original(*args)

    monkeypatch.setattr(owner, name, after_the_pruning)
    assert saver.get_delta_channel_history(**asked)["notes"] == {"writes": []}
