"""Real processes for the tests of the deployment: each with its own folder, port and database."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from project.env import BASE_DIR
from tests.patience import PATIENCE

T = TypeVar("T")


# The newest of them belong to the running test.
_MOST_RESERVED = 50
_reserved: deque[socket.socket] = deque()


def free_port() -> int:
    """A port on which nothing listens, and that no concurrent test gets before the server of this one
    listens: it stays bound. On Linux a server can listen on it, because servers set SO_REUSEADDR."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    port: int = reservation.getsockname()[1]
    _reserved.append(reservation)
    if len(_reserved) > _MOST_RESERVED or sys.platform != "linux":
        _reserved.popleft().close()
    return port


def wait_for(
    condition: Callable[[], T], what: str | Callable[[], str], seconds: float = PATIENCE
) -> T:
    """The first truthy result of `condition`; fails with `what` if there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    name = what() if callable(what) else what
    raise AssertionError(f"not within {seconds:.0f} s: {name}")


def run_python(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The result of Python with the data folder and only these settings."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BASE_DIR,
        env={**inherited, "COMMONHOLD_DATA_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """All descendants, in any process group or session."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        direct = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except OSError:
        return []
    return direct + [grandchild for child in direct for grandchild in children(child)]


def call_api(
    port: int,
    token: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    seconds: float = PATIENCE,
    **headers: str,
) -> tuple[int, Any]:
    """Call /api/v1 of the server on a port; returns the status and the decoded body."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    own = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        content = None if body is None else json.dumps(body)
        client.request(method, f"/api/v1{path}", content, {**own, **headers})
        response = client.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer else None
    finally:
        client.close()


class Process:
    """A program with its output in a file. It is killed with all its descendants."""

    def __init__(
        self, log: Path, *command: str | Path, env: Mapping[str, str], **options: Any
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        self.pid = self.process.pid

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_output(self, text: str) -> None:
        def seen() -> bool:
            assert text in self.output() or self.process.poll() is None, self.output()
            return text in self.output()

        wait_for(seen, f"{text!r} in {self.output()!r}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        return self.process.wait(seconds)

    def kill_all(self) -> None:
        """Kill all its processes at the end of a test. They are stopped first, so that none starts
        another, such as PostgreSQL, in place of one that is gone."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in [self.pid, *children(self.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.process.wait(PATIENCE)


class Running(Process):
    """A Python process of this project."""

    def __init__(self, folder: Path, *arguments: str, cwd: Path = BASE_DIR, **env: str) -> None:
        self.folder = folder
        port = env.get("PORT", "")
        self.port = int(port) if port.isdecimal() else 0
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("COMMONHOLD_", "DJANGO_", "PYTEST_"))
            and key not in ("DATABASE_URL", "BROKER_URL", "PORT")
        }
        name = re.sub(r"[^\w.]+", "_", arguments[-1])[:40]
        super().__init__(
            folder / f"{name}.{os.urandom(3).hex()}.log",
            *(sys.executable, *arguments),
            cwd=cwd,
            env={
                **inherited,
                "COMMONHOLD_DATA_DIR": str(folder / "data"),
                # On every machine, so that tests cover several web processes.
                "WEB_WORKERS": "2",
                # The server ends together with the tests, even if they are killed.
                "COMMONHOLD_SUPERVISOR": str(os.getpid()),
                **env,
            },
        )

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            client.putrequest("GET", path, skip_host="Host" in headers)
            for name, value in headers.items():
                client.putheader(name.replace("__", "-"), value)
            client.endheaders()
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def answers(self, path: str) -> bool:
        try:
            return self.get(path)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait_until_it_answers(self, path: str) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.output()
            return self.answers(path)

        wait_for(ready, f"{path} answers; output: {self.output()}")
