from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from commonhold import AsyncCommonhold, CommonholdError, InvalidArgument
from commonhold.google_adk import CommonholdSessionService
from commonhold.threads import Threads
from fixtures import lose_response
from google.adk.agents import BaseAgent, InvocationContext, LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.tools import ToolContext
from google.adk.tools.tool_confirmation import ToolConfirmation
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
    """A model that returns its responses in order."""

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


@pytest.mark.parametrize("value", [float("nan"), "nul \0", "x" * 1_100_000])
async def test_create_session__state_is_refused__leaves_no_session(
    service: CommonholdSessionService, app_name: str, value: Any
) -> None:
    names = {"app_name": app_name, "user_id": "u1", "session_id": "s1"}
    with pytest.raises(CommonholdError):
        await service.create_session(**names, state={"app:a": 1, "b": value})
    assert await service.get_session(**names) is None
    session = await service.create_session(**names, state={"b": 2})
    assert session.state == {"b": 2}


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


async def test_get_session__deleted_while_it_is_read__is_none(
    state: AsyncCommonhold, service: CommonholdSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await service.create_session(app_name="app", user_id="u")
    names = {"app_name": "app", "user_id": "u", "session_id": session.id}
    get = state.threads.get

    async def get_before_the_deletion(thread_id: str) -> Any:
        thread = await get(thread_id)
        await service.delete_session(**names)
        return thread

    monkeypatch.setattr(state.threads, "get", get_before_the_deletion)
    assert await service.get_session(**names) is None


@pytest.mark.parametrize("before", ["the state", "the events"])
async def test_get_session__appended_while_it_is_read__has_the_state_of_its_events(
    state: AsyncCommonhold,
    service: CommonholdSessionService,
    monkeypatch: pytest.MonkeyPatch,
    app_name: str,
    before: str,
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    await service.append_event(session, event("0", n=0))
    name = {"the state": "_batch", "the events": "_newest_first"}[before]
    original = getattr(service, name)

    def after_append(*arguments: Any) -> Any:
        monkeypatch.undo()
        return append_then_read(*arguments) if name == "_batch" else append_then_list(*arguments)

    async def append_then_read(*arguments: Any) -> Any:
        await service.append_event(session, event("1", n=1))
        # The events are read first if both are read at once.
        await asyncio.sleep(0.2)
        return await original(*arguments)

    async def append_then_list(*arguments: Any) -> AsyncGenerator[Any, None]:
        await asyncio.sleep(0.2)
        await service.append_event(session, event("1", n=1))
        async for message in original(*arguments):
            yield message

    monkeypatch.setattr(service, name, after_append)
    found = await read(service, session)
    assert found.state == {"n": len(found.events) - 1}
    await service.append_event(found, event("2", n=2))


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


async def test_refuse_stale_off__100_writers__no_event_and_no_key_is_lost(
    state: AsyncCommonhold, app_name: str
) -> None:
    service = CommonholdSessionService(state, refuse_stale=False)
    session = await service.create_session(app_name=app_name, user_id="u1")

    async def write(n: int) -> None:
        own = await read(service, session)
        delta = {f"k{n}": n, f"app__k{n}": n, f"user__k{n}": n}
        await service.append_event(own, event(str(n), **delta))

    await asyncio.gather(*(write(n) for n in range(100)))
    found = await read(service, session)
    texts = [part.text for each in found.events for part in each.content.parts]
    assert sorted(texts, key=int) == [str(n) for n in range(100)]
    everything = {f"{scope}k{n}": n for scope in ("", "app:", "user:") for n in range(100)}
    assert found.state == everything


async def increment(service: CommonholdSessionService, session: Session, name: str) -> None:
    """Read, add one and append; repeat while the session is stale."""
    while True:
        session = await read(service, session)
        count = session.state.get(name, 0)
        try:
            delta = {name.replace(":", "__"): count + 1}
            await service.append_event(session, event(**delta))
        except StaleSessionError:
            await asyncio.sleep(random.uniform(0, 1))
        else:
            return


async def test_app_state__30_sessions_increment_at_once__none_is_lost(
    service: CommonholdSessionService, app_name: str
) -> None:
    sessions = [await service.create_session(app_name=app_name, user_id=f"u{n}") for n in range(30)]
    await asyncio.gather(*(increment(service, each, "app:counter") for each in sessions))
    last = await service.create_session(app_name=app_name, user_id="reader")
    assert last.state["app:counter"] == 30


async def test_append_event__20_increments_by_two_writers_at_once__none_is_lost_silently(
    service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    async with AsyncCommonhold.from_env() as other:
        services = [service, CommonholdSessionService(other)]
        for n in range(10):
            # Both read before either writes, so exactly one of each pair is refused.
            pair = [await read(each, session) for each in services]
            assert [own.state.get("count", 0) for own in pair] == [2 * n, 2 * n]
            results = await asyncio.gather(
                *(
                    each.append_event(own, event(count=2 * n + 1))
                    for each, own in zip(services, pair, strict=True)
                ),
                return_exceptions=True,
            )
            refused = [n for n, result in enumerate(results) if isinstance(result, Exception)]
            assert len(refused) == 1
            assert isinstance(results[refused[0]], StaleSessionError)
            await increment(services[refused[0]], session, "count")
    found = await read(service, session)
    assert (found.state["count"], len(found.events)) == (20, 20)


async def test_append_event__stale_session__is_refused_like_by_the_sdks_database_service(
    service: CommonholdSessionService, app_name: str, tmp_path: Path
) -> None:
    async def play(service: BaseSessionService) -> list[Any]:
        first = await service.create_session(app_name=app_name, user_id="u1", session_id="s1")
        second = await read(service, first)
        await service.append_event(first, event("one", a=1))
        seen: list[Any] = []
        # Stale with another key and without any key, too.
        for late in (event("two", b=2), event("three")):
            with pytest.raises(StaleSessionError, match="modified in storage") as caught:
                await service.append_event(second, late)
            seen += [isinstance(caught.value, ValueError), second.state, len(second.events)]
        await service.append_event(first, event("four", b=4))
        found = await read(service, first)
        await service.append_event(found, event("five"))
        return [*seen, found.state, [each.content for each in found.events]]

    async with DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/sessions.db") as database:
        assert await play(service) == await play(database)


async def test_append_event__app_state_changed_by_another_session__is_refused_by_key(
    service: CommonholdSessionService, app_name: str
) -> None:
    mine = await service.create_session(app_name=app_name, user_id="u1", state={"app:a": 1})
    theirs = await service.create_session(app_name=app_name, user_id="u2")
    await service.append_event(theirs, event(app__b=2))
    await service.append_event(mine, event(app__a=3))  # another key
    assert mine.state == {"app:a": 3, "app:b": 2}
    with pytest.raises(StaleSessionError, match=r"\(app state: /a\)"):
        await service.append_event(theirs, event("refused", app__a=4))
    found = await read(service, theirs)
    assert found.state == {"app:a": 3, "app:b": 2}
    assert len(found.events) == 1


async def test_append_event__messages_of_other_programs__do_not_make_it_stale(
    state: AsyncCommonhold, service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1", session_id="s1")
    await service.append_event(session, event("one"))
    summary = {"role": "system", "visibility": "internal", "content": "summary"}
    await state.threads.append(f"adk:{app_name}:u1:s1", summary)
    await service.append_event(session, event("two", n=1))
    await service.append_event(session, event("three", n=2))
    found = await read(service, session)
    assert (len(found.events), found.state) == (3, {"n": 2})


async def test_append_event__one_session_object__takes_events_at_once(
    service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    await asyncio.gather(*(service.append_event(session, event(str(n), n=n)) for n in range(10)))
    found = await read(service, session)
    assert found.events == session.events
    assert len(found.events) == 10


async def test_append_event__session_built_from_json__is_compared_by_its_last_event(
    service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1", state={"n": 0})

    def copy(session: Session) -> Session:
        return Session.model_validate_json(session.model_dump_json())

    before = copy(session)
    await service.append_event(copy(session), event("one", n=1))
    with pytest.raises(StaleSessionError):
        await service.append_event(before, event("late", n=2))
    after = copy(await read(service, session))
    await service.append_event(after, event("two", n=3))
    await service.append_event(after, event("three", n=4))
    found = await read(service, session)
    assert (found.state, len(found.events)) == ({"n": 4}, 3)


async def test_last_update_time__is_the_timestamp_of_the_newest_event(
    service: CommonholdSessionService, app_name: str
) -> None:
    names = {"app_name": app_name, "user_id": "u1"}
    session = await service.create_session(**names, session_id="old")
    created = session.last_update_time
    assert created <= time.time()
    assert await read(service, session) == session
    for timestamp in (created + 10, 1700000000.123):  # in the future, and in the past
        made = event("hi", n=1)
        made.timestamp = timestamp
        await service.append_event(session, made)
        assert session.last_update_time == timestamp
        assert await read(service, session) == session
        assert (await read(service, session, num_recent_events=0)).last_update_time == timestamp
        (listed,) = (await service.list_sessions(**names)).sessions
        assert listed.last_update_time == timestamp


async def test_append_event__every_kind_of_field__comes_back_equal(
    service: CommonholdSessionService, app_name: str
) -> None:
    session = await service.create_session(app_name=app_name, user_id="u1")
    image = types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")
    confirmation = ToolConfirmation(hint="really?", payload={"album": 1})
    full = Event(
        invocation_id="i1",
        author="user",
        content=types.Content(role="user", parts=[types.Part(text="look"), image]),
        turn_complete=True,
        partial=False,
        interrupted=True,
        error_code="E1",
        error_message="nothing works",
        long_running_tool_ids={"tool1"},
        custom_metadata={"key": ["value"]},
        timestamp=1730613600.123,
        grounding_metadata=types.GroundingMetadata(
            web_search_queries=["lisbon"],
            search_entry_point=types.SearchEntryPoint(sdk_blob=b"\xfe"),
        ),
        usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=2),
        input_transcription=types.Transcription(text="heard", finished=True),
        actions=EventActions(
            artifact_delta={"file": 0},
            transfer_to_agent="guide",
            escalate=True,
            requested_tool_confirmations={"call1": confirmation},
        ),
    )
    await service.append_event(session, full)
    found = await read(service, session)
    assert found == session
    assert found.events == [full]


async def test_list_sessions__with_more_state_than_a_response_has__are_complete(
    service: CommonholdSessionService, app_name: str
) -> None:
    names = {"app_name": app_name, "user_id": "u1"}
    await service.create_session(**names, session_id="0", state={"app:text": "x" * 900_000})
    for number in range(1, 40):
        await service.create_session(**names, session_id=str(number))
    sessions = (await service.list_sessions(**names)).sessions
    assert len(sessions) == 40
    assert all(len(session.state["app:text"]) == 900_000 for session in sessions)


async def test_list_sessions__are_ordered_by_last_update_time(
    service: CommonholdSessionService, app_name: str
) -> None:
    names = {"app_name": app_name, "user_id": "u1"}
    sessions = [await service.create_session(**names, session_id=each) for each in "abcd"]
    latest = event("now")
    latest.timestamp = sessions[-1].last_update_time + 10
    oldest = event("long ago")
    oldest.timestamp = 100.0
    await service.append_event(sessions[0], latest)
    await service.append_event(sessions[2], oldest)
    listed = (await service.list_sessions(**names)).sessions
    assert [each.id for each in listed] == ["c", "b", "d", "a"]


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
    lost = lose_response(state, monkeypatch)
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


@pytest.mark.parametrize("name", ["app_name", "user_id"])
@pytest.mark.parametrize("value", [None, ""])
def test_create_session__name_missing__is_refused(name: str, value: Any) -> None:
    async def create() -> None:
        async with CommonholdSessionService() as service:
            await service.create_session(**{"app_name": "app", "user_id": "u", name: value})

    with pytest.raises(InvalidArgument, match=f"^{name} must "):
        asyncio.run(create())
