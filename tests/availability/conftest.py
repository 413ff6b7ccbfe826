"""One cell for all tests of this folder, and a report of how long each fault interrupted writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from project.postgres import binaries
from tests.availability import cell as cells
from tests.availability.cell import Cell
from tests.project.conftest import temporary_folder

REPORT = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def cell(request: pytest.FixtureRequest) -> Iterator[Cell]:
    if not cells.PATRONI.exists():
        pytest.skip("Patroni is not installed: make chaos installs it")
    if binaries.identity().uid is not None:
        pytest.skip("PostgreSQL does not run as root, and user namespaces are not permitted")
    with temporary_folder() as folder:
        cell = Cell(folder)
        try:
            yield cell
        finally:
            cell.stop()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the report at the end of the run."""
    return request.config.stash.setdefault(REPORT, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = config.stash.get(REPORT, [])
    if lines:
        terminalreporter.section("high availability")
        for line in lines:
            terminalreporter.write_line(line)
