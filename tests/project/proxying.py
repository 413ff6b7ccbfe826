"""A TCP proxy that can lose a response, a network failure at the worst moment, or forward nothing, as a server
that hangs."""

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
    `hang()`: connections stay open, and nothing is forwarded until `resume()`.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._wanted: bytes | None = None
        self.lost = threading.Event()
        self._forwards = threading.Event()
        self.resume()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply_to(self, text: bytes) -> None:
        self.lost.clear()
        self._wanted = text

    def hang(self) -> None:
        self._forwards.clear()

    def resume(self) -> None:
        self._forwards.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.resume()
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
                self._forwards.wait()
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
                self._forwards.wait()
                client.sendall(part)
        _cut(client, server)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
