"""The table of docs/compatibility.md."""

from __future__ import annotations

from compat.__main__ import PAGE, Outcome, find_suites, page


def test_page__one_suite_ran__only_its_row_is_new() -> None:
    suites = find_suites()
    previous = PAGE.read_text()
    written = page(suites, {suites[1]: Outcome(passed=7, failed=2, skipped=1)}, previous=previous)
    (old, new) = (text.splitlines() for text in (previous, written))
    changed = [line for line in new if line not in old]
    assert len(new) == len(old)
    assert [line.split("|")[4] for line in changed] == [" 2 fail, 1 skipped "]
    assert suites[1].title in changed[0]


def test_page__every_suite__has_a_row_with_the_pinned_version() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if "[guide]" in line]
    assert [(title.strip(), version.strip()) for _, title, _, version, *_ in rows] == [
        (suite.title, suite.version()) for suite in find_suites()
    ]
