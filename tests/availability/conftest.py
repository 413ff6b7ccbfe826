"""A cell for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.availability.cell import Cell, skip_without_programs
from tests.availability.traffic import Traffic
from tests.project.conftest import temporary_folder


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    skip_without_programs()
    with temporary_folder() as folder:
        cell = Cell(folder)
        try:
            yield cell
        finally:
            cell.stop()


@pytest.fixture(scope="module")
def traffic(cell: Cell) -> Iterator[Traffic]:
    """Clients of the cell of the module."""
    traffic = Traffic(cell.web_port, cell.token)
    try:
        traffic.wait_for_more()
        yield traffic
    finally:
        traffic.stop(follow=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test of the history, which ends the traffic, is the last one of its file in any order."""
    files: dict[Path, int] = {}
    for item in items:
        files.setdefault(item.path, len(files))
    items.sort(key=lambda item: (files[item.path], item.name.startswith("test_history__")))
