"""A TCP proxy that can lose a response: a network failure at the worst moment."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Connect = Callable[[], socket.socket]


class Proxy:
    """Listens on a port and forwards everything to what `connect` reaches.

    `lose_reply_to(text)`: the next request that contains `text` is forwarded; when its response
    arrives, so that the work is done, both connections are closed and the response is lost.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._wanted: bytes | None = None
        self.lost = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply_to(self, text: bytes) -> None:
        self.lost.clear()
        self._wanted = text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                doomed = threading.Event()
                for work in (self._requests, self._replies):
                    threading.Thread(
                        target=work, args=(client, server, doomed), daemon=True
                    ).start()

    def _requests(
        self, client: socket.socket, server: socket.socket, doomed: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while part := client.recv(65536):
                if self._wanted is not None and self._wanted in part:
                    self._wanted = None
                    doomed.set()
                server.sendall(part)
        _cut(client, server)

    def _replies(
        self, client: socket.socket, server: socket.socket, doomed: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while part := server.recv(65536):
                if doomed.is_set():
                    self.lost.set()
                    break
                client.sendall(part)
        _cut(client, server)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
