"""What docs/guides/config.md shows works as written, in its order."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from state_admin.services.config_secrets import find_provider_secret
from tests.builders import Person
from tests.contract.guides import run_commands

GUIDE = (Path(__file__).parents[2] / "docs/guides/config.md").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.django_db(transaction=True)
def test_guide__commands__succeed(alice: Person, live_server: Any) -> None:
    script = "".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL))
    done = run_commands(script, token=alice.token, url=live_server.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sk-example" not in done.stdout
    found = find_provider_secret(workspace_id=alice.workspace.pk, provider_id="openai")
    assert found == "sk-example-9876543210"
