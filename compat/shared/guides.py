"""Runs the Python of a guide, and an example, as a reader would."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run_guide(name: str) -> dict[str, Any]:
    """Every Python block of docs/guides/{name}.md, in order, in one module; answers its names."""
    text = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks, f"{name}.md has no Python"
    shared: dict[str, Any] = {"__name__": "guide"}

    async def run() -> None:
        for block in blocks:
            code = compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if inspect.isawaitable(done := eval(code, shared)):  # noqa: S307  # our own guide
                await done

    asyncio.run(run())
    return shared


def run_example(name: str) -> str:
    """What clients/python/examples/{name}.py prints."""
    return run_program(ROOT / "clients" / "python" / "examples" / f"{name}.py")


def run_program(path: Path) -> str:
    """What a program prints, which must succeed."""
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
