"""An A2A agent whose tasks survive a restart: it asks the user, is restarted, and continues.
Scripted, without a model."""

from __future__ import annotations

import asyncio
import sys
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Role,
    SendMessageRequest,
    Task,
)
from commonhold.a2a import CommonholdTaskStore
from starlette.applications import Starlette

CARD = AgentCard(
    name="booker",
    description="Books trips.",
    version="1",
    supported_interfaces=[
        AgentInterface(url="http://booker", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=False),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="book", name="Book", description="Books a trip.", tags=["travel"])],
)


class BookingAgent(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.requires_input(updater.new_agent_message([new_text_part("Where to?")]))
        else:
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.complete(updater.new_agent_message([new_text_part("Booked.")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def say(text: str, task: Task | None = None) -> Task:
    """Send one message to an agent that has just been started."""
    message = new_text_message(text, role=Role.ROLE_USER)
    message.message_id = str(uuid.uuid4())
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    async with CommonholdTaskStore() as store:
        handler = DefaultRequestHandler(
            agent_executor=BookingAgent(), task_store=store, agent_card=CARD
        )
        app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app))
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(CARD)
        answers = [each async for each in client.send_message(SendMessageRequest(message=message))]
        await http.aclose()
        await handler.aclose()
    answer: Task = answers[-1].task
    said = answer.status.message.parts[0].text
    sys.stdout.write(f"{text} -> {said}\n")
    return answer


async def main() -> None:
    await say("Lisbon.", await say("Book a trip."))


asyncio.run(main())
