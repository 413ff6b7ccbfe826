from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from acp import Client, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse
from commonhold import AsyncCommonhold
from commonhold.threads import Threads

pytestmark = pytest.mark.anyio

AGENT = str(Path(__file__).with_name("scripted_agent.py"))


@dataclass
class Editor(Client):
    """An editor that records updates as `kind: text` and sends prompts."""

    heard: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    agent: Any = None
    process: Any = None
    able: Any = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.sessions.add(session_id)
        content = getattr(update, "content", None)
        said = getattr(content, "text", None) or getattr(update, "status", None) or ""
        self.heard.append(f"{update.session_update}: {said}")

    async def request_permission(self, session_id: str, **_: Any) -> RequestPermissionResponse:
        self.sessions.add(session_id)
        outcome = AllowedOutcome(outcome="selected", option_id="yes")
        return RequestPermissionResponse(outcome=outcome)

    async def say(self, session_id: str, text: str) -> str:
        answer = await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])
        return str(answer.stop_reason)


@asynccontextmanager
async def editor(
    *arguments: str, bridge: tuple[str, ...] = (), **environment: str
) -> AsyncIterator[Editor]:
    """Connect the real client to the real command, which runs the scripted agent."""
    client = Editor()
    command = ["-m", "commonhold", "acp", *bridge, "--", sys.executable, AGENT, *arguments]
    async with spawn_agent_process(
        client,
        sys.executable,
        *command,
        env={**os.environ, **environment},
        transport_kwargs={"stderr": None},
    ) as (agent, process):
        client.agent, client.process = agent, process
        client.able = (await agent.initialize(protocol_version=1)).agent_capabilities
        yield client


async def begin(client: Editor) -> str:
    return str((await client.agent.new_session(cwd="/work", mcp_servers=[])).session_id)


async def log_of(state: AsyncCommonhold, session_id: str) -> list[Any]:
    return [m async for m in state.every(Threads.messages(session_id, visibility="all"))]


FIRST = ["agent_thought_chunk: hm", "agent_message_chunk: I heard: hello."]


async def test_session__a_turn__is_in_the_thread_when_the_prompt_returns(
    state: AsyncCommonhold,
) -> None:
    async with editor() as client:
        session_id = await begin(client)
        assert await client.say(session_id, "hello") == "end_turn"
        log = await log_of(state, session_id)
        assert client.heard[-3:] == [
            f"agent_message_chunk: {t}" for t in ("I heard: ", "hello", ".")
        ]
        assert client.sessions == {session_id}
    assert [(message.role, message.visibility) for message in log] == [
        ("user", "all"),
        ("assistant", "internal"),
        ("assistant", "all"),
    ]
    assert log[1].content == [{"type": "thinking", "thinking": "hm"}]
    assert log[2].content == [{"type": "text", "text": "I heard: hello."}]
    thread = await state.threads.get(session_id)
    assert thread.metadata["acp"]["cwd"] == "/work"
    assert thread.metadata["acp"]["agent_session_id"] == "s1"


async def test_session_load__in_a_new_process__replays_and_tells_the_agent(
    state: AsyncCommonhold,
) -> None:
    async with editor() as client:
        session_id = await begin(client)
        await client.say(session_id, "hello")
    async with editor() as client:
        assert client.able.load_session is True
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert client.heard == ["user_message_chunk: hello", *FIRST]
        await client.say(session_id, "and now?")
        await client.say(session_id, "again")
        answers = [
            m.content[0]["text"]
            for m in await log_of(state, session_id)
            if m.role == "assistant" and m.visibility == "all"
        ]
    told = "What was said in this session before, for your information:\n\n"
    assert answers[1] == f"I heard: {told}user: hello\n\nassistant: I heard: hello. | and now?."
    assert answers[2] == "I heard: again."


async def test_session_load__recall_0__tells_the_agent_nothing() -> None:
    async with editor() as client:
        session_id = await begin(client)
        await client.say(session_id, "hello")
    async with editor(bridge=("--recall", "0")) as client:
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        await client.say(session_id, "and now?")
        assert client.heard[-2:] == ["agent_message_chunk: and now?", "agent_message_chunk: ."]


async def test_session_load__agent_can_load__is_asked_and_not_heard_twice() -> None:
    async with editor("--loads") as client:
        session_id = await begin(client)
        await client.say(session_id, "hello")
    async with editor("--loads") as client:
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert client.heard == ["user_message_chunk: hello", *FIRST]
        await client.say(session_id, "and now?")
        assert client.heard[-2:] == ["agent_message_chunk: and now?", "agent_message_chunk: ."]


async def test_session_load__agent_has_forgotten_it__begins_anew_from_the_thread() -> None:
    async with editor("--loads") as client:
        await begin(client)
        session_id = await begin(client)  # the agent's `s2`, which it cannot load
        await client.say(session_id, "hello")
    async with editor("--loads") as client:
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert client.heard == ["user_message_chunk: hello", *FIRST]
        assert await client.say(session_id, "and now?") == "end_turn"
        assert any("user: hello" in heard for heard in client.heard)


