"""The promises of docs/reliability.md, and the report of a run about them (`make chaos`).

A test adds numbers to the report with pytest's fixture `record_property`. Numbers with a name of TOTALS are
summed over all tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from project.env import BASE_DIR

PAGE = BASE_DIR / "docs" / "reliability.md"

TEST_ID = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>(?:\w+::)?test_\w+)`")
_NOT_RUN = "not run"
# The worst first.
_RESULTS = ("failed", _NOT_RUN, "skipped", "passed")

# What tests with traffic report, in the order of check_history (tests/availability/traffic.py).
TOTALS = (
    "acknowledged writes",
    "acknowledged writes lost",
    "versions missing or wrong",
    "changes that cursors skipped",
    "changes that cursors repeated",
)
PAUSE = "seconds without writes"
_LONGEST = 10


def read_promises(markdown: str) -> list[list[str]]:
    """The cells of each row of the table: promise, how, tests, last result."""
    rows = [line.strip("|").split(" | ") for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def list_ids(cell: str) -> list[str]:
    """The ids of the tests in a cell."""
    return [found[0].strip("`") for found in TEST_ID.finditer(cell)]


@dataclass
class Results:
    """Of a run, by the id of a test without its parameters. `numbers` are by the whole id."""

    outcomes: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, list[tuple[str, object]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, report: pytest.TestReport) -> None:
        """Of a test, setup and teardown count if they do not pass."""
        if report.when == "call" or not report.passed:
            self.outcomes.setdefault(report.nodeid.partition("[")[0], []).append(report.outcome)
        if not report.passed:
            self.reasons[report.nodeid] = _explain(report)
        if report.when == "teardown" and report.user_properties:
            self.numbers[report.nodeid] = list(report.user_properties)
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def of(self, tests: Iterable[str]) -> str:
        """The worst result of some tests. A test of which one case is skipped counts as passed if
        another one passed."""
        found = [self._of_test(test) for test in tests]
        return min(found, key=_RESULTS.index, default=_NOT_RUN)

    def _of_test(self, test: str) -> str:
        outcomes = self.outcomes.get(test, [])
        for result in ("failed", "passed", "skipped"):
            if result in outcomes:
                return result
        return _NOT_RUN


def _explain(report: pytest.TestReport) -> str:
    """The last line of a failure, or the reason of a skip."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", "") or report.longreprtext).strip().partition("\n")[0]


def write_report(promises: list[list[str]], results: Results, run: str = "") -> str:
    """Markdown: the result of each promise, then the numbers, then what failed or was skipped, then the
    longest tests. `run` describes the run."""
    rows = [(results.of(list_ids(cells[2])), *cells[:3]) for cells in promises]
    counts = {result: sum(row[0] == result for row in rows) for result in _RESULTS}
    lines = ["# Promises", ""]
    lines.append(", ".join(f"{count} {result}" for result, count in counts.items() if count))
    lines += ["", run] if run else []
    lines += _table("result | promise | how | tests", rows)
    lines += ["", "# Totals", *_table("what | value", _sum(results))]
    numbers = [
        (f"`{test}`", name, str(value))
        for test, values in sorted(results.numbers.items())
        for name, value in values
    ]
    lines += ["", "# Numbers", *_table("test | what | value", numbers)]
    reasons = [(f"`{test}`", _escape(why)) for test, why in sorted(results.reasons.items())]
    lines += ["", "# Failed and skipped", *_table("test | why", reasons)]
    longest = sorted(results.seconds.items(), key=lambda each: -each[1])[:_LONGEST]
    durations = [(f"`{test}`", f"{seconds:.0f}") for test, seconds in longest]
    lines += ["", "# Longest tests", *_table("test | seconds", durations)]
    return "\n".join(lines) + "\n"


def _sum(results: Results) -> list[tuple[str, str]]:
    """The sums of all tests, and the longest pause of writes with its test."""
    found = [(name, value, test) for test, each in results.numbers.items() for name, value in each]
    totals = [
        (name, str(sum(int(str(value)) for each, value, _ in found if each == name)))
        for name in TOTALS
    ]
    pauses = [(float(str(value)), test) for name, value, test in found if name == PAUSE]
    if pauses:
        seconds, test = max(pauses)
        totals.append((f"longest time without writes, in seconds: `{test}`", str(seconds)))
    return totals


def _table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    ruler = "|".join("---" for _ in head.split("|"))
    return ["", f"| {head} |", f"|{ruler}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def update_results(markdown: str, results: Results) -> str:
    """The page with the results of this run in its last column. What did not run keeps the last one."""
    lines = markdown.splitlines(keepends=True)
    for number, line in enumerate(lines):
        tests = list_ids(line)
        result = results.of(tests)
        if line.startswith("|") and tests and result != _NOT_RUN:
            kept = line.rstrip("|\n ").rpartition(" | ")[0]
            lines[number] = f"{kept} | {result} |\n"
    return "".join(lines)


# Called by tests/conftest.py ------------------------------------------------


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--report",
        type=Path,
        metavar="FILE",
        help="write the results of the promises of docs/reliability.md to FILE and to that page",
    )


def mark_promises(items: list[pytest.Item]) -> None:
    """Mark the tests that the page names, except those with slow cases: `make chaos` runs these cases, which
    include what the others check."""
    named = {
        test for row in read_promises(PAGE.read_text(encoding="utf-8")) for test in list_ids(row[2])
    }
    slow = {_name(item) for item in items if item.get_closest_marker("slow")}
    for item in items:
        if _name(item) in named - slow:
            item.add_marker(pytest.mark.promise)


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


class Reporter:
    """The plugin of a run with `--report`, in the process that collects the results."""

    def __init__(self, file: Path) -> None:
        self.file, self.results = file, Results()
        self.began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.results.add(report)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        page = PAGE.read_text(encoding="utf-8")
        processes = config.getoption("numprocesses", None) or 1
        minutes = (time.monotonic() - self.began) / 60
        run = (
            f"{processes} processes on {os.cpu_count()} cores, {minutes:.0f} minutes, {_version()}"
        )
        report = write_report(read_promises(page), self.results, run)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(report, encoding="utf-8")
        PAGE.write_text(update_results(page, self.results), encoding="utf-8")
        terminalreporter.section("report")
        terminalreporter.write(report)


def _version() -> str:
    """The commit, with `-dirty` if files were changed since."""
    command = ("git", "describe", "--always", "--dirty")
    found = subprocess.run(command, cwd=BASE_DIR, check=False, capture_output=True, text=True)
    return f"commit {found.stdout.strip() or 'unknown'}"


def register_reporter(config: pytest.Config) -> None:
    file = config.getoption("--report")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(file), "promises")
