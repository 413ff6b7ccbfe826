"""Each promise of docs/reliability.md names tests, and each of them exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from project.env import BASE_DIR

PAGE = BASE_DIR / "docs" / "reliability.md"

_TEST_ID = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>(?:\w+::)?test_\w+)`")


def read_promises(markdown: str) -> list[list[str]]:
    """The cells of each row of the table: promise, how, tests."""
    rows = [line.strip("|").split(" | ") for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def list_tests(path: Path) -> Iterator[str]:
    """The ids of a file's tests, without their parameters, from its source."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}::{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            )


def is_test(name: str) -> bool:
    """Whether `name` is the id of an existing test, in backticks."""
    found = _TEST_ID.fullmatch(name)
    if found is None:
        return False
    path = BASE_DIR / found["path"]
    return path.exists() and found["name"] in list_tests(path)


def find_missing(cell: str) -> list[str]:
    """The entries in a cell of tests that are not tests. Ids are separated by commas."""
    return [name for name in cell.split(", ") if not is_test(name)]


def test_promises__each__names_tests_that_exist() -> None:
    promises = read_promises(PAGE.read_text(encoding="utf-8"))
    assert len(promises) > 20
    assert [row for row in promises if len(row) != 3 or not all(row)] == []
    assert {row[0]: missing for row in promises if (missing := find_missing(row[2]))} == {}


def test_missing__unknown_test__is_reported() -> None:
    here = "`tests/docs/test_reliability.py::test_promises__each__names_tests_that_exist`"
    install = "`tests/clients/test_install.py::TestDist::test_python_package__in_an_empty_environment__runs_the_guides_first_block`"
    assert find_missing(f"{here}, {install}") == []
    for wrong in (
        "`tests/docs/test_reliability.py::test_gone`",
        "`tests/docs/test_gone.py::test_gone`",
        "`tests/docs/test_reliability.py::find_missing`",
        "tests/services",
        here.strip("`"),
        "",
    ):
        assert find_missing(f"{here}, {wrong}") == [wrong]
