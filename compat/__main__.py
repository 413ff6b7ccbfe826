"""Runs every suite against one fresh server and writes the table of docs/compatibility.md.

python -m compat [NAME …]     some suites only: the rows of the others stay as they are
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from tests.project.sites import Site

HERE = Path(__file__).parent
ROOT = HERE.parent
CLIENTS = ROOT / "clients"
ENVIRONMENTS = ROOT / ".compat"
PAGE = ROOT / "docs" / "compatibility.md"
# Longer than the slowest suite needs on a busy machine. A suite that hangs must not block the
# others.
SUITE_SECONDS = 900

_HEAD = """# Compatibility

What `make compat` found: the frameworks' own suites and real clients at these versions, against a
running server. Written by that command; do not edit.

| | package | version | tests | guide |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Suite:
    name: str
    title: str
    package: str
    guide: str

    @property
    def folder(self) -> Path:
        return HERE / self.name

    @property
    def is_python(self) -> bool:
        return (self.folder / "requirements.txt").exists()

    def version(self) -> str:
        """The pinned version of the framework."""
        if self.is_python:
            pins = (self.folder / "requirements.txt").read_text()
            name = re.escape(self.package)
            found = re.search(rf"^{name}(?:\[[^\]]*\])?==([^\s;\\]+)", pins, re.MULTILINE)
            if found is None:
                raise LookupError(f"{self.name}: {self.package} is not pinned")
            return found.group(1)
        lock = json.loads((self.folder / "package-lock.json").read_text())
        version: str = lock["packages"][f"node_modules/{self.package}"]["version"]
        return version


@dataclass(frozen=True)
class Outcome:
    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        """Without the number that pass, which changes with every test that is added."""
        others = {"fail": self.failed, "skipped": self.skipped}
        found = ", ".join(f"{count} {what}" for what, count in others.items() if count)
        return found or ("all pass" if self.passed else "none")


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m compat", description=__doc__)
    options.add_argument("names", nargs="*")
    requested = options.parse_args().names
    suites = find_suites()
    if unknown := set(requested) - {suite.name for suite in suites}:
        sys.exit(f"no such suite: {', '.join(sorted(unknown))}")
    chosen = [suite for suite in suites if not requested or suite.name in requested]
    for suite in chosen:
        print(f"== {suite.name}: install", flush=True)
        install(suite)
    outcomes = {}
    with server() as env:
        for suite in chosen:
            print(f"== {suite.name}: run", flush=True)
            outcomes[suite] = run(suite, env)
            # After each suite, so that an interrupted run loses nothing.
            PAGE.write_text(page(suites, outcomes, previous=PAGE.read_text()))
    print(f"\n{''.join(row(suite, outcome) for suite, outcome in outcomes.items())}")
    sys.exit(any(outcome.failed or not outcome.passed for outcome in outcomes.values()))


def page(suites: Sequence[Suite], outcomes: Mapping[Suite, Outcome], *, previous: str) -> str:
    """The page with the rows of `outcomes`. Suites that did not run keep their row of `previous`."""
    rows = {
        line.split("|")[1].strip(): f"{line}\n" for line in previous.splitlines() if "|" in line
    }
    rows |= {suite.title: row(suite, outcome) for suite, outcome in outcomes.items()}
    return _HEAD + "".join(rows.get(suite.title, "") for suite in suites)


def find_suites() -> list[Suite]:
    return [
        Suite(about.parent.name, **tomllib.loads(about.read_text()))
        for about in sorted(HERE.glob("*/about.toml"))
    ]


def row(suite: Suite, outcome: Outcome) -> str:
    guide = os.path.relpath(ROOT / suite.guide, PAGE.parent)
    return f"| {suite.title} | `{suite.package}` | {suite.version()} | {outcome} | [guide]({guide}) |\n"


def install(suite: Suite) -> None:
    """Create the environment of a suite, again only if its requirements changed."""
    if not suite.is_python:
        _build_typescript_client()
        _npm(suite.folder, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        return
    pins = suite.folder / "requirements.txt"
    sources = pins.read_bytes() + (CLIENTS / "python" / "pyproject.toml").read_bytes()
    home = ENVIRONMENTS / suite.name
    stamp = home / hashlib.sha256(sources).hexdigest()
    if stamp.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    python = str(home / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    client = str(CLIENTS / "python")
    subprocess.run([*install, "-r", str(pins), "-e", client], check=True)
    stamp.touch()


@cache
def _build_typescript_client() -> None:
    client = CLIENTS / "typescript"
    _npm(client, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    _npm(client, "run", "build")


def _npm(folder: Path, *arguments: str) -> None:
    subprocess.run(["npm", "--silent", *arguments], cwd=folder, check=True)


def run(suite: Suite, env: dict[str, str]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        if suite.is_python:
            command = [str(ENVIRONMENTS / suite.name / "bin" / "python"), "-m", "pytest", "-q"]
            # Without the settings and the conftest of the server's own tests.
            command += ["-c", str(HERE / "pytest.ini")]
            command += [f"--rootdir={suite.folder}", f"--confcutdir={suite.folder}"]
            command += ["-p", "no:cacheprovider", f"--junitxml={report}"]
        else:
            command = ["npm", "--silent", "test"]
            env = env | {
                "REPORT": "--test-reporter=spec --test-reporter-destination=stdout "
                f"--test-reporter=junit --test-reporter-destination={report}"
            }
        status: int | str
        try:
            status = subprocess.run(
                command, cwd=suite.folder, env=env, timeout=SUITE_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = f"not done in {SUITE_SECONDS} s"
        outcome = read_report(report) if report.exists() else Outcome(0, 0, 0)
    if status and not outcome.failed:
        print(f"{suite.name} ended with {status}", flush=True)
        return Outcome(outcome.passed, 1, outcome.skipped)
    return outcome


def read_report(report: Path) -> Outcome:
    """Return the counts of a JUnit file, as pytest and node write it."""
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sum(
        case.find("failure") is not None or case.find("error") is not None for case in cases
    )
    return Outcome(len(cases) - failed - skipped, failed, skipped)


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """Run everything that `make run` starts, in a temporary folder. Yields the environment of a
    suite."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        site = Site(Path(folder), LOG_LEVEL="WARNING")
        try:
            yield os.environ | {
                "COMMONHOLD_URL": f"http://127.0.0.1:{site.port}",
                "COMMONHOLD_TOKEN": site.token,
                "SERVER_PYTHON": sys.executable,  # has the packages of the server
            }
        finally:
            site.stop()
            print(site.running.output(), flush=True)


if __name__ == "__main__":
    main()
