"""An ADK agent whose state outlives its process. Scripted, without a model."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncGenerator

from commonhold.google_adk import CommonholdSessionService
from google.adk.agents import BaseAgent, InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.genai import types


class BookingAgent(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        trips = ctx.session.state.get("user:trips", 0) + 1
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=types.Content(role="model", parts=[types.Part(text="Booked.")]),
            actions=EventActions(state_delta={"user:trips": trips}),
        )


async def main() -> None:
    user = f"user-{uuid.uuid4()}"
    for _ in range(2):  # as if in two processes
        async with CommonholdSessionService() as service:
            runner = Runner(
                app_name="travel", agent=BookingAgent(name="booker"), session_service=service
            )
            session = await service.create_session(app_name="travel", user_id=user)
            book = types.Content(role="user", parts=[types.Part(text="Book it.")])
            async for _ in runner.run_async(user_id=user, session_id=session.id, new_message=book):
                pass
            state = await service.get_user_state(app_name="travel", user_id=user)
            sys.stdout.write(f"trips so far: {state['trips']}\n")


asyncio.run(main())
