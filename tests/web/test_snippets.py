"""The code that pages show for copying: the Python code sends the same requests as the commands."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from django.test import Client

from tests.builders import Person, make_namespace, make_thread, put

CLIENT = Path(__file__).parents[2] / "clients/python/src"
PAGES = [
    "/audit", "/changes", "/compactions", "/config/models", "/inbox", "/mailbox", "/namespaces",
    "/policies", "/reverts", "/runs", "/state-keys", "/state", "/threads", "/usage", "/webhooks",
    "/plugins/+install",
]  # fmt: skip


class Sent(NamedTuple):
    method: str
    path: str
    body: Any
    match: str = ""


@pytest.fixture
def received(settings: Any) -> Iterator[list[Sent]]:
    """What a server at SITE_URL receives. It returns an empty object."""
    found: list[Sent] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            match = self.headers["If-Match"] or self.headers["If-None-Match"] or ""
            # The client adds parameters that make a repetition safe.
            path = unquote(urlsplit(self.path).path)
            document = body and json.loads(body)
            if "plugins" in path:
                document.pop("namespaces")  # empty
            found.append(Sent(self.command, path, document, match))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_PUT = do_POST = do_PATCH = respond  # noqa: N815  # names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.SITE_URL = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()


def run_python(code: str) -> None:
    """Run a program. It fails after its requests, because the responses are not what they should be."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENT), "COMMONHOLD_TOKEN": "ch_x"}
    for statement in split_statements(code):
        subprocess.run(
            [sys.executable, "-c", statement],
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )


def split_statements(code: str) -> list[str]:
    """A program for each of the statements that use the client."""
    head, _, rest = code.rpartition('os.environ["COMMONHOLD_TOKEN"])\n')
    head += 'os.environ["COMMONHOLD_TOKEN"])\n'
    if rest.startswith("with"):
        return [head + rest]
    return [head + line for line in rest.splitlines()]


def read_commands(text: str) -> list[Sent]:
    """The requests of curl commands."""
    found = []
    for command in text.split("\n\n"):
        words = shlex.split(command.replace("\\\n", " "))
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        body = json.loads(words[words.index("-d") + 1]) if "-d" in words else b""
        match = [
            word.partition(": ")[2] for word in words if word.startswith(("If-Match", "If-None"))
        ]
        path = unquote(urlsplit(words[-1]).path)
        found.append(Sent(method, path, body, *match))
    return found


@pytest.mark.parametrize("path", PAGES)
def test_empty_page__python__sends_what_curl_sends(
    admin: Client, received: list[Sent], path: str
) -> None:
    response = admin.get(path)
    assert response.status_code == 200
    run_python(response.context["python"])
    assert received == read_commands(response.context["curl"])


@pytest.mark.parametrize("value", [{"a": [1, True, None, "it's"]}, 1.5])
def test_entry__python__sends_what_curl_sends(
    admin: Client, alice: Person, received: list[Sent], value: Any
) -> None:
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "it's", value)
    shown = dict(admin.get("/state/team/it's?tab=code").context["snippets"])
    for verb in ("Read with {}", "Write with {} if unchanged"):
        received.clear()
        run_python(shown[verb.format("Python")])
        assert received == read_commands(shown[verb.format("curl")])


def test_thread__python__sends_what_curl_sends(
    admin: Client, alice: Person, received: list[Sent]
) -> None:
    make_thread(alice.actor, "it's")
    context = admin.get("/threads/it's").context
    for kind in ("", "append_"):
        received.clear()
        run_python(context[f"{kind}python"])
        assert received == read_commands(context[f"{kind}curl"])
