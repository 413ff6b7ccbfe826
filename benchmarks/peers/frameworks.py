"""Session and state stores of agent frameworks, called in this process; run by
benchmarks/comparison.py.

    PYTHON frameworks.py SOCKET_FOLDER USER DATABASE

It has one caller per connection, and a connection pool of that size. Each line of input is a
request `{"peer": …, "row": …, "connections": …, "seconds": …}`, each line of output its measurement
or `{"missing": reason}`. The first line of output lists the rows of each peer.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import random
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

CHANCE = random.Random(7)
WARM_UP_SECONDS = 0.3
KEYS = 1024

# (number of the caller, number of its call)
Call = Callable[[int, int], Awaitable[Any]]
Open = Callable[[str, str, int], Any]


def text(length: int) -> str:
    return CHANCE.randbytes(length // 2 + 1).hex()[:length]


def value() -> dict[str, Any]:
    return {"goal": "Ship the feature", "n": 0, "text": text(974)}


def step(turn: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    updates = {name: {"n": turn, "text": text(100)} for name in "abc"}
    messages = [{"role": "user", "content": text(70)}, {"role": "assistant", "content": text(270)}]
    return updates, messages


def long_thread() -> list[dict[str, Any]]:
    return [{"role": "user", "content": text(270)} for _ in range(1000)]


def pick_key(caller: int, turn: int) -> str:
    return f"k{caller + 32 * (turn % 32)}"


def engine_url(settings: str) -> str:
    host, user, name = (word.partition("=")[2] for word in settings.split())
    return f"postgresql+asyncpg://{user}@/{name}?host={quote(host)}"


# LangGraph -----------------------------------------------------------------------------------


@asynccontextmanager
async def open_langgraph_store(settings: str, row: str, callers: int) -> AsyncIterator[Call]:
    from langgraph.store.base import GetOp, PutOp
    from langgraph.store.postgres.aio import AsyncPostgresStore

    pool = {"min_size": 1, "max_size": callers}
    async with AsyncPostgresStore.from_conn_string(settings, pool_config=pool) as store:
        await store.setup()
        space, held = ("bench",), value()
        keys = [f"k{n}" for n in range(KEYS)]
        await store.abatch([PutOp(space, key, held) for key in keys])
        calls: dict[str, Call] = {
            "read an entry": lambda c, turn: store.aget(space, pick_key(c, turn)),
            "write an entry": lambda c, turn: store.aput(
                space, pick_key(c, turn), held | {"n": turn}
            ),
            "batch of 100 reads": lambda c, turn: store.abatch(
                [GetOp(space, key) for key in keys[c * 28 : c * 28 + 100]]
            ),
            "batch of 100 writes": lambda c, turn: store.abatch(
                [PutOp(space, key, held | {"n": turn}) for key in keys[c * 28 : c * 28 + 100]]
            ),
        }
        yield calls[row]


@asynccontextmanager
async def open_langgraph_saver(settings: str, row: str, callers: int) -> AsyncIterator[Call]:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = AsyncConnectionPool(settings, min_size=1, max_size=callers, kwargs=options, open=False)
    async with pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        threads: list[dict[str, Any]] = []

        async def save(thread: dict[str, Any], changes: dict[str, Any]) -> None:
            thread["values"] |= changes
            versions = thread["versions"]
            new = {name: saver.get_next_version(versions.get(name), None) for name in changes}
            versions |= new
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = dict(thread["values"])
            checkpoint["channel_versions"] = dict(versions)
            thread["config"] = await saver.aput(
                thread["config"], checkpoint, {"source": "loop"}, new
            )

        async def commit(caller: int, turn: int) -> None:
            updates, messages = step(turn)
            thread = threads[caller]
            # A channel is stored as a whole: the list includes all previous items.
            await save(
                thread, {**updates, "messages": [*thread["values"].get("messages", []), *messages]}
            )

        for _ in range(callers):
            config = {"configurable": {"thread_id": uuid.uuid4().hex, "checkpoint_ns": ""}}
            threads.append({"config": config, "values": {}, "versions": {}})
            if row != "commit of a step":
                held = {f"held{n}": {"text": text(5000)} for n in range(10)}
                await save(threads[-1], {"messages": long_thread(), **held})
        yield commit


# Google ADK ----------------------------------------------------------------------------------


@asynccontextmanager
async def open_adk(settings: str, row: str, callers: int) -> AsyncIterator[Call]:
    from google.adk.events import Event, EventActions
    from google.adk.sessions import DatabaseSessionService
    from google.genai import types

    service = DatabaseSessionService(engine_url(settings), pool_size=callers, max_overflow=0)
    named = {"app_name": "bench", "user_id": "u"}
    sessions = [await service.create_session(**named, state=value()) for _ in range(callers)]

    async def append(caller: int, author: str, words: str, state: dict[str, Any]) -> None:
        content = types.Content(role=author, parts=[types.Part(text=words)]) if words else None
        event = Event(
            author=author,
            invocation_id="i",
            content=content,
            actions=EventActions(state_delta=state),
        )
        await service.append_event(sessions[caller], event)

    async def commit(caller: int, turn: int) -> None:
        updates, messages = step(turn)
        await append(caller, "user", messages[0]["content"], {})
        await append(caller, "model", messages[1]["content"], updates)

    async def read(caller: int, turn: int) -> None:
        await service.get_session(**named, session_id=sessions[caller].id)

    async def write(caller: int, turn: int) -> None:
        await append(caller, "model", "", value() | {"n": turn})

    calls = {"read an entry": read, "write an entry": write, "commit of a step": commit}
    yield calls[row]
    await service.db_engine.dispose()


# OpenAI Agents SDK ---------------------------------------------------------------------------


@asynccontextmanager
async def open_openai(settings: str, row: str, callers: int) -> AsyncIterator[Call]:
    from agents.extensions.memory import SQLAlchemySession
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(engine_url(settings), pool_size=callers, max_overflow=0)
    sessions = [
        SQLAlchemySession(uuid.uuid4().hex, engine=engine, create_tables=True)
        for _ in range(callers)
    ]
    for session in sessions:
        await session.add_items(step(0)[1])
    yield lambda caller, turn: sessions[caller].add_items(step(turn)[1])
    await engine.dispose()


# Agno ----------------------------------------------------------------------------------------


@asynccontextmanager
async def open_agno(settings: str, row: str, callers: int) -> AsyncIterator[Call]:
    from agno.db.base import SessionType
    from agno.db.postgres import AsyncPostgresDb
    from agno.models.message import Message
    from agno.run.agent import RunOutput
    from agno.session.agent import AgentSession
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(engine_url(settings), pool_size=callers, max_overflow=0)
    store = AsyncPostgresDb(db_engine=engine, db_schema="agno")
    names = [uuid.uuid4().hex for _ in range(callers)]

    async def write(caller: int, state: dict[str, Any]) -> None:
        session = AgentSession(
            names[caller],
            agent_id="bench",
            session_data={"session_state": state},
            created_at=int(time.time()),
        )
        # It returns None after an error.
        assert await store.upsert_session(session) is not None

    async def commit(caller: int, turn: int) -> None:
        updates, messages = step(turn)
        await write(caller, updates)
        run = RunOutput(
            run_id=uuid.uuid4().hex,
            agent_id="bench",
            session_id=names[caller],
            messages=[Message(**message) for message in messages],
        )
        await store.upsert_run(run, names[caller], run_index=turn)

    for caller in range(callers):
        await write(caller, value())
    calls: dict[str, Call] = {
        "read an entry": lambda c, turn: store.get_session(names[c], SessionType.AGENT),
        "write an entry": lambda c, turn: write(c, value() | {"n": turn}),
        "commit of a step": commit,
    }
    yield calls[row]
    await engine.dispose()


# ---------------------------------------------------------------------------------------------

ENTRY = ["read an entry", "write an entry"]
STEP = "commit of a step"
PEERS: dict[str, tuple[str, Open, list[str]]] = {
    "LangGraph AsyncPostgresStore": (
        "langgraph-checkpoint-postgres",
        open_langgraph_store,
        [*ENTRY, "batch of 100 reads", "batch of 100 writes"],
    ),
    "LangGraph AsyncPostgresSaver": (
        "langgraph-checkpoint-postgres",
        open_langgraph_saver,
        [STEP, "commit, 1,000 messages and 50 KB before"],
    ),
    "Google ADK DatabaseSessionService": ("google-adk", open_adk, [*ENTRY, STEP]),
    "OpenAI Agents SQLAlchemySession": ("openai-agents", open_openai, [STEP]),
    "Agno AsyncPostgresDb": ("agno", open_agno, [*ENTRY, STEP]),
}


async def measure(settings: str, order: dict[str, Any]) -> dict[str, Any]:
    opened = PEERS[order["peer"]][1]
    async with opened(settings, order["row"], order["connections"]) as call:
        start = time.perf_counter() + WARM_UP_SECONDS
        end = start + order["seconds"]
        latencies: list[float] = []

        async def work(caller: int) -> None:
            turn = 0
            while (began := time.perf_counter()) < end or not latencies:
                await call(caller, turn)
                turn += 1
                if began >= start:
                    latencies.append(time.perf_counter() - began)

        await asyncio.gather(*(work(caller) for caller in range(order["connections"])))
        return {"latencies": latencies, "seconds": time.perf_counter() - start}


def main() -> None:
    host, user, name = sys.argv[1:]
    settings = f"host={host} user={user} dbname={name}"
    # Libraries may print; their output must not mix with the results.
    answers, sys.stdout = sys.stdout, sys.stderr
    found = {}
    for title, (package, _, rows) in PEERS.items():
        try:
            found[title] = {"version": importlib.metadata.version(package), "rows": rows}
        except importlib.metadata.PackageNotFoundError:
            found[title] = {"missing": f"{package} is not installed", "rows": rows}
    print(json.dumps(found), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = asyncio.run(measure(settings, json.loads(line)))
        except Exception as error:  # the other measurements still run
            answer = {"missing": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
