"""Two runs of an OpenAI agent, as if in two processes, share one session. Scripted, without a
model."""

from __future__ import annotations

import asyncio
import sys
import uuid

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from commonhold.openai_agents import CommonholdSession


async def ask(session_id: str, question: str, answer: str) -> None:
    model = ScriptedModel([[assistant_message(answer)]])
    agent = Agent(name="guide", model=model)
    async with CommonholdSession(session_id) as session:
        run = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, question, session=session, run_config=run)
    seen = len(model.calls[0].input)
    sys.stdout.write(f"{question} -> {result.final_output} (the model saw {seen} items)\n")


async def main() -> None:
    session_id = f"trip-{uuid.uuid4()}"
    await ask(session_id, "Where to?", "Lisbon.")
    await ask(session_id, "Why?", "The light.")


asyncio.run(main())
