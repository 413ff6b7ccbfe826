"""The program of the guide to the change feed, on connections that end within an event."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.docs.pages import read_blocks

PAGE = "docs/guides/change-feed.md"


def event(number: int) -> bytes:
    change = {"kind": "entry.put", "namespace": "change_feed_guide", "key": "k", "version": number}
    return f"id: {number}\nevent: change\ndata: {json.dumps(change)}\n\n".encode()


class Feed(http.server.BaseHTTPRequestHandler):
    """Two events per connection, of which the second is cut off after `kept` bytes, the first time."""

    kept: int
    cut = False

    def do_GET(self) -> None:
        first = int(self.headers.get("Last-Event-ID", 0)) + 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"retry: 10\n\n" + event(first))
        last = event(first + 1)
        self.wfile.write(last if Feed.cut else last[: Feed.kept])
        Feed.cut = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("cut_in", ["event", "data"])
def test_follow__connection_ends_within_an_event__gets_each_change_once(
    tmp_path: Path, cut_in: str
) -> None:
    (program,) = [each.text for each in read_blocks(PAGE) if each.file == "follow.py"]
    (tmp_path / "follow.py").write_text(program)
    Feed.cut, Feed.kept = False, event(2).index(cut_in.encode()) + len(cut_in) + 10
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with subprocess.Popen(
            [sys.executable, "follow.py"],
            cwd=tmp_path,
            env={**os.environ, "COMMONHOLD_URL": address, "COMMONHOLD_TOKEN": "ch_secret"},
            stdout=subprocess.PIPE,
            text=True,
        ) as following:
            assert following.stdout is not None
            lines = [following.stdout.readline() for _ in range(4)]
            following.kill()
        server.shutdown()
    assert lines == [f"entry.put k {number}\n" for number in range(1, 5)]
