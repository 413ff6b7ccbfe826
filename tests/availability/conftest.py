"""One cell for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from project.postgres import binaries
from tests.availability import cell as cells
from tests.availability.cell import Cell
from tests.project.conftest import temporary_folder


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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test of the history, which ends the traffic, is the last one in any order."""
    items.sort(key=lambda item: item.name == "test_history__after_all_faults__is_complete")
