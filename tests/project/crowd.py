"""A load generator with more clients than a server can hold. Each writes to a key of its own.

Usage: python -m tests.project.crowd PORT TOKEN TOKEN. The clients use the tokens in turn. At the end, it prints the
number of responses by status. It is a process of its own, so that clients in other processes measure the server.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from contextlib import suppress

from tests.patience import PATIENCE

# More than twice as many as the writes that a web process holds (project/bridge.py).
CLIENTS, SECONDS = 1_100, 10


async def write_as_many(port: int, tokens: list[str]) -> Counter[int]:
    statuses, start = Counter[int](), time.monotonic()

    def is_over() -> bool:
        """Whether the time is over and each status was seen, which takes longer on a slow machine."""
        seen = statuses.keys() >= {200, 429, 503}
        return time.monotonic() - start > (SECONDS if seen else PATIENCE)

    async def client(number: int) -> None:
        request = (
            f"PUT /api/v1/state/counters/crowd-{number} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {tokens[number % 2]}\r\nContent-Type: application/json\r\n"
            'Content-Length: 11\r\n\r\n{"value":1}'
        )
        while not is_over():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not is_over():
                    writer.write(request.encode())
                    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                    (length,) = re.findall(r"content-length: (\d+)", head)
                    await reader.readexactly(int(length))
                    statuses[int(head.split()[1])] += 1
            writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return statuses


if __name__ == "__main__":
    port, *tokens = sys.argv[1:]
    json.dump(asyncio.run(write_as_many(int(port), tokens)), sys.stdout)
