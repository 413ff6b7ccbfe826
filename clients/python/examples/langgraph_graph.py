"""A LangGraph graph that waits for a person, is resumed in another process, and has a memory shared
by its threads."""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any, TypedDict

from commonhold.langgraph import CommonholdSaver, CommonholdStore
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt


class Trip(TypedDict, total=False):
    city: str
    seat: str
    booked: bool


async def recall(state: Trip, runtime: Runtime[Any]) -> Trip:
    assert runtime.store is not None
    item = await runtime.store.aget(("people", "ana"), "seat")
    return {"seat": item.value["is"] if item else "any"}


def book(state: Trip) -> Trip:
    return {"booked": interrupt(f"Book {state.get('city')}, {state.get('seat')} seat?")}


async def main() -> None:
    builder = StateGraph(Trip)
    builder.add_sequence([recall, book])
    builder.add_edge(START, "recall")
    thread: Any = {"configurable": {"thread_id": f"trip-{uuid.uuid4()}"}}

    async with CommonholdSaver.from_env() as saver, CommonholdStore.from_env() as store:
        await store.aput(("people", "ana"), "seat", {"is": "aisle"})
        graph = builder.compile(checkpointer=saver, store=store)
        stopped = await graph.ainvoke({"city": "Lisbon"}, thread)
        sys.stdout.write(f"{stopped['__interrupt__'][0].value}\n")

    # Another process, perhaps days later.
    async with CommonholdSaver.from_env() as saver, CommonholdStore.from_env() as store:
        graph = builder.compile(checkpointer=saver, store=store)
        done = await graph.ainvoke(Command(resume=True), thread)
        sys.stdout.write(f"booked: {done['booked']}\n")

        # The state before the answer can still be read, and the graph can continue from it.
        steps = [step.next async for step in graph.aget_state_history(thread)]
        sys.stdout.write(f"steps: {len(steps)}\n")

        # Concurrent increments are not lost, because the server adds.
        await asyncio.gather(
            *(
                store.aupdate(("people", "ana"), "trips", {"op": "add", "path": "/n", "value": 1})
                for _ in range(2)
            )
        )


asyncio.run(main())
