"""Runs an example as a reader would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_example(name: str) -> str:
    """What clients/python/examples/{name}.py prints."""
    return run_program(ROOT / "clients" / "python" / "examples" / f"{name}.py")


def run_program(path: Path) -> str:
    """What a program prints, which must succeed."""
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
