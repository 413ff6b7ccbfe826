"""An ACP agent without a model. Its first session in every process is `s1`, and it repeats the
message. With `--loads` it can load `s1`."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import Any

from acp import (
    Agent,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.helpers import update_current_mode, update_user_message_text
from acp.schema import AgentCapabilities, PermissionOption, SessionCapabilities, ToolCallUpdate

LOADS = "--loads" in sys.argv


class Scripted(Agent):
    conn: Any

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = AgentCapabilities(load_session=LOADS, session_capabilities=SessionCapabilities())
        return InitializeResponse(protocol_version=protocol_version, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=f"s{next(self.numbers)}")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        if not LOADS or session_id != "s1":
            raise RequestError.resource_not_found(session_id)
        await self.conn.session_update(session_id, update_user_message_text("its own replay"))
        return LoadSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        await self.conn.session_update(session_id, update_current_mode(mode_id))

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        heard = " | ".join(getattr(block, "text", block.type) for block in prompt)
        if heard == "die":
            await self.conn.session_update(session_id, update_agent_message_text("I am dy"))
            await asyncio.sleep(0.2)
            os._exit(3)
        if heard == "wait":
            await self.cancelled.wait()
            return PromptResponse(stop_reason="cancelled")
        await self.conn.session_update(session_id, update_agent_thought_text("hm"))
        if heard == "use a tool":
            await self.conn.session_update(
                session_id, start_tool_call("c1", "Look it up", raw_input={"q": 1.0})
            )
            call = ToolCallUpdate(tool_call_id="c1", title="Look it up")
            option = PermissionOption(option_id="yes", name="Yes", kind="allow_once")
            answer = await self.conn.request_permission(
                session_id=session_id, tool_call=call, options=[option]
            )
            chosen = answer.outcome.option_id
            await self.conn.session_update(session_id, update_tool_call("c1", status="in_progress"))
            done = update_tool_call(
                "c1", status="completed", content=[tool_content(text_block(f"found ({chosen})"))]
            )
            await self.conn.session_update(session_id, done)
        for part in ("I heard: ", heard, "."):
            await self.conn.session_update(session_id, update_agent_message_text(part))
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Scripted()))