async def test_session_load__unknown__is_refused() -> None:
    async with editor() as client:
        for unknown in ("acp-unknown", "s1"):
            with pytest.raises(RequestError, match="session not found") as refused:
                await client.agent.load_session(cwd="/", session_id=unknown, mcp_servers=[])
            assert refused.value.code == -32002


async def test_tool_call__with_permission__comes_back_whole_and_as_a_pair(
    state: AsyncCommonhold,
) -> None:
    async with editor() as client:
        session_id = await begin(client)
        await client.say(session_id, "use a tool")
        heard = [each for each in client.heard if each.startswith("tool")]
        assert client.sessions == {session_id}
    log = await log_of(state, session_id)
    call = next(message for message in log if message.tool_calls)
    result = next(message for message in log if message.role == "tool")
    assert call.tool_calls[0]["function"] == {"name": "Look it up", "arguments": '{"q":1.0}'}
    assert (result.tool_call_id, result.content[0]["text"]) == ("c1", "found (yes)")
    async with editor() as client:
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert [each for each in client.heard if each.startswith("tool")] == heard


async def test_session_list__is_served_from_the_threads() -> None:
    async with editor() as client:
        mine = [await begin(client), await begin(client)]
        assert client.able.session_capabilities.list is not None
        listed = await client.agent.list_sessions(cwd="/work")
        assert {each.session_id for each in listed.sessions} >= set(mine)
        assert (await client.agent.list_sessions(cwd="/elsewhere")).sessions == []


async def test_cancel_and_mode__reach_the_agent_under_its_own_id() -> None:
    async with editor() as client:
        session_id = await begin(client)
        await client.agent.set_session_mode(session_id=session_id, mode_id="plan")
        turn = asyncio.create_task(client.say(session_id, "wait"))
        await client.agent.cancel(session_id=session_id)
        assert await turn == "cancelled"
        assert client.heard == ["current_mode_update: "]


async def test_agent_dies_in_a_turn__what_it_said_is_kept(state: AsyncCommonhold) -> None:
    async with editor() as client:
        session_id = await begin(client)
        with pytest.raises(ConnectionError):
            await client.say(session_id, "die")
        assert await client.process.wait() == 3
    log = await log_of(state, session_id)
    assert [message.content[0]["text"] for message in log] == ["die", "I am dy"]


async def test_session_load__in_the_same_process__also_replays_what_is_not_yet_in_the_thread() -> (
    None
):
    async with editor() as client:
        session_id = await begin(client)
        await client.agent.set_session_mode(session_id=session_id, mode_id="plan")
        assert client.heard == ["current_mode_update: "]
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert client.heard == ["current_mode_update: "] * 2


async def test_session_load__in_two_editors_at_once__each_turn_is_kept_whole(
    state: AsyncCommonhold,
) -> None:
    async with editor() as first, editor() as second:
        session_id = await begin(first)
        await second.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        both = [each.say(session_id, f"{n}") for n in range(10) for each in (first, second)]
        await asyncio.gather(*both)
    log = await log_of(state, session_id)
    said = [message.content[0]["text"] for message in log if message.role == "user"]
    assert sorted(said, key=int) == [str(n) for n in range(10) for _ in range(2)]


async def test_text_of_others__in_the_thread__is_replayed(state: AsyncCommonhold) -> None:
    async with editor() as client:
        session_id = await begin(client)
    await state.threads.append(
        session_id,
        {"role": "assistant", "content": "a note from a colleague"},
        {"role": "system", "visibility": "internal", "content": "not for editors"},
    )
    async with editor() as client:
        await client.agent.load_session(cwd="/work", session_id=session_id, mcp_servers=[])
        assert client.heard == ["agent_message_chunk: a note from a colleague"]


async def test_prompt__too_large_to_keep__goes_on_and_keeps_the_rest(
    state: AsyncCommonhold,
) -> None:
    async with editor() as client:
        session_id = await begin(client)
        assert await client.say(session_id, "x" * (9 << 20)) == "end_turn"
        assert await client.say(session_id, "hello") == "end_turn"
    said = [message for message in await log_of(state, session_id) if message.role == "user"]
    assert [message.content[0]["text"] for message in said] == ["hello"]


async def test_session_new__no_server__is_refused_with_the_reason() -> None:
    async with editor(COMMONHOLD_URL="http://127.0.0.1:9") as client:
        with pytest.raises(
            RequestError,
            match=r"^commonhold: no response from http://127.0.0.1:9 to POST /threads: ",
        ):
            await begin(client)


def test_command__agent_that_does_not_exist__says_so() -> None:
    command = [sys.executable, "-m", "commonhold", "acp", "--", "no-such-agent"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "commonhold: no-such-agent: No such file or directory\n",
    )
