"""The first hour of the README works as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from state_admin.domain.access import Role
from tests.builders import make_person
from tests.patience import PATIENCE

README = Path(__file__).parents[2] / "README.md"


def commands() -> str:
    section = README.read_text().partition("## The first hour")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.django_db(transaction=True)
def test_readme__every_command_of_the_first_hour__succeeds(live_server: Any) -> None:
    token = make_person("alice", "acme", Role.ADMIN).token
    script = commands()
    exported = re.search(r"^export TOKEN=.*$", script, re.MULTILINE)
    assert exported is not None
    script = script.replace(
        exported.group(), f"export TOKEN={token} URL={live_server.url}/api/v1"
    ).replace("curl -sS", "curl -sS --fail-with-body")
    done = subprocess.run(
        ["bash", "-e", "-c", script],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "no_proxy": "*"},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert '"goal":"Ship the feature in May"' in done.stdout
    assert '"offers_seen":6' in done.stdout or '"revision":1' in done.stdout
