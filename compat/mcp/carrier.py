"""A proxy that adds the token: the conformance suite has no way to send one."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit


class Carrier(ThreadingHTTPServer):
    """Forwards every request with its own Host and Origin, and streams the response back."""

    daemon_threads = True

    def __init__(self, target: str, token: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.token = urlsplit(target).netloc, token

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    server: Carrier

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        upstream = http.client.HTTPConnection(self.server.target, timeout=60)
        with contextlib.closing(upstream), contextlib.suppress(OSError):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "connection":
                    upstream.putheader(name, value)
            upstream.putheader("Authorization", f"Bearer {self.server.token}")
            upstream.endheaders(body)
            answer = upstream.getresponse()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()

    do_POST = do_GET = do_DELETE = pass_on

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def carrying(target: str, token: str) -> Iterator[str]:
    """Yield the URL at which `target`'s /mcp can be used without a token."""
    server = Carrier(target, token)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
