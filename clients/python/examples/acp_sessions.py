"""An editor and an ACP agent that stores nothing; the bridge between them stores the session.
Scripted, without a model.

`python acp_sessions.py` is the editor; it starts `commonhold acp -- python acp_sessions.py agent`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, cast

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    spawn_agent_process,
    text_block,
    update_agent_message_text,
)


class StatelessAgent:
    """The methods of acp.Agent that this program needs; the library calls no others."""

    conn: Any

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="the-only-one")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        heard = f"I heard: {prompt[-1].text}"
        await self.conn.session_update(session_id, update_agent_message_text(heard))
        return PromptResponse(stop_reason="end_turn")


class Editor:
    """The methods of acp.Client that this program needs."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.heard.append(update.content.text)


def start_agent(editor: Editor) -> Any:
    bridge = ["-m", "commonhold", "acp", "--", sys.executable, __file__, "agent"]
    return spawn_agent_process(cast(Any, editor), sys.executable, *bridge, env=dict(os.environ))


async def main() -> None:
    async with start_agent(Editor()) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[text_block("Lisbon")])
    editor = Editor()
    async with start_agent(editor) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        await agent.load_session(cwd=os.getcwd(), session_id=session.session_id, mcp_servers=[])
    sys.stdout.write(f"heard again: {' / '.join(editor.heard)}\n")


asyncio.run(run_agent(cast(Any, StatelessAgent())) if "agent" in sys.argv else main())
