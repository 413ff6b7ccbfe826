"""Servers that are not Commonhold, and responses that are cut or have no end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from commonhold import AsyncCommonhold, Commonhold, Unreachable

from tests.loops import run

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>"


@contextmanager
def responding(*responses: bytes, end: bool = True) -> Iterator[tuple[str, list[bytes]]]:
    """A server whose connection number n gets response n, the last one all further connections. Without
    `end`, connections stay open. Yields its address and the requests."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        requests: list[bytes] = []
        accepted: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                accepted.append(connection)
                requests.append(connection.recv(65536))
                connection.sendall(responses[min(len(requests), len(responses)) - 1])
                if end:
                    connection.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        listener.shutdown(socket.SHUT_RDWR)
        for connection in accepted:
            connection.close()


def test_watch__page_of_another_server__is_an_error_although_the_page_has_no_end() -> None:
    message = r"/api/v1/changes/stream is not a stream \(200, text/html, begins with '<html>'\)"

    async def follow(url: str) -> None:
        async with AsyncCommonhold(url, "t") as state:
            await anext(state.watch(key="k"))

    with responding(PAGE, end=False) as (url, _):
        with Commonhold(url, "t") as state, pytest.raises(Unreachable, match=message):
            next(state.watch(key="k"))
        with pytest.raises(Unreachable, match=message):
            run(follow(url))
