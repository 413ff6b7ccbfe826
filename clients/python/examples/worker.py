"""A worker that claims the work in the mailbox of a thread until there is none, and reports each result."""

from __future__ import annotations

import sys

from commonhold import Commonhold

with Commonhold.from_env() as state:
    state.threads.create("jobs")
    for task in ("book", "broken", "pay"):
        state.dispatches.enqueue("jobs", {"task": task}, max_attempts=1)
    while claimed := state.dispatches.claim(thread_id="jobs", consumer="worker-1", limit=1):
        for work in claimed:
            if work.payload["task"] == "broken":
                state.dispatches.nack(work, "I cannot do this")
            else:
                state.dispatches.ack(work)
            sys.stdout.write(f"{work.payload['task']}\n")
