from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from commonhold import AsyncCommonhold
from commonhold.google_adk import CommonholdSessionService
from commonhold.threads import Threads
from google.adk.agents import BaseAgent, InvocationContext, LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.tools import ToolContext
from google.genai import types

pytestmark = pytest.mark.anyio


def said(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def event(text: str = "", author: str = "agent", **delta: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)]) if text else None
    actions = EventActions(state_delta={k.replace("__", ":"): v for k, v in delta.items()})
    return Event(author=author, invocation_id="i1", content=content, actions=actions)


@pytest.fixture
def service(state: AsyncCommonhold) -> CommonholdSessionService:
    return CommonholdSessionService(state)


async def read(service: BaseSessionService, session: Session, **config: Any) -> Session:
    found = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=GetSessionConfig(**config),
    )
    assert found is not None
    return found


class Script(BaseLlm):
    """A model that gives its answers in turn."""

    model: str = "script"
    answers: list[types.Part]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = self.answers.pop(0)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def book(city: str, tool_context: ToolContext) -> dict[str, str]:
    """Book."""
    tool_context.state["city"] = city
    tool_context.state["user:trips"] = tool_context.state.get("user:trips", 0) + 1
    tool_context.state["app:open"] = True
    tool_context.state["temp:scratch"] = "gone"
    return {"booked": city}


async def test_runner__agent_with_a_tool__events_and_state_are_kept(
    state: AsyncCommonhold, service: CommonholdSessionService, app_name: str
) -> None:
    call = types.Part(function_call=types.FunctionCall(name="book", args={"city": "Lisbon"}))
    agent = LlmAgent(
        name="guide",
        model=Script(answers=[call, types.Part(text="Booked.")]),
        tools=[book],
        output_key="answer",
    )
    runner = Runner(app_name=app_name, agent=agent, session_service=service)
    session = await service.create_session(app_name=app_name, user_id="u1", session_id="s1")
    heard = [
        heard
        async for heard in runner.run_async(
            user_id="u1", session_id="s1", new_message=said("Book Lisbon.")
        )
    ]
    found = await read(service, session)
    assert [each.author for each in found.events] == ["user", "guide", "guide", "guide"]
    assert found.events[1:] == heard
    assert found.state == {
        "city": "Lisbon",
        "user:trips": 1,
        "app:open": True,
        "answer": "Booked.",
    }
    log = [message async for message in state.every(Threads.messages(f"adk:{app_name}:u1:s1"))]
    assert [message.role for message in log] == ["user", "assistant", "assistant", "assistant"]
    assert [message.content[0]["type"] for message in log] == [
        "text",
        "tool_use",
        "tool_result",
        "text",
    ]


