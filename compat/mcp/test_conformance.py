"""The official conformance suite: the applicable scenarios against the running server, and all of
them against a server with the suite's own tools, prompts and resources on the same mount."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from carrier import carrying

HERE = Path(__file__).parent
SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SESSIONS, STATELESS = "2025-11-25", "2026-07-28"

# Needs no tool, resource or prompt of the suite.
APPLICABLE = {
    SESSIONS: {
        "server-initialize": "the handshake",
        "ping": "the handshake's era has it",
        "tools-list": "ours are tools too",
        "resources-list": "so are our resources",
        "dns-rebinding-protection": "hosts and origins are checked before all else",
    },
    STATELESS: {
        "server-stateless": "every request stands alone; five checks need tools of the suite",
        "server-sse-multiple-streams": "requests do not wait for one another",
        "tools-list": "ours are tools too",
        "resources-list": "so are our resources",
        "sep-2164-resource-not-found": "what is absent",
        "caching": "how long a list stays good; one check lists prompts, which we have none of",
        "http-header-validation": "headers must say what the body says",
        "dns-rebinding-protection": "hosts and origins are checked before all else",
    },
}
# Scenarios that need the suite's own tools.
NEEDS_THE_SUITE = (
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2549-prompts-list-caching-hints",
)


@pytest.fixture(scope="session", autouse=True)
def suite() -> None:
    if not SUITE.exists():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=HERE, check=True)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with carrying(os.environ["COMMONHOLD_URL"], os.environ["COMMONHOLD_TOKEN"]) as url:
        yield url


@pytest.fixture(scope="module")
def fixture() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = os.environ["SERVER_PYTHON"]
    process = subprocess.Popen([python, str(HERE / "fixture.py"), str(port)])
    try:
        deadline = time.monotonic() + 60
        while not accepts_connections(port):
            assert process.poll() is None, "the fixture server ended; its stderr says why"
            assert time.monotonic() < deadline, "the fixture server does not accept connections"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["node", "--import", "./node20.mjs", str(SUITE), *arguments]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300)


@functools.cache
def scenarios(era: str) -> list[str]:
    told = run("list", "--server", "--spec-version", era).stdout.splitlines()
    return [line.split()[1] for line in told if line.startswith("  - ")]


def checks(url: str, era: str, scenario: str, folder: Path) -> list[dict[str, Any]]:
    done = run(
        *("server", "--url", url, "--scenario", scenario, "--spec-version", era),
        *("--output-dir", str(folder)),
    )
    found = [json.loads(path.read_text()) for path in folder.glob("*/checks.json")]
    assert len(found) == 1, done.stdout + done.stderr
    made: list[dict[str, Any]] = found[0]
    return made


def failures(made: list[dict[str, Any]]) -> dict[str, str]:
    return {c["id"]: c.get("errorMessage", "") for c in made if c["status"] == "FAILURE"}


@pytest.mark.parametrize(
    ("era", "scenario"), [(era, name) for era, names in APPLICABLE.items() for name in names]
)
def test_the_server_conforms(server: str, tmp_path: Path, era: str, scenario: str) -> None:
    made = checks(server, era, scenario, tmp_path)

    assert any(check["status"] == "SUCCESS" for check in made)
    wrong = {name: why for name, why in failures(made).items() if name not in NEEDS_THE_SUITE}
    assert wrong == {}


@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_the_mount_conforms_in_every_scenario(fixture: str, tmp_path: Path, era: str) -> None:
    run("server", "--url", fixture, "--suite", "all", "--spec-version", era, "-o", str(tmp_path))
    made = {
        path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("*/checks.json")
    }

    assert len(made) == len(scenarios(era)) > 30
    assert {name: failures(each) for name, each in made.items() if failures(each)} == {}
