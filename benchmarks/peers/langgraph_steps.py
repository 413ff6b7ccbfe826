"""The steps of benchmarks/steps.py with langgraph-checkpoint-postgres; run by it (--peer).

    PYTHON langgraph_steps.py "host=… dbname=…" STEPS

A step writes three channels and a longer list of messages. A checkpoint contains every changed
channel as a whole, so the complete list is written each time.
"""

from __future__ import annotations

import random
import statistics
import sys
import time

import psycopg
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

CHANCE = random.Random(7)
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Thread:
    """The channels of one thread, saved after each step."""

    def __init__(self, saver: PostgresSaver, name: str, messages: int) -> None:
        self.saver = saver
        self.config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self.values: dict[str, object] = {"messages": []}
        self.versions: dict[str, object] = {}
        if messages:
            said = [{"role": "assistant", "content": noise(270)} for _ in range(messages)]
            held = {f"held{n}": {"text": noise(5000)} for n in range(10)}
            self.save({"messages": said, **held})

    def save(self, changes: dict[str, object]) -> None:
        self.values |= changes
        new = {name: self.saver.get_next_version(self.versions.get(name), None) for name in changes}
        self.versions |= new
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = dict(self.values)
        checkpoint["channel_versions"] = dict(self.versions)
        self.config = self.saver.put(self.config, checkpoint, {"source": "loop"}, new)

    def step(self, turn: int) -> None:
        said = [
            {"role": "user", "content": noise(70)},
            {"role": "assistant", "content": noise(270)},
        ]
        updates = {name: {"n": turn, "text": noise(100)} for name in "abc"}
        self.save({**updates, "messages": [*self.values["messages"], *said]})


def noise(length: int) -> str:
    return CHANCE.randbytes(length // 2).hex()


def size(connection: psycopg.Connection) -> int:
    total = 0
    for table in TABLES:
        connection.execute(f"VACUUM FULL {table}")
        row = connection.execute("SELECT pg_total_relation_size(%s::regclass)", [table]).fetchone()
        total += row[0]
    return total


def main() -> None:
    settings, steps = sys.argv[1], int(sys.argv[2])
    with (
        PostgresSaver.from_conn_string(settings) as saver,
        psycopg.connect(settings, autocommit=True) as connection,
    ):
        saver.setup()
        base = 0.0
        for name, messages in (("empty thread", 0), ("1,000 messages, 50 KB", 1000)):
            thread = Thread(saver, name, messages)
            for turn in range(20):
                thread.step(turn)
            before, times = size(connection), []
            for turn in range(steps):
                start = time.perf_counter()
                thread.step(turn)
                times.append((time.perf_counter() - start) * 1000)
            took, grown = statistics.median(times), (size(connection) - before) / steps
            base = base or took
            print(f"{name:34}{took:8.2f} ms{took / base:8.2f} x empty{grown:12,.0f} bytes per step")
        start = time.perf_counter()
        saver.get_tuple({"configurable": {"thread_id": name, "checkpoint_ns": ""}})
        print(f"{'read its newest':34}{(time.perf_counter() - start) * 1000:8.2f} ms")


if __name__ == "__main__":
    main()
