"""Compactions per second of concurrent workers, and the cost of planning a long thread.

    python -m benchmarks.compaction_jobs [--jobs 64] [--seconds 0.2]

In one process, in threads as in a worker. Each compaction summarizes a thread of 51 messages. The
model is simulated by a summarizer that waits; "extractive" uses the CPU.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from benchmarks.databases import begin, own_database

WORKERS = (1, 2, 4, 8, 16)
LENGTHS = (1_000, 10_000, 100_000)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=64)
    options.add_argument("--seconds", type=float, default=0.2)
    arguments = options.parse_args()
    with own_database():
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    actor = begin()
    from state_admin.summarizers import SUMMARIZERS, Summary

    class Waiting:
        name = "waiting"

        def summarize(self, request: Any) -> Summary:
            time.sleep(arguments.seconds)
            return Summary("A summary.", self.name, "", 0, 0, Decimal(0))

    SUMMARIZERS["waiting"] = Waiting
    print(
        f"{'workers':>8}{f'a model of {arguments.seconds:g} s':>22}{'extractive':>16}   compactions/s"
    )
    for workers in WORKERS:
        rates = [
            rate(actor, summarizer, workers, min(arguments.jobs, 16 * workers))
            for summarizer in ("waiting", "extractive")
        ]
        print(f"{workers:8}{rates[0]:22.1f}{rates[1]:16.1f}")
    plans(actor)


def rate(actor: Any, summarizer: str, workers: int, jobs: int) -> float:
    from django.db import connection

    from state_admin.models import Compaction
    from state_admin.services import compaction_jobs, compactions, messages, threads
    from tests.builders import conversation, raw

    policy = raw({"summarizer": summarizer})
    for _ in range(jobs):
        thread, _ = threads.create_thread(actor=actor, policy=policy)
        messages.append_messages(
            actor=actor,
            thread_id=thread.public_id,
            messages=[raw(body) for body in conversation(10, rounds=1, words=160)],
        )
        compactions.request_compaction(actor=actor, thread_id=thread.public_id)

    def work() -> None:
        try:
            while compaction_jobs.run_next() is not None:
                pass
        finally:
            connection.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work) for _ in range(workers)]:
            done.result()
    seconds = time.perf_counter() - began
    left = Compaction.objects.exclude(status="done").count()
    assert not left, f"{left} jobs were not done"
    return jobs / seconds


def plans(actor: Any) -> None:
    from django.db import connection

    from state_admin.models import Thread
    from state_admin.services import compactions, threads
    from tests.services.test_folds import FILL

    print(f"\n{'messages':>8}{'plan, ms':>12}")
    for length in LENGTHS:
        thread, _ = threads.create_thread(actor=actor)
        with connection.cursor() as cursor:
            cursor.execute(FILL, [thread.pk, length])
            cursor.execute("ANALYZE messages")
        Thread.objects.filter(pk=thread.pk).update(message_count=length)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            compactions.preview_compaction(actor=actor, thread_id=thread.public_id)
            times.append(time.perf_counter() - began)
        print(f"{length:8,}{statistics.median(times) * 1000:12.1f}")


if __name__ == "__main__":
    main()
