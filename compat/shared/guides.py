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


def run_guide(name: str) -> None:
    """Every Python block of docs/guides/{name}.md, in order, in one module."""
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


def run_example(name: str) -> str:
    """What clients/python/examples/{name}.py prints."""
    example = ROOT / "clients" / "python" / "examples" / f"{name}.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
