"""Runs the blocks of one page as a reader would, one after the other.

Shell state, Python names, the module of a Node page and files are kept from block to block. The
working directory looks like the root of the repository; files that a page writes there are deleted.
Only two texts are replaced in blocks: the URL of `make run` and the token `ch_…`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright import sync_api as playwright

from project.env import BASE_DIR
from tests.docs.outputs import printed_in_comments, shows_json, shows_text
from tests.docs.pages import OUTPUT, RUN, Block
from tests.patience import PATIENCE

PROGRAMS = Path(__file__).parent / "programs"

_DEFAULT_URL = "http://127.0.0.1:8000"
_TOKEN = "ch_…"
_STATUS_COMMENT = re.compile(r"^\s*# ([45]\d\d)\b.*$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"


class BlockFailed(AssertionError):
    """A block of a page did not do what the page says."""


@dataclass(frozen=True)
class Server:
    """A running server, and the output of `manage.py serve` for its first user."""

    url: str
    token: str
    data_dir: Path
    # Opens a page of the admin in a signed-in browser; None without a Chromium.
    open_admin_page: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Environment:
    """The environment with the packages of a page."""

    python: Path = Path(sys.executable)
    node_modules: Path | None = None


class Session:
    """The state of one page. Use it as a context manager; blocks are run in order."""

    def __init__(
        self,
        blocks: list[Block],
        server: Server,
        folder: Path,
        environment: Environment,
        *,
        output_patience: float = PATIENCE,
    ) -> None:
        self.blocks = blocks
        self.server = server
        self.environment = environment
        self.output_patience = output_patience
        self.private = folder / ".session"  # not used by the page
        self.folder = folder / "repository"
        self.output_path = self.private / "output"
        self.status_path = self.private / "expected-status"
        self.environ_path = self.private / "environ"
        self._block_start = 0
        self._exits = ExitStack()
        self._shell: Program | None = None
        self._python: Program | None = None
        self._node: Program | None = None
        self._admin_page: Any = None

    def __enter__(self) -> Session:
        self.private.mkdir(parents=True)
        self.folder.mkdir()
        self.output_path.touch()
        for entry in BASE_DIR.iterdir():
            if entry.name not in (".git", ".data", "node_modules"):
                (self.folder / entry.name).symlink_to(entry)
        if self.environment.node_modules:
            (self.folder / "node_modules").symlink_to(self.environment.node_modules)
        self._shell = self._start("bash", lambda fd: ["bash"], self._first_environ())
        self._shell.send("set -euo pipefail")
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def run(self, after: Callable[[Block], None] = lambda block: None) -> None:
        """Run every block, and call `after` after each. Raises BlockFailed at the first failure."""
        for index, block in enumerate(self.blocks):
            try:
                self._run_block(index, block)
                after(block)
            except AssertionError as error:
                tail = self.output()[-3000:]
                raise BlockFailed(
                    f"{block.place} ({block.language}): {error}\n--- output\n{tail}"
                ) from None

    def output(self) -> str:
        """The output since the start of the newest block."""
        return self.output_path.read_bytes()[self._block_start :].decode(errors="replace")

    def _run_block(self, index: int, block: Block) -> None:
        if block.file is not None:
            self._save_file(block.file, self._fill_in(block.text))
        elif block.language in OUTPUT:
            self._expect_output(self._fill_in(block.text), as_json=block.language == "json")
        elif block.language in RUN:
            self._block_start = self.output_path.stat().st_size
            if block.in_browser:
                self._run_in_browser(block)
            elif block.language == "sh":
                self._run_shell(index, block)
            elif block.language == "python":
                self._run_python(index, block)
            else:
                self._run_node(block)
            if block.language != "sh" and (announced := printed_in_comments(block.text)):
                self._expect_output(announced)
            assert _TRACEBACK not in self.output(), "a program raised an exception"
        else:
            raise AssertionError(f"no runner for the language {block.language!r}")

    def _fill_in(self, text: str) -> str:
        return text.replace(_DEFAULT_URL, self.server.url).replace(_TOKEN, self.server.token)

    def _save_file(self, name: str, text: str) -> None:
        path = Path(self.environ()["PWD"]) / name  # relative to the shell's folder
        assert BASE_DIR not in path.resolve().parents, f"{name} would change the repository"
        if path.suffix == ".json":
            json.loads(text)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _expect_output(self, expected: str, *, as_json: bool = False) -> None:
        matches = shows_json if as_json else shows_text
        deadline = time.monotonic() + self.output_patience
        while not matches(expected, self.output()):
            assert time.monotonic() < deadline, f"the output is not\n{expected}"
            if self._admin_page:
                self._admin_page.evaluate("0")  # lets console messages arrive
            time.sleep(0.02)

    # Shell

    def _first_environ(self) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COMMONHOLD_", "DJANGO_", "PYTEST_", "PYTHON"))
            and name not in ("DATABASE_URL", "BROKER_URL", "PORT", "TOKEN", "URL", "CI")
        }
        binaries = [PROGRAMS, self.private, self.environment.python.parent]
        environ = {
            **inherited,
            "PWD": str(self.folder),
            "PATH": ":".join([*map(str, binaries), os.environ["PATH"]]),
            "no_proxy": "*",
            "GUIDE_CURL": shutil.which("curl") or "curl",
            "GUIDE_STATUS": str(self.status_path),
            # `manage.py` finds the data of the server without a setting, as beside `make run`.
            "COMMONHOLD_DATA_DIR": str(self.server.data_dir),
            "PORT": self.server.url.rpartition(":")[2],
        }
        if self.environment.python == Path(sys.executable):
            # The client is not installed: it is imported and started from the source tree.
            environ["PYTHONPATH"] = str(BASE_DIR / "clients" / "python" / "src")
            command = self.private / "commonhold"
            program = "import sys; from commonhold.cli import main; sys.exit(main())"
            command.write_text(f'#!/bin/sh\nexec python -c "{program}" "$@"\n')
            command.chmod(0o755)
        return environ

    def _run_shell(self, index: int, block: Block) -> None:
        assert self._shell
        path = self.private / f"block-{index}.sh"
        announce = rf"echo \1 > {shlex.quote(str(self.status_path))}"
        path.write_text(_STATUS_COMMENT.sub(announce, self._fill_in(block.text)))
        environ = shlex.quote(str(self.environ_path))
        self._shell.send(
            f". {shlex.quote(str(path))} < /dev/null; env -0 > {environ};"
            f" echo >&{self._shell.results}"
        )
        self._shell.receive()
        assert not self.status_path.exists(), "a refusal is announced, but nothing was called"

    def environ(self) -> dict[str, str]:
        """The exported variables of the shell, which programs of the page inherit."""
        if not self.environ_path.exists():
            return self._first_environ()
        pairs = self.environ_path.read_text().rstrip("\0").split("\0")
        return dict(pair.split("=", 1) for pair in pairs)

    # Python

    def _run_python(self, index: int, block: Block) -> None:
        if self._python is None:
            program = [str(self.environment.python), "-u", str(PROGRAMS / "python_session.py")]
            self._python = self._start("python", lambda fd: [*program, str(fd)], self.environ())
        path = self.private / f"block-{index}.py"
        path.write_text(self._fill_in(block.text), encoding="utf-8")
        command = {"path": str(path), "name": block.place, "in_loop": self._awaits()}
        self._python.send(json.dumps(command))
        failure = self._python.receive()
        assert not failure, json.loads(failure)

    def _awaits(self) -> bool:
        """Whether the page uses top-level await, as in `python -m asyncio`."""
        return any(
            awaits_at_top_level(block.text)
            for block in self.blocks
            if block.language == "python" and block.file is None
        )

    # Node

    def _run_node(self, block: Block) -> None:
        module = [
            each
            for each in self.blocks
            if each.language in ("js", "ts") and not each.file and not each.in_browser
        ]
        if self._node is None:
            program = self._build_module(module)
            self._node = self._start(
                "node",
                lambda fd: ["node", "--import", str(PROGRAMS / "node_session.mjs"), program],
                self.environ(),
            )
            self._node.receive()  # it waits before its first block
        self._node.send("")
        self._node.receive()

    def _build_module(self, blocks: list[Block]) -> str:
        """The path of a module with all blocks, each of which waits until `_run_node` starts it."""
        languages = {block.language for block in blocks}
        assert len(languages) == 1, "a page has js or ts blocks, not both"
        text = "".join(
            f"await nextBlock({number});\n{self._fill_in(block.text)}"
            for number, block in enumerate(blocks)
        )
        text += f"await nextBlock({len(blocks)});\n"
        if languages == {"js"}:
            (self.folder / "page.mjs").write_text(text, encoding="utf-8")
            return "page.mjs"
        declaration = "declare global { function nextBlock(number: number): Promise<void>; }\n"
        (self.folder / "page.mts").write_text(text + declaration, encoding="utf-8")
        assert self.environment.node_modules, "needs TypeScript"
        compiler = self.environment.node_modules / ".bin" / "tsc"
        options = "--strict --target es2022 --module nodenext --skipLibCheck --types node"
        compiled = subprocess.run(
            [str(compiler), *options.split(), "page.mts"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert compiled.returncode == 0, f"{compiled.stdout}\nin\n{number_lines(text)}"
        return "page.mjs"

    # Browser

    def _run_in_browser(self, block: Block) -> None:
        assert self.server.open_admin_page, "needs a Chromium"
        page = self.server.open_admin_page()
        self._exits.callback(page.close)
        page.on("console", lambda message: self._log(message.text))
        page.on("pageerror", lambda error: self._log(f"{_TRACEBACK} in the browser: {error}"))
        self._admin_page = page
        try:
            page.evaluate(f"async () => {{ {self._fill_in(block.text)} }}")
        except playwright.Error as error:
            raise AssertionError(str(error)) from None

    def _log(self, text: str) -> None:
        with self.output_path.open("a", encoding="utf-8") as output:
            output.write(text + "\n")

    def _start(
        self, name: str, command: Callable[[int], list[str]], environ: dict[str, str]
    ) -> Program:
        program = Program(name, command, environ, self.folder, self.output_path)
        self._exits.callback(program.kill)
        return program


class Program:
    """A process that reads commands from standard input and writes one line to a pipe for each."""

    def __init__(
        self,
        name: str,
        command: Callable[[int], list[str]],
        environ: dict[str, str],
        folder: Path,
        output: Path,
    ) -> None:
        self.name = name
        self._reader, self.results = os.pipe()
        with output.open("ab") as log:
            self._process = subprocess.Popen(
                command(self.results),
                cwd=folder,
                env={**environ, "GUIDE_RESULTS": str(self.results)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(self.results,),
                start_new_session=True,
            )
        os.close(self.results)

    def send(self, line: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(f"{self.name} has ended") from None

    def receive(self) -> str:
        """The next line of the pipe. AssertionError if the process ends or hangs."""
        deadline = time.monotonic() + PATIENCE
        line = b""
        while not line.endswith(b"\n"):
            assert time.monotonic() < deadline, f"{self.name}: not done in {PATIENCE:.0f} s"
            received = b""
            if select.select([self._reader], [], [], 0.1)[0]:
                received = os.read(self._reader, 65536)
                line += received
            # A background program of the page may keep the pipe open.
            if not received and (status := self._process.poll()) is not None:
                raise AssertionError(f"{self.name} exited with {status}")
        return line.decode().strip()

    def kill(self) -> None:
        """Stop it and its background programs."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        os.close(self._reader)


def awaits_at_top_level(source: str) -> bool:
    """Whether `source` is only valid where `await` is allowed outside functions."""
    try:
        compile(source, "block", "exec", flags=ast.PyCF_ONLY_AST)
        compile(source, "block", "exec")
    except SyntaxError:
        return True
    return False


def number_lines(text: str) -> str:
    return "\n".join(f"{n:4} {line}" for n, line in enumerate(text.splitlines(), start=1))
