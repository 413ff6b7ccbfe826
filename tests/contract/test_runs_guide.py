"""What docs/guides/runs.md shows works as written, and shows what it says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Person
from tests.contract.guides import run_commands

GUIDE = (Path(__file__).parents[2] / "docs/guides/runs.md").read_text()

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_guide__commands__succeed_one_after_the_other(alice: Person, live_server: Any) -> None:
    script = "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL))
    done = run_commands(script, token=alice.token, url=live_server.url)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert done.returncode == 0, (answers[-1:], done.stderr)
    refused = [each for each in answers if str(each.get("type", "")).startswith("/problems/")]
    assert refused == []
    knew, stale, readers = answers[-3:]
    assert [(row["version"], row["value"]) for row in knew["items"]] == [(1, {"refund": 10})]
    assert [(row["version"], row["current_version"]) for row in stale["items"]] == [(1, 2)]
    assert [(row["run_id"], row["step"]) for row in readers["items"]] == [("r1", 7)]
    tokens = [each["fencing_token"] for each in answers if "fencing_token" in each]
    assert (min(tokens), max(tokens)) == (1, 5)
