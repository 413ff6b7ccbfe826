from __future__ import annotations

import asyncio
import uuid
from typing import Any, cast

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, SQLiteSession, function_tool
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from commonhold import AsyncCommonhold, Commonhold, InvalidArgument
from commonhold.openai_agents import CommonholdSession
from commonhold.threads import Threads
from fixtures import lose_response

pytestmark = pytest.mark.anyio

QUIET = RunConfig(tracing_disabled=True)
ITEMS: list[Any] = [
    {"role": "user", "content": "plain text"},
    {"role": "developer", "content": [{"type": "input_text", "text": "a block"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1.0}'},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [{"type": "input_text", "text": "x"}],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "unknown_member": {"a": [1]}},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "found ✈", "annotations": []}],
    },
]


@function_tool
def weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


async def log_of(state: AsyncCommonhold, session_id: str) -> list[dict[str, Any]]:
    call = Threads.messages(session_id, visibility="all")
    return [message.document async for message in state.every(call)]


async def test_session__protocol__is_met(state: AsyncCommonhold, session_id: str) -> None:
    assert isinstance(CommonholdSession(session_id, state), Session)


async def test_runner__two_runs_with_a_tool__second_sees_the_first(
    state: AsyncCommonhold, session_id: str
) -> None:
    call = function_call("weather", {"city": "Lisbon"}, call_id="call_1")
    model = ScriptedModel(
        [[call], [assistant_message("Sunny in Lisbon.")], [assistant_message("As I said.")]]
    )
    agent = Agent(name="guide", model=model, tools=[weather])
    first = await Runner.run(
        agent, "Weather?", session=CommonholdSession(session_id, state), run_config=QUIET
    )
    assert first.final_output == "Sunny in Lisbon."
    second = await Runner.run(
        agent, "Really?", session=CommonholdSession(session_id, state), run_config=QUIET
    )
    assert second.final_output == "As I said."
    assert model.last_call is not None
    kinds = [item.get("type", item.get("role")) for item in model.last_call.input]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    roles = [message["role"] for message in await log_of(state, session_id)]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_runner__streamed__keeps_the_turn(state: AsyncCommonhold, session_id: str) -> None:
    agent = Agent(name="guide", model=ScriptedModel([[assistant_message("Hello.")]]))
    session = CommonholdSession(session_id, state)
    streamed = Runner.run_streamed(agent, "Hi", session=session, run_config=QUIET)
    async for _ in streamed.stream_events():
        pass
    assert [item["role"] for item in await session.get_items()] == ["user", "assistant"]


async def test_session__same_calls__answers_like_the_sdks_own(
    state: AsyncCommonhold, session_id: str
) -> None:
    async def play(session: Any) -> list[Any]:
        seen = [await session.get_items(), await session.pop_item()]
        await session.clear_session()
        await session.add_items([])
        await session.add_items(ITEMS)
        seen += [await session.get_items(), await session.get_items(limit=2)]
        seen += [await session.pop_item(), await session.pop_item()]
        await session.add_items(ITEMS[:2])
        seen += [await session.pop_item(), await session.get_items(), await session.get_items(3)]
        await session.clear_session()
        seen += [await session.get_items(), await session.pop_item()]
        await session.add_items(ITEMS[3:5])
        return [*seen, await session.get_items(limit=9)]

    theirs = SQLiteSession(session_id)
    assert await play(CommonholdSession(session_id, state)) == await play(theirs)
    theirs.close()


async def test_session__items__come_back_as_they_were(
    state: AsyncCommonhold, session_id: str
) -> None:
    await CommonholdSession(session_id, state).add_items(ITEMS)
    again = await CommonholdSession(session_id, state).get_items()
    assert [list(item.items()) for item in again] == [list(item.items()) for item in ITEMS]


async def test_session__items_of_no_known_form__come_back_as_they_were(
    state: AsyncCommonhold, session_id: str
) -> None:
    items: list[Any] = [
        {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "opaque"},  # as EncryptedSession has it
        {"type": None},
        {"role": "assistant", "content": None},
        {"type": "function_call_output", "call_id": "c1"},
        {"type": "function_call", "name": "look"},
    ]
    session = CommonholdSession(session_id, state)
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.pop_item() == items[-1]


async def test_session__settings_limit__is_the_default(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state, session_settings=SessionSettings(limit=2))
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS[-2:]
    assert await session.get_items(limit=3) == ITEMS[-3:]


async def test_session__more_items_than_a_page__all_come(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state)
    items: list[Any] = [{"role": "user", "content": str(n)} for n in range(450)]
    await session.add_items(items)
    for _ in range(3):
        await session.pop_item()
    assert await session.get_items() == items[:447]
    assert await session.get_items(limit=205) == items[242:447]


async def test_add_items__100_at_once__loses_and_mixes_nothing(
    state: AsyncCommonhold, session_id: str
) -> None:
    async def add(n: int) -> None:
        pair: list[Any] = [{"role": "user", "content": f"{n}/{part}"} for part in "ab"]
        await CommonholdSession(session_id, state).add_items(pair)

    await asyncio.gather(*(add(n) for n in range(100)))
    said = [item["content"] for item in await CommonholdSession(session_id, state).get_items()]
    pairs = list(zip(said[::2], said[1::2], strict=True))
    assert sorted(pairs) == sorted((f"{n}/a", f"{n}/b") for n in range(100))


async def test_add_items__another_session_creates_the_thread_meanwhile__are_stored(
    state: AsyncCommonhold, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CommonholdSession(session_id, state, resource_id="customer-7")
    send = state.send

    async def send_after_the_other(request: Any) -> Any:
        if request.path == "/threads":
            monkeypatch.undo()
            await other.add_items(ITEMS[:1])
        return await send(request)

    monkeypatch.setattr(state, "send", send_after_the_other)
    await CommonholdSession(session_id, state).add_items(ITEMS[1:2])
    assert await other.get_items() == ITEMS[:2]


async def test_pop_item__50_at_once__each_gets_another(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state)
    await session.add_items([{"role": "user", "content": str(n)} for n in range(60)])
    popped = await asyncio.gather(*(session.pop_item() for _ in range(50)))
    left = await session.get_items()
    assert sorted(int(item["content"]) for item in popped) == list(range(10, 60))
    assert [int(item["content"]) for item in left] == list(range(10))


async def test_pop_item__beside_adds__nothing_lost_nothing_twice(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state)
    await session.add_items([{"role": "user", "content": f"old {n}"} for n in range(20)])
    adds = [session.add_items([{"role": "user", "content": f"new {n}"}]) for n in range(20)]
    answers = await asyncio.gather(*adds, *(session.pop_item() for _ in range(20)))
    popped = [item["content"] for item in answers if item is not None]
    left = [item["content"] for item in await session.get_items()]
    everything = [f"{age} {n}" for age in ("old", "new") for n in range(20)]
    assert len(popped) == 20
    assert sorted(popped + left) == sorted(everything)


async def test_add_items__answer_lost__retry_does_not_double(
    state: AsyncCommonhold, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = CommonholdSession(session_id, state)
    await session.add_items(ITEMS[:1])
    lost = lose_response(state, monkeypatch)
    await session.add_items(ITEMS[1:3])
    assert lost
    assert await session.get_items() == ITEMS[:3]


async def test_clear_session__thread__people_still_read_it(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state, resource_id="user-7")
    await session.add_items(ITEMS)
    await session.clear_session()
    assert await session.get_items() == []
    log = await log_of(state, session_id)
    assert [entry["content"] for entry in log[:1] + log[-1:]] == [
        "plain text",
        "The session was cleared.",
    ]
    assert (await state.threads.get(session_id)).resource_id == "user-7"


async def test_get_items__text_of_others_in_the_thread__is_an_item(
    state: AsyncCommonhold, session_id: str
) -> None:
    session = CommonholdSession(session_id, state)
    await session.add_items(ITEMS[:1])
    await state.threads.append(
        session_id,
        {"role": "user", "content": "from a person"},
        {"role": "system", "visibility": "internal", "content": "not for the model"},
    )
    assert await session.get_items() == [ITEMS[0], {"role": "user", "content": "from a person"}]


async def test_fork__thread__branches_the_session(state: AsyncCommonhold, session_id: str) -> None:
    session = CommonholdSession(session_id, state)
    await session.add_items(ITEMS)
    branch = await state.threads.fork(session_id, message_count=2)
    other = CommonholdSession(branch.id, state)
    await other.add_items(ITEMS[:1])
    assert await other.get_items() == [*ITEMS[:2], ITEMS[0]]
    assert await session.get_items() == ITEMS


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"role": "user", "content": "x"}, "items must be a list of dicts, not dict"),
        ("hi", "items must be a list of dicts, not str"),
        ([{1}], r"items\[0\] must be a dict, not set"),
    ],
)
def test_add_items__not_a_list_of_dicts__is_refused_with_its_place(
    items: Any, message: str
) -> None:
    async def add() -> None:
        async with CommonholdSession(f"s-{uuid.uuid4()}") as session:
            await session.add_items(items)

    with pytest.raises(InvalidArgument, match=f"^{message}"):
        asyncio.run(add())


def test_session__mistaken_id_or_client__is_refused_when_it_is_created() -> None:
    for session_id in (None, ""):
        with pytest.raises(InvalidArgument, match=r"^session_id must "):
            CommonholdSession(cast(str, session_id))
    with pytest.raises(InvalidArgument, match=r"^state must be an AsyncCommonhold, not Commonhold"):
        CommonholdSession("s", cast(Any, Commonhold("http://127.0.0.1:1", "t")))
