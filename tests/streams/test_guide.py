"""docs/guides/change-feed.md: its program runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from project.env import BASE_DIR
from tests.builders import Person, make_namespace, put
from tests.project.running import Running, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_guide__python_program__prints_what_changes(
    web: Running, alice: Person, tmp_path: Path
) -> None:
    guide = (BASE_DIR / "docs" / "guides" / "change-feed.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    env = {"COMMONHOLD_URL": f"http://127.0.0.1:{web.port}", "COMMONHOLD_TOKEN": alice.token}
    make_namespace(alice.actor, "notes")
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        reader = subprocess.Popen(
            [sys.executable, "-c", program], env=env, stdout=out, stderr=subprocess.STDOUT
        )

    def seen() -> bool:
        assert reader.poll() is None, printed.read_text()
        put(alice.actor, "notes", "k", 1)
        return "entry.put notes k " in printed.read_text()

    try:
        wait_for(seen, "the program prints a change")
        versions = [int(line.split()[-1]) for line in printed.read_text().splitlines()]
        assert versions == list(range(versions[0], versions[0] + len(versions)))
    finally:
        reader.kill()
        reader.wait()
