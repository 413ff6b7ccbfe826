from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.auth.user import User
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import (
    get_message_text,
    new_data_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster.task_store import ConcurrentTaskModificationError
from a2a.server.cluster.version import TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError
from commonhold import AsyncCommonhold, Invalid
from commonhold.a2a import CommonholdTaskStore, VersionedCommonholdTaskStore
from commonhold.threads import Threads
from fixtures import lose_response
from starlette.applications import Starlette

pytestmark = pytest.mark.anyio

URL = "http://agent"
CARD = AgentCard(
    name="guide",
    description="A scripted agent.",
    version="1",
    supported_interfaces=[
        AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
)


class Someone(User):
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self.name


def call_of(owner: str) -> ServerCallContext:
    return ServerCallContext(user=Someone(owner))


class Guide(AgentExecutor):
    """Asks a question for `book`, waits until it is cancelled for `wait`, and otherwise
    completes."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        heard = context.get_user_input()
        if heard == "book":
            await updater.requires_input(updater.new_agent_message([new_text_part("Where to?")]))
        elif heard == "wait":
            await asyncio.Event().wait()
        else:
            parts = [
                new_text_part(f"heard {heard}"),
                new_data_part({"n": 1.5, "deep": {"a": [None]}}),
            ]
            await updater.add_artifact(parts, name="answer")
            await updater.complete(updater.new_agent_message([new_text_part("Done.")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


@asynccontextmanager
async def agent(store: Any, owner: str) -> AsyncIterator[Client]:
    """The real server and client over HTTP, in process."""
    handler = DefaultRequestHandler(agent_executor=Guide(), task_store=store, agent_card=CARD)

    class Caller(DefaultServerCallContextBuilder):
        def build_user(self, request: Any) -> User:
            return Someone(owner)

    routes = create_jsonrpc_routes(handler, "/", context_builder=Caller())
    transport = httpx.ASGITransport(app=Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
        config = ClientConfig(httpx_client=http, streaming=True)
        async with ClientFactory(config).create(CARD) as client:
            yield client
    await handler.aclose()


async def say(client: Client, text: str, task: Task | None = None) -> Task:
    message = new_text_message(text, role=Role.ROLE_USER)
    message.message_id = str(uuid.uuid4())
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    found: list[str] = []
    async for response in client.send_message(SendMessageRequest(message=message)):
        found += [response.task.id, response.status_update.task_id]
    return await client.get_task(GetTaskRequest(id=next(filter(None, found))))


def made(task_id: str = "t1", context_id: str = "c1", state: int = 2, **more: Any) -> Task:
    task = Task(id=task_id, context_id=context_id, **more)
    task.status.state = state  # type: ignore[assignment]
    return task


async def test_server__a_message__task_is_kept_and_a_new_server_finds_it(
    state: AsyncCommonhold, owner: str
) -> None:
    async with agent(CommonholdTaskStore(state), owner) as client:
        task = await say(client, "hello")
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert [part.text for part in task.artifacts[0].parts] == ["heard hello", ""]
    async with agent(CommonholdTaskStore(state), owner) as client:
        assert await client.get_task(GetTaskRequest(id=task.id)) == task
        listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    assert [each.id for each in listed.tasks] == [task.id]


async def test_server__input_required__goes_on_in_another_process(
    state: AsyncCommonhold, owner: str
) -> None:
    async with agent(CommonholdTaskStore(state), owner) as client:
        asked = await say(client, "book")
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    thread_id = f"a2a:{owner}:task:{asked.id}"
    run = await state.runs.get(thread_id)
    assert (run.status, run.waiting["reason"]) == ("waiting", "user_input")
    async with agent(CommonholdTaskStore(state), owner) as client:
        done = await say(client, "Lisbon", asked)
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert (await state.runs.get(thread_id)).termination_reason == {"type": "natural_end"}
    thread = await state.threads.get(thread_id)
    assert thread.parent_thread_id == f"a2a:{owner}:context:{asked.context_id}"
    log = [message async for message in state.every(Threads.messages(thread_id))]
    assert [(message.role, message.content[0]["text"]) for message in log] == [
        ("user", "book"),
        ("assistant", "Where to?"),
        ("user", "Lisbon"),
        ("assistant", "Done."),
    ]


async def test_server__cancel__ends_the_run(state: AsyncCommonhold, owner: str) -> None:
    async with agent(CommonholdTaskStore(state), owner) as client:
        asked = await say(client, "book")
        canceled = await client.cancel_task(CancelTaskRequest(id=asked.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    run = await state.runs.get(f"a2a:{owner}:task:{asked.id}")
    assert run.termination_reason == {"type": "cancelled"}


async def test_server__other_user__sees_nothing(state: AsyncCommonhold, owner: str) -> None:
    store = CommonholdTaskStore(state)
    async with agent(store, owner) as client:
        task = await say(client, "hello")
    assert await store.get(task.id, call_of(f"{owner}-other")) is None
    listed = await store.list(ListTasksRequest(), call_of(f"{owner}-other"))
    assert (list(listed.tasks), listed.total_size) == ([], 0)


async def test_store__same_calls__answers_like_the_sdks_own(
    state: AsyncCommonhold, owner: str
) -> None:
    async def play(store: TaskStore) -> list[Any]:
        call = call_of(owner)
        seen: list[Any] = [await store.get("t1", call)]
        for n in range(7):
            task = made(f"t{n}", f"c{n % 2}", n % 3 + 1)
            task.status.timestamp.FromNanoseconds(1_700_000_000_123_456_789 + n % 5)
            if n == 6:
                task.status.ClearField("timestamp")
            task.metadata.update({"deep": {"n": [1.5, None, True]}})
            await store.save(task, call)
        task = made("t1", "c1", TaskState.TASK_STATE_WORKING)
        task.history.append(
            Message(message_id="m1", role=Role.ROLE_USER, parts=[new_text_part("✈")])
        )
        await store.save(task, call)
        await store.save(task, call)
        seen += [await store.get(f"t{n}", call) for n in range(8)]
        after = ListTasksRequest(page_size=50)
        after.status_timestamp_after.FromNanoseconds(1_700_000_000_123_456_791)
        for params in (
            ListTasksRequest(),
            ListTasksRequest(context_id="c1"),
            ListTasksRequest(status=TaskState.TASK_STATE_WORKING),
            ListTasksRequest(context_id="none"),
            after,
        ):
            seen.append(await store.list(params, call))
        token = ""
        for _ in range(4):
            page = await store.list(ListTasksRequest(page_size=2, page_token=token), call)
            seen.append(page)
            token = page.next_page_token
        assert token == ""
        with pytest.raises(InvalidParamsError):
            await store.list(ListTasksRequest(page_token="none of ours"), call)
        await store.delete("t1", call)
        await store.delete("t1", call)
        return [
            *seen,
            await store.get("t1", call),
            (await store.list(ListTasksRequest(), call)).total_size,
        ]

    assert await play(CommonholdTaskStore(state)) == await play(InMemoryTaskStore())


async def test_list__task_changes_meanwhile__has_no_task_that_the_filter_excludes(
    state: AsyncCommonhold, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, call, read = CommonholdTaskStore(state), call_of(owner), state.threads.state
    working, completed = TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED
    for task_id in ("t1", "t2"):
        await store.save(made(task_id, state=working), call)

    async def read_after_the_end(thread_id: str) -> Any:
        if thread_id.endswith("t1"):
            monkeypatch.undo()
            await store.save(made("t1", state=completed), call)
        return await read(thread_id)

    monkeypatch.setattr(state.threads, "state", read_after_the_end)
    listed = await store.list(ListTasksRequest(status=working), call)
    assert [task.id for task in listed.tasks] == ["t2"]


async def test_store__every_save__stays_readable_as_a_revision(
    state: AsyncCommonhold, owner: str
) -> None:
    store = CommonholdTaskStore(state)
    for progress in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
        await store.save(made(state=progress), call_of(owner))
    thread_id = f"a2a:{owner}:task:t1"
    now = await state.threads.state(thread_id)
    before = await state.threads.state(thread_id, revision=now.revision - 1)
    states = [each.extensions["a2a.task"]["status"]["state"] for each in (before, now)]
    assert states == ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]


async def test_store__saves_after_the_end__land_in_a_run_of_their_own(
    state: AsyncCommonhold, owner: str
) -> None:
    store, call = CommonholdTaskStore(state), call_of(owner)
    completed, working = TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_WORKING
    for progress in (completed, working, working, completed, working):
        task = made(state=progress)
        await store.save(task, call)
        assert await store.get("t1", call) == task
        assert list((await store.list(ListTasksRequest(status=progress), call)).tasks) == [task]
    assert (await store.list(ListTasksRequest(), call)).total_size == 1
    runs = await state.runs.list(thread_id=f"a2a:{owner}:task:t1")
    assert [run.status for run in runs] == ["running", "done", "done"]


async def test_store__two_save_after_the_end_at_once__share_the_next_run(
    state: AsyncCommonhold, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, call, send = CommonholdTaskStore(state), call_of(owner), state.send
    await store.save(made(state=TaskState.TASK_STATE_COMPLETED), call)

    async def send_after_the_other(request: Any) -> Any:
        if request.method == "POST" and request.path.endswith("/runs"):
            monkeypatch.undo()
            await store.save(made(state=TaskState.TASK_STATE_SUBMITTED), call)
        return await send(request)

    monkeypatch.setattr(state, "send", send_after_the_other)
    task = made(state=TaskState.TASK_STATE_WORKING)
    await store.save(task, call)
    assert await store.get("t1", call) == task
    runs = await state.runs.list(thread_id=f"a2a:{owner}:task:t1")
    assert [run.status for run in runs] == ["running", "done"]


async def test_save__50_tasks_of_one_context_at_once__all_are_there(
    state: AsyncCommonhold, owner: str
) -> None:
    store, call = CommonholdTaskStore(state), call_of(owner)
    await asyncio.gather(*(store.save(made(f"t{n}"), call) for n in range(50)))
    listed = await store.list(ListTasksRequest(context_id="c1", page_size=100), call)
    assert sorted(task.id for task in listed.tasks) == sorted(f"t{n}" for n in range(50))


async def test_versioned__100_writers_increment_at_once__none_is_lost(
    state: AsyncCommonhold, owner: str
) -> None:
    store, call = VersionedCommonholdTaskStore(state), call_of(owner)
    await store.save(made(), prev_version=TaskVersion.MISSING, context=call)
    refused = []

    async def increment(n: int) -> None:
        while True:
            held = await store.get("t1", call)
            assert held is not None
            count = dict(held.task.metadata).get("count", 0)
            held.task.metadata.update({"count": count + 1})
            try:
                await store.save(held.task, prev_version=held.version, context=call)
            except ConcurrentTaskModificationError:
                refused.append(n)
                await asyncio.sleep(random.uniform(0, 1))
            else:
                return

    await asyncio.gather(*(increment(n) for n in range(100)))
    held = await store.get("t1", call)
    assert held is not None
    assert held.task.metadata["count"] == 100
    assert refused


async def test_versioned__10_first_writers__one_wins(state: AsyncCommonhold, owner: str) -> None:
    store, call = VersionedCommonholdTaskStore(state), call_of(owner)
    outcomes = await asyncio.gather(
        *(store.save(made(), prev_version=TaskVersion.MISSING, context=call) for _ in range(10)),
        return_exceptions=True,
    )
    assert sum(isinstance(each, TaskVersion) for each in outcomes) == 1
    assert sum(isinstance(each, ConcurrentTaskModificationError) for each in outcomes) == 9


async def test_versioned__cancel__overwrites_what_goes_on_but_not_what_ended(
    state: AsyncCommonhold, owner: str
) -> None:
    store, call = VersionedCommonholdTaskStore(state), call_of(owner)
    canceled = made(state=TaskState.TASK_STATE_CANCELED)
    missing = TaskVersion.MISSING
    with pytest.raises(ConcurrentTaskModificationError):
        await store.save(canceled, prev_version=missing, context=call)
    first = await store.save(made(), prev_version=missing, context=call)
    second = await store.save(made(), prev_version=first, context=call)
    assert second.is_after(first)
    third = await store.save(canceled, prev_version=first, context=call)
    assert third.is_after(second)
    with pytest.raises(ConcurrentTaskModificationError):
        await store.save(canceled, prev_version=third, context=call)


async def test_versioned__under_the_server__serves_a_conversation(
    state: AsyncCommonhold, owner: str
) -> None:
    with pytest.warns(UserWarning, match="event_stream"):
        async with agent(VersionedCommonholdTaskStore(state), owner) as client:
            done = await say(client, "Lisbon", await say(client, "book"))
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert [get_message_text(each) for each in done.history] == ["book", "Where to?", "Lisbon"]


async def test_save__answer_lost__retry_does_not_double(
    state: AsyncCommonhold, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, call = CommonholdTaskStore(state), call_of(owner)
    await store.save(made(), call)
    lost = lose_response(state, monkeypatch)
    said = Message(message_id="m1", role=Role.ROLE_USER, parts=[new_text_part("hi")])
    await store.save(made(history=[said]), call)
    assert lost
    log = await state.threads.messages(f"a2a:{owner}:task:t1")
    assert [message.content[0]["text"] for message in log] == ["hi"]


async def test_save__state_key_missing_and_role_editor__says_who_registers_it(
    state: AsyncCommonhold, owner: str
) -> None:
    await state.request("DELETE", "/state-keys/a2a.task")
    body = {"name": owner, "role": "editor"}
    secret = (await state.request("POST", "/tokens", body))["secret"]
    async with AsyncCommonhold(os.environ["COMMONHOLD_URL"], secret) as editor:
        with pytest.raises(
            Invalid, match=r"unknown key: a2a\.task.*with a token of the role admin"
        ):
            await CommonholdTaskStore(editor).save(made(), call_of(owner))
    await CommonholdTaskStore(state).save(made(), call_of(owner))
