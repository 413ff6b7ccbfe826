"""A server that sends prepared bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
