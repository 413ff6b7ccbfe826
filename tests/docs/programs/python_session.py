"""Runs the Python blocks of one page in one namespace, in the interpreter of the page.

Each line of standard input is a JSON object `{"path", "name", "in_loop"}` of one block. The file
descriptor in the first argument receives one line per block: empty if it succeeded, else the
traceback as JSON.

Only the standard library: this runs in environments without the packages of the tests.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import os
import sys
import traceback
import types
from typing import Any

# Dataclasses look up the types of their fields in a module.
module = types.ModuleType("guide")
sys.modules["guide"] = module


def run_block(path: str, name: str) -> Any:
    with open(path, encoding="utf-8") as file:
        source = file.read()
    # So that tracebacks and inspect.getsource show the block.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return eval(code, module.__dict__)  # noqa: S307


async def run_block_in_loop(path: str, name: str) -> None:
    result = run_block(path, name)
    if inspect.isawaitable(result):
        await result


def main() -> None:
    sys.path[0] = ""  # as in an interactive interpreter: files that the page saves can be imported
    with os.fdopen(int(sys.argv[1]), "w") as results, asyncio.Runner() as runner:
        for line in sys.stdin:
            command = json.loads(line)
            failure = ""
            try:
                if command["in_loop"]:  # as in `python -m asyncio`
                    runner.run(run_block_in_loop(command["path"], command["name"]))
                else:
                    run_block(command["path"], command["name"])
            except BaseException:
                failure = json.dumps(traceback.format_exc())
            sys.stdout.flush()
            results.write(failure + "\n")
            results.flush()


if __name__ == "__main__":
    main()
