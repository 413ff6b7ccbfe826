"""Each promise of docs/reliability.md names tests, and each of them exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from project.env import BASE_DIR
from tests.promises import (
    PAGE,
    TEST_ID,
    Results,
    list_ids,
    mark_promises,
    read_promises,
    update_results,
    write_report,
)


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
    found = TEST_ID.fullmatch(name)
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
    assert [row for row in promises if len(row) != 4 or not all(row)] == []
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


class Case(pytest.Item):
    """A case of a test; `nodeid` is its whole id."""

    def runtest(self) -> None:
        raise NotImplementedError


def test_mark_promises__test_with_slow_cases__is_not_marked(
    request: pytest.FixtureRequest,
) -> None:
    promised = list_ids(read_promises(PAGE.read_text(encoding="utf-8"))[0][2])[:2]
    cases = {
        nodeid: Case.from_parent(request.session, name=nodeid, nodeid=nodeid)
        for nodeid in (f"{promised[0]}[sample]", f"{promised[0]}[all]", promised[1], "test_other")
    }
    cases[f"{promised[0]}[all]"].add_marker("slow")

    mark_promises(list(cases.values()))

    found = [nodeid for nodeid, case in cases.items() if case.get_closest_marker("promise")]
    assert found == [promised[1]]


NUMBERS: dict[str, list[tuple[str, object]]] = {
    "tests/a.py::test_one[x]": [("acknowledged writes lost", 0), ("seconds without writes", 9.5)],
    "tests/a.py::test_one[y]": [("acknowledged writes lost", 2), ("acknowledged writes", 30)],
    "tests/a.py::test_two": [("seconds without writes", 10), ("acknowledged writes", 400)],
}


def results() -> Results:
    """Of a promise whose test passes in one case and fails in the other, and of one that passes."""
    found = Results()
    for nodeid, when, outcome, longrepr in (
        ("tests/a.py::test_one[x]", "call", "passed", None),
        ("tests/a.py::test_one[y]", "call", "failed", "AssertionError: 1 | 2"),
        ("tests/a.py::test_two", "call", "passed", None),
        ("tests/a.py::test_three", "setup", "skipped", ("a.py", 1, "Skipped: no network")),
    ):
        for phase in ("call", "teardown") if when == "call" else ("setup",):
            found.add(
                pytest.TestReport(
                    nodeid,
                    ("", 0, ""),
                    {},
                    outcome if phase == when else "passed",  # type: ignore[arg-type]
                    longrepr if phase == when else None,  # type: ignore[arg-type]
                    phase,  # type: ignore[arg-type]
                    user_properties=NUMBERS.get(nodeid, []),
                    duration=2.0,
                )
            )
    return found


ROWS = """
| promise | how | tests | last result |
|---|---|---|---|
| P | h | `tests/a.py::test_one`, `tests/a.py::test_two` | passed |
| Q | h | `tests/a.py::test_two` | not run |
| R | h | `tests/a.py::test_three`, `tests/a.py::test_two` | passed |
| S | h | `tests/a.py::test_four`, `tests/a.py::test_two` | passed |
"""


def test_report__run_with_a_failure__has_each_result_number_and_reason() -> None:
    report = write_report(read_promises(ROWS), results(), "4 processes")

    assert "1 failed, 1 not run, 1 skipped, 1 passed" in report
    for row in (
        "4 processes",
        "| failed | P | h | `tests/a.py::test_one`, `tests/a.py::test_two` |",
        "| passed | Q | h | `tests/a.py::test_two` |",
        "| acknowledged writes | 430 |",
        "| acknowledged writes lost | 2 |",
        "| versions missing or wrong | 0 |",
        "| longest time without writes, in seconds: `tests/a.py::test_two` | 10.0 |",
        "| `tests/a.py::test_one[x]` | seconds without writes | 9.5 |",
        "| `tests/a.py::test_two` | 4 |",
        "| `tests/a.py::test_one[y]` | AssertionError: 1 \\| 2 |",
        "| `tests/a.py::test_three` | no network |",
    ):
        assert row in report.splitlines()


def test_page__after_a_run__has_its_results_and_keeps_those_of_tests_that_did_not_run() -> None:
    page = update_results(ROWS, results())

    assert [row[3] for row in read_promises(page)] == ["failed", "passed", "skipped", "passed"]
    assert [row[:3] for row in read_promises(page)] == [row[:3] for row in read_promises(ROWS)]
