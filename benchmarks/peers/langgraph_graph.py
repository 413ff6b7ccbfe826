"""A graph with a checkpointer; run by benchmarks/checkpoints.py.

    PYTHON langgraph_graph.py postgres "host=… dbname=…" STEPS
    PYTHON langgraph_graph.py commonhold URL STEPS     (COMMONHOLD_TOKEN is set)

Each step changes three small values beside a state of 50 KB, which the first run with a server or
database stores. A checkpoint is stored before the next step starts. Prints the seconds of each step, and those of reading the newest 100 checkpoints.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from itertools import pairwise
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

CHANCE = random.Random(7)
HELD = [f"held{number}" for number in range(10)]
State = TypedDict("State", dict.fromkeys([*HELD, "a", "b", "c"], dict) | {"n": int})


def noise(length: int) -> str:
    """Return text that compresses badly."""
    return CHANCE.randbytes(length // 2).hex()


def open_saver(kind: str, where: str):
    if kind == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver

        return PostgresSaver.from_conn_string(where)
    from commonhold.langgraph import CommonholdSaver

    return CommonholdSaver.from_url(where, token=os.environ["COMMONHOLD_TOKEN"])


def main() -> None:
    kind, where, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    times = []

    def step(state: State) -> dict[str, object]:
        times.append(time.perf_counter())
        n = state["n"] + 1
        return {"n": n} | {name: {"n": n, "text": noise(100)} for name in "abc"}

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: END if state["n"] >= steps else "step")
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
    held = {name: {"text": noise(5000)} for name in HELD}
    with open_saver(kind, where) as saver:
        saver.setup()
        graph = builder.compile(checkpointer=saver)
        begun = graph.get_state(config).values
        graph.invoke({"n": 0} if begun else {"n": 0, **held}, config, durability="sync")
        times.append(time.perf_counter())
        start = time.perf_counter()
        found = list(graph.get_state_history(config, limit=100))
        history = time.perf_counter() - start
        assert len(found) >= min(100, steps + 2), len(found)
    seconds = [after - before for before, after in pairwise(times)]
    brought = len(json.dumps({name: {"n": 1, "text": noise(100)} for name in "abc"} | {"n": 1}))
    print(json.dumps({"seconds": seconds, "history": history, "brought": brought}))


if __name__ == "__main__":
    main()
