"""The product's former name belongs to another vendor; no tracked file or path may contain it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMER = re.compile(rb"state[ _-]?house|\bsh_[0-9a-f\xe2]", re.IGNORECASE)


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listing.stdout.split("\0") if path]


def test_repository__former_name__occurs_in_no_path_and_no_file() -> None:
    paths = tracked()
    named = [path for path in paths if FORMER.search(path.encode())]
    holding = [path for path in paths if (ROOT / path).is_file() and has_former_name(ROOT / path)]
    assert (named, holding) == ([], [])


def has_former_name(path: Path) -> bool:
    # This file needs the pattern; vendored scripts are minified and may contain a short prefix.
    if path == Path(__file__) or "vendor" in path.parts:
        return False
    return FORMER.search(path.read_bytes()) is not None