class Counting(BaseAgent):
    """A scripted agent that changes state through an event."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        count = ctx.session.state.get("count", 0) + 1
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            actions=EventActions(state_delta={"count": count}),
        )


async def test_runner__scripted_agent__second_run_sees_the_state_of_the_first(
    service: CommonholdSessionService, app_name: str
) -> None:
    runner = Runner(app_name=app_name, agent=Counting(name="counter"), session_service=service)
    session = await service.create_session(app_name=app_name, user_id="u1")
    for _ in range(2):
        async for _ in runner.run_async(
            user_id="u1", session_id=session.id, new_message=said("count")
        ):
            pass
    assert (await read(service, session)).state == {"count": 2}


async def test_service__same_calls__answers_like_the_sdks_own(
    service: CommonholdSessionService, app_name: str
) -> None:
    async def play(service: BaseSessionService) -> list[Any]:
        names = {"app_name": app_name, "user_id": "u/1"}
        first = await service.create_session(
            **names,
            session_id=" s:1 ",
            state={"a": 1, "app:b": [1], "user:c": None, "temp:d": 4, "x/y~z": {"deep": 1}},
        )
        other = await service.create_session(app_name=app_name, user_id="u2", session_id="s2")
        seen: list[Any] = [first.id, dict(first.state), dict(other.state)]
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**names, session_id="s:1")
        partial = event("half")
        partial.partial = True
        await service.append_event(first, partial)
        await service.append_event(
            first,
            event("hi", a={"replaced": 1}, app__b=None, user__c=2, temp__e=5, **{"x/y~z": {}}),
        )
        await service.append_event(other, event("ho", app__n=7, own=1))
        for session in (first, other):
            found = await read(service, session)
            seen += [found.state, [each.content for each in found.events]]
        seen += [first.state["temp:e"]]
        everybody = await service.list_sessions(app_name=app_name)
        mine = await service.list_sessions(**names)
        seen += [[(s.id, s.user_id, s.state, s.events) for s in everybody.sessions]]
        seen += [[s.id for s in mine.sessions]]
        seen += [await service.get_user_state(**names)]
        seen += [await service.get_user_state(app_name=app_name, user_id="nobody")]
        await service.delete_session(**names, session_id="s:1")
        await service.delete_session(**names, session_id="s:1")
        seen += [await service.get_session(**names, session_id="s:1")]
        seen += [(await service.list_sessions(**names)).sessions]
        again = await service.create_session(**names, session_id="s:1")
        seen += [again.state]
        with pytest.raises(SessionNotFoundError):
            await service.append_event(Session(id="none", **names), event("x"))
        return seen

    assert await play(service) == await play(InMemorySessionService())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "012345"),
        ({"num_recent_events": 0}, ""),
        ({"num_recent_events": 2}, "45"),
        ({"num_recent_events": 99}, "012345"),
        ({"after_timestamp": 103.0}, "345"),
        ({"after_timestamp": 103.0, "num_recent_events": 2}, "45"),
        ({"after_timestamp": 103.0, "num_recent_events": 5}, "345"),
    ],
)
async def test_get_session__config__filters_the_events(
    service: CommonholdSessionService, app_name: str, config: Any, expected: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    for n in range(6):
        made = event(str(n), n=n)
        made.timestamp = 100.0 + n
        await service.append_event(session, made)
    found = await read(service, session, **config)
    texts = [part.text for each in found.events for part in each.content.parts]
    assert "".join(texts) == expected
    assert found.state == {"n": 5}


async def test_append_event__100_writers__no_event_and_no_key_is_lost(
    state: AsyncCommonhold, service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")

    async def write(n: int) -> None:
        own = await read(CommonholdSessionService(state), session)
        delta = {f"k{n}": n, f"app__k{n}": n, f"user__k{n}": n}
        await CommonholdSessionService(state).append_event(own, event(str(n), **delta))

    await asyncio.gather(*(write(n) for n in range(100)))
    found = await read(service, session)
    texts = [part.text for each in found.events for part in each.content.parts]
    assert sorted(texts, key=int) == [str(n) for n in range(100)]
    everything = {f"{scope}k{n}": n for scope in ("", "app:", "user:") for n in range(100)}
    assert found.state == everything


async def test_refuse_stale__100_sessions_increment_at_once__none_is_lost(
    state: AsyncCommonhold, app_name: str
) -> None:
    service = CommonholdSessionService(state, refuse_stale=True)
    refused = []

    async def increment(n: int) -> None:
        session = await service.create_session(app_name=app_name, user_id=f"u{n}")
        while True:
            session = await read(service, session)
            count = session.state.get("app:counter", 0)
            try:
                await service.append_event(session, event(app__counter=count + 1))
            except StaleSessionError:
                refused.append(n)
                await asyncio.sleep(random.uniform(0, 1))
            else:
                return

    await asyncio.gather(*(increment(n) for n in range(100)))
    last = await service.create_session(app_name=app_name, user_id="reader")
    assert last.state["app:counter"] == 100
    assert refused


async def test_refuse_stale__another_key_moved__lands_and_learns_it(
    state: AsyncCommonhold, app_name: str
) -> None:
    service = CommonholdSessionService(state, refuse_stale=True)
    mine = await service.create_session(app_name=app_name, user_id="u1", state={"app:a": 1})
    theirs = await read(service, mine)
    await service.append_event(theirs, event(app__b=2))
    await service.append_event(mine, event(app__a=3))
    assert mine.state == {"app:a": 3, "app:b": 2}
    with pytest.raises(StaleSessionError):
        await service.append_event(theirs, event("refused", app__a=4))
    found = await read(service, mine)
    assert found.state == {"app:a": 3, "app:b": 2}
    assert len(found.events) == 2


async def test_update__on_the_server__100_increments_at_once_are_seen_by_sessions(
    state: AsyncCommonhold, service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    one = {"op": "add", "path": "/counter", "value": 1}
    await asyncio.gather(*(state.update("adk.app", app_name, one) for _ in range(100)))
    assert (await read(service, session)).state == {"app:counter": 100}


async def test_append_event__answer_lost__retry_does_not_double(
    state: AsyncCommonhold,
    service: CommonholdSessionService,
    app_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    real, lost = state._http.request, []

    async def lossy(**arguments: Any) -> httpx2.Response:
        answer = await real(**arguments)
        if not lost:
            lost.append(answer)
            raise httpx2.ReadError("the answer was lost")
        return answer

    monkeypatch.setattr(state._http, "request", lossy)
    await service.append_event(session, event("once", n=1))
    assert lost
    found = await read(service, session)
    assert (len(found.events), found.state) == (1, {"n": 1})


async def test_append_event__the_same_event_again__changes_nothing(
    service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    first = await service.append_event(session, event("once", n=1))
    await service.append_event(session, event("then", n=2))
    await service.append_event(await read(service, session), first.model_copy(deep=True))
    found = await read(service, session)
    assert (len(found.events), found.state) == (2, {"n": 2})


async def test_sessions__of_a_user__are_erasable_by_resource_id(
    state: AsyncCommonhold, service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id=f"user-of-{app_name}")
    listed = await state.threads.list(resource_id=session.user_id)
    assert [thread.metadata["adk"]["session_id"] for thread in listed] == [session.id]
