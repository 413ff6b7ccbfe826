"""The child process that isolation starts: validates values one by one, within limits."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys

from state_admin.domain.isolation import OUT_OF_MEMORY
from state_admin.domain.schemas import compile_schema
from state_admin.domain.values import JSON


def serve(cpu_seconds: float, memory_bytes: int) -> None:
    """The main loop: one request per line, one reply per line."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C and systemd signal all processes. This one has to finish the requests of its parent, which
    # then ends it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The timer of CPU time ends the process, even while native code is running.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    os.nice(5)
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        try:
            reply = answer(json.loads(line))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


def answer(request: dict[str, JSON]) -> JSON:
    """Validate in this process. At most `limit` faults, as [pointer, message]; with `limit` 0,
    whether the value is valid."""
    validator = compile_schema(request["schema"], mask=request["mask"])
    value = json.loads(request["value"])
    if not request["limit"]:
        return validator.accepts_here(value)
    return [[f.pointer, f.message] for f in validator.faults_here(value, request["limit"])]
