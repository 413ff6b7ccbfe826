"""What the guides of the protocols show in the shell works as written."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest

from project.env import BASE_DIR
from tests.builders import Person
from tests.contract.guides import run_commands

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl"),
]


def run_guide(name: str, person: Person, server: Any) -> list[str]:
    """The lines that the guide's commands print."""
    text = (BASE_DIR / "docs/guides" / f"{name}.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    done = run_commands(script, token=person.token, url=server.url)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr)
    return [line for line in done.stdout.splitlines() if line]


def test_guide__ag_ui__the_thread_as_events(alice: Person, live_server: Any) -> None:
    told = [line for line in run_guide("ag-ui", alice, live_server) if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: "))["type"] for line in told]
    assert events[:2] == ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]


def test_guide__ai_sdk__the_thread_as_ui_messages(alice: Person, live_server: Any) -> None:
    (message,) = json.loads(run_guide("ai-sdk", alice, live_server)[-1])
    assert (message["role"], message["parts"][0]["text"]) == ("user", "hi")


def test_guide__agent_protocol__a_checkpoint(alice: Person, live_server: Any) -> None:
    state = json.loads(run_guide("agent-protocol", alice, live_server)[-1])
    assert (state["values"], state["messages"][0]["content"]) == ({"plan": ["fly"]}, "hi")
