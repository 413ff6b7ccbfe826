"""Draws flame graphs of the web process for the three hottest paths.

    python -m benchmarks.flames FOLDER [--root CHECKOUT] [--seconds 8]

Writes read.svg, write.svg and step.svg into FOLDER, and prints how long a call holds the GIL. Needs py-spy on the PATH (`pip install py-spy`), and the
permission to trace processes. `--root` draws another version: a checkout with its own `.venv`.

A server is started in a temporary folder and called over 8 connections. Only samples that hold the GIL are
counted, because waiting costs no processor time. Each box is a function; its width is its share of
these samples, and the boxes above it are what it called.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

import psutil

from benchmarks import load, own_server

PATHS: Final = {
    "read": own_server.READ,
    "write": own_server.WRITE,
    "step": own_server.STEP,
}
CONNECTIONS: Final = 8
# Samples per second.
RATE: Final = 500
_WIDTH, _ROW, _CHARACTER = 1200, 17, 6.3
# Narrower boxes are not drawn.
_LEAST: Final = 0.008
# Functions that start the server and its threads, below every sample.
_START: Final = re.compile(
    r"multiprocessing/|<frozen runpy>|threading\.py|project/(processes|server)\.py|asyncio/runners|"
    r"uvicorn/(_compat|server)\.py|granian/|<string>|manage\.py|django/core/management"
)
# Who wrote a function, by its file: the colour of its box.
_COLOURS: Final = {
    "Commonhold": (re.compile(r"^(project|state_admin)/"), "#9ec5fe"),
    "Django, DRF": (re.compile(r"^(django|rest_framework)"), "#f7c59f"),
    "HTTP server": (re.compile(r"^(uvicorn|granian|httptools|h11|uvloop)"), "#f9e2a0"),
    "psycopg": (re.compile(r"^psycopg"), "#c9b6f2"),
    "Python and other packages": (re.compile(""), "#dadde2"),
}


@dataclass
class Box:
    """A function under one chain of callers. `samples` include those of the functions that it called."""

    name: str
    samples: int = 0
    called: dict[str, Box] = field(default_factory=dict)

    def add(self, stack: Sequence[str], samples: int) -> None:
        self.samples += samples
        if stack:
            first, *others = stack
            self.called.setdefault(first, Box(first)).add(others, samples)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.flames")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", type=Path, default=own_server.ROOT)
    parser.add_argument("--seconds", type=int, default=8)
    options = parser.parse_args()
    if shutil.which("py-spy") is None:
        parser.error("py-spy is not on the PATH: pip install py-spy")
    options.folder.mkdir(parents=True, exist_ok=True)
    with own_server.run_commonhold(options.root) as server:
        works = {work.row: work for work in own_server.find_works(server.api)}
        for name, row in PATHS.items():
            stacks, calls = record(server, works[row], options.seconds)
            (options.folder / f"{name}.svg").write_text(draw(row, stacks), encoding="utf-8")
            print(f"{row}: {1000 * stacks.total() / RATE / calls:.2f} ms per call")


def record(
    server: own_server.Commonhold, work: load.Work, seconds: int
) -> tuple[Counter[tuple[str, ...]], float]:
    """The number of samples of each stack, from the outermost function to the innermost, and of calls."""
    stacks: Counter[tuple[str, ...]] = Counter()
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / str(pid) for pid in _web_processes(server.pid)]
        spies = [
            subprocess.Popen(
                [shutil.which("py-spy") or "", "record", "--gil", "--rate", str(RATE), "--format", "raw",
                 "--duration", str(seconds), "--output", str(file), "--pid", file.name],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for file in files
        ]  # fmt: skip
        found = load.measure(server.api.port, work, CONNECTIONS, seconds)
        for spy in spies:
            _, said = spy.communicate(timeout=60)
            if spy.returncode:
                raise SystemExit(said.decode())
        for file in files:
            for line in file.read_text(encoding="utf-8").splitlines():
                stack, _, count = line.rpartition(" ")
                stacks[tuple(_functions_in(stack))] += int(count)
    return stacks, found.per_second * seconds


def _web_processes(supervisor: int) -> list[int]:
    """The processes that serve requests: the `web` process and its workers."""
    children = psutil.Process(supervisor).children(recursive=True)
    programs = [each for each in children if not each.name().startswith("postgres")]
    return [each.pid for each in programs if not {"worker", "beat"} & {*each.cmdline()}]


def _functions_in(stack: str) -> Iterator[str]:
    """`name (file)` of each function, without line numbers and without those that start the server."""
    names = [re.sub(r":\d+\)$", ")", frame) for frame in stack.split(";")]
    started = [n for n, name in enumerate(names) if not _START.search(name)]
    yield from names[started[0] :] if started else names[-1:]


def draw(title: str, stacks: Counter[tuple[str, ...]]) -> str:
    """The flame graph as an SVG file."""
    everything = Box(title)
    for stack, samples in stacks.items():
        everything.add(stack, samples)
    boxes = list(_place(everything, 0.0, 0, everything.samples))
    height = (max(row for _, _, row in boxes) + 1) * _ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height + 30}" '
        'font-family="ui-monospace, monospace" font-size="10.5">',
        f'<rect width="{_WIDTH}" height="{height + 30}" fill="#fff"/>',
    ]
    for box, left, row in boxes:
        width = box.samples / everything.samples * _WIDTH
        top = height - (row + 1) * _ROW
        share = f"{100 * box.samples / everything.samples:.1f} %"
        lines.append(
            f'<g><title>{escape(box.name)}: {share}</title><rect x="{left:.1f}" y="{top}" '
            f'width="{max(width - 0.5, 0.4):.1f}" height="{_ROW - 1}" fill="{_colour(box.name)}"/>'
        )
        room = int((width - 6) / _CHARACTER)
        if room >= 4:
            label = box.name if len(box.name) <= room else box.name[: room - 1] + "…"
            lines.append(f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(label)}</text>')
        lines.append("</g>")
    for number, (name, (_, colour)) in enumerate(_COLOURS.items()):
        left = 3 + number * 190
        lines.append(
            f'<rect x="{left}" y="{height + 10}" width="12" height="12" fill="{colour}"/>'
            f'<text x="{left + 18}" y="{height + 20}">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _place(box: Box, left: float, row: int, total: int) -> Iterator[tuple[Box, float, int]]:
    """Each box that is wide enough, with its left edge and its row."""
    yield box, left, row
    for called in sorted(box.called.values(), key=lambda each: each.name):
        if called.samples >= _LEAST * total:
            yield from _place(called, left, row + 1, total)
        left += called.samples / total * _WIDTH


def _colour(name: str) -> str:
    file = name.rpartition(" (")[2]
    return next(colour for pattern, colour in _COLOURS.values() if pattern.search(file))


if __name__ == "__main__":
    main()
