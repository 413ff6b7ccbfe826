"""What docs/guides/mailbox.md shows works as written: its commands and its worker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from state_admin.models import Dispatch
from tests.builders import Person, make_thread
from tests.contract.guides import run_commands
from tests.project.running import wait_for
from tests.services.test_dispatches import enqueue, status

GUIDE = (Path(__file__).parents[2] / "docs/guides/mailbox.md").read_text()

pytestmark = pytest.mark.django_db(transaction=True)


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def environment(alice: Person, live_server: Any) -> dict[str, str]:
    return {
        **os.environ,
        "no_proxy": "*",
        "TOKEN": alice.token,
        "URL": f"{live_server.url}/api/v1",
    }


@pytest.fixture
def worker(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", block("python")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_guide__commands__succeed(alice: Person, live_server: Any) -> None:
    done = run_commands(block("sh"), token=alice.token, url=live_server.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Dispatch.objects.get().status == "Acked"


def test_guide__worker__does_what_it_can_and_buries_the_rest(
    alice: Person, worker: subprocess.Popen[str]
) -> None:
    make_thread(alice.actor, "t1")
    broken = enqueue(alice, "broken", max_attempts=1)
    fine = enqueue(alice, "hello")
    wait_for(lambda: status(fine) == "Acked", "the worker has done it")
    assert worker.stdout
    assert worker.stdout.readline() == "done: hello\n"
    row = Dispatch.objects.get(public_id=broken)
    assert (row.status, row.last_error) == ("DeadLetter", "I cannot do this")
