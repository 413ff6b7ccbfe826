"""Runs examples as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_example(name: str) -> str:
    """Return the output of clients/python/examples/{name}.py."""
    return run_program(ROOT / "clients" / "python" / "examples" / f"{name}.py")


def run_program(path: Path) -> str:
    """Return the output of a program. Fails if the program does."""
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
