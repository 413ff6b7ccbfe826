"""The examples of the Python client run unchanged against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from project.env import BASE_DIR
from tests.builders import Person
from tests.patience import PATIENCE
from tests.project.running import Running

pytestmark = pytest.mark.django_db(transaction=True)

CLIENT = BASE_DIR / "clients" / "python"


def run(program: str, folder: Path, web: Running, person: Person) -> str:
    # As a file, because dataclasses look up the types of their fields in a module.
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={
            **os.environ,
            "PYTHONPATH": str(CLIENT / "src"),
            "COMMONHOLD_URL": f"http://127.0.0.1:{web.port}",
            "COMMONHOLD_TOKEN": person.token,
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_ours(path: Path) -> bool:
    """Examples for frameworks run in compat/, where the framework is installed."""
    imported = re.findall(r"^(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
    return all(map(is_installed, imported))


def is_installed(name: str) -> bool:
    """Also of a part of a namespace package, such as google.adk."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a parent
        return False


EXAMPLES = sorted(filter(is_ours, (CLIENT / "examples").glob("*.py")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example__runs(path: Path, web: Running, alice: Person, tmp_path: Path) -> None:
    assert run(path.read_text(), tmp_path, web, alice).strip()


def test_worker__work_of_another_thread__is_not_claimed(
    web: Running, alice: Person, tmp_path: Path
) -> None:
    alice.api("POST", "/threads", {"id": "other"})
    work = alice.api("POST", "/threads/other/dispatches", {"payload": "theirs"}).json()
    program = (CLIENT / "examples" / "worker.py").read_text()
    assert run(program, tmp_path, web, alice).split() == ["book", "broken", "pay"]
    assert alice.api("GET", f"/dispatches/{work['id']}").json()["status"] == "Queued"
