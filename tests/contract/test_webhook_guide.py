"""What docs/guides/webhooks.md shows works as written: its commands, its receiver, its event."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from state_admin.models import Webhook, WebhookDelivery
from state_admin.services import deliveries, webhooks
from state_admin.services.webhooks import Filter
from tests.builders import Person, make_namespace, put
from tests.contract.guides import run_commands
from tests.feeding import pump
from tests.patience import PATIENCE
from tests.project.running import free_port, wait_for

GUIDE = (Path(__file__).parents[2] / "docs/guides/webhooks.md").read_text()

pytestmark = pytest.mark.django_db(transaction=True)


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def hook(alice: Person, port: int, settings: Any) -> tuple[Webhook, str]:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    return webhooks.create_webhook(
        actor=alice.actor,
        name="guide",
        url=f"http://127.0.0.1:{port}/",
        wanted=Filter(kinds=("entry.*",)),
    )


@pytest.fixture
def receiver(hook: tuple[Webhook, str], port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", block("python")],
        env={**os.environ, "WEBHOOK_SECRET": hook[1], "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_for(lambda: answers(port), "the receiver listens")
    yield process
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout
    process.stdout.close()


def answers(port: int) -> bool:
    try:
        post(port, b"{}", {"webhook-id": "x", "webhook-timestamp": "0", "webhook-signature": ""})
    except ConnectionRefusedError:
        return False
    return True


def post(port: int, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_guide__receiver__takes_ours_and_refuses_what_is_forged(
    alice: Person, hook: tuple[Webhook, str], receiver: subprocess.Popen[str], port: int
) -> None:
    make_namespace(alice.actor, "team_context")
    put(alice.actor, "team_context", "global", 1)
    pump(hook[0])
    assert deliveries.drain(hook[0].public_id) == 1
    assert receiver.stdout
    assert receiver.stdout.readline() == "commonhold.entry.put\n"
    forged = {"webhook-id": "m", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    assert post(port, b"{}", forged) == 401

    webhooks.rotate_secret(actor=alice.actor, webhook_id=hook[0].public_id, overlap_seconds=0)
    put(alice.actor, "team_context", "global", 2)
    pump(hook[0])
    assert deliveries.drain(hook[0].public_id) == 0
    assert WebhookDelivery.objects.latest("pk").response_status == 401


def test_guide__event__has_the_members_of_a_real_one(
    alice: Person, hook: tuple[Webhook, str]
) -> None:
    make_namespace(alice.actor, "team_context")
    put(alice.actor, "team_context", "global", 1)
    pump(hook[0])
    real = json.loads(WebhookDelivery.objects.get().body)
    shown = json.loads(block("json"))
    assert shown.keys() == real.keys()
    assert shown["data"].keys() == real["data"].keys()
    assert [len(part) for part in shown["sequence"].split(".")] == [
        len(part) for part in real["sequence"].split(".")
    ]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_guide__commands__succeed(alice: Person, live_server: Any) -> None:
    done = run_commands(block("sh"), token=alice.token, url=live_server.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"secret":"whsec_' in done.stdout
