"""How a command of `manage.py` ends if its output is a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.patience import PATIENCE

pytestmark = pytest.mark.system

OTHER_PIPE = """
import manage, django.core.management
def fail(arguments):
    raise BrokenPipeError("of another pipe")
django.core.management.execute_from_command_line = fail
manage.main()
"""


def run(folder: Path, *command: str, stdout: int, unbuffered: str = "") -> tuple[int, str]:
    """The status and the errors of a command."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "COMMONHOLD_DATA_DIR": str(folder),
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "PYTHONUNBUFFERED": unbuffered,
        },
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["doctor", "help"])
def test_command__whose_reader_has_left__ends_without_a_traceback(
    command: str, unbuffered: str, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(tmp_path, "manage.py", command, stdout=writer, unbuffered=unbuffered)
    os.close(writer)
    assert ended == (128 + signal.SIGPIPE, "")


def test_command__that_another_pipe_ends__shows_the_traceback(tmp_path: Path) -> None:
    status, errors = run(tmp_path, "-c", OTHER_PIPE, stdout=subprocess.PIPE)
    assert status == 1
    assert errors.endswith("BrokenPipeError: of another pipe\n")
