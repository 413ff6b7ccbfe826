"""What may be removed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.reference_retention import (
    RevisionInfo,
    VersionInfo,
    kept_revisions,
    removable_spans,
    removable_versions,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def history(ages: list[int], pinned: Collection[int] = ()) -> list[VersionInfo]:
    """Versions 1, 2, … with these ages in seconds."""
    return [
        VersionInfo(number, NOW - timedelta(seconds=age), number in pinned)
        for number, age in enumerate(ages, 1)
    ]


def test_kept_revisions__of_a_long_thread__are_the_newest_and_the_marked() -> None:
    infos = [
        RevisionInfo(n, labelled=n == 3, pinned=n == 7, run_id="a" if n < 20 else "b")
        for n in range(1, 41)
    ]
    assert kept_revisions(infos, keep_last=2) == {3, 7, 19, 39, 40}
    assert kept_revisions(infos, keep_last=2, keep_every=10) == {3, 7, 10, 19, 20, 30, 39, 40}
    assert kept_revisions(infos) == set(range(1, 41))


def test_kept_revisions__nothing_requested__include_the_newest() -> None:
    infos = [RevisionInfo(n) for n in (5, 9, 7)]
    assert kept_revisions(infos, keep_last=0) == {9}
    assert kept_revisions([]) == set()


_spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8) | st.none()).map(
        lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
    ),
    max_size=8,
)


@given(_spans, st.sets(st.integers(0, 25)))
def test_removable_spans__any__are_those_without_a_kept_revision(
    spans: list[tuple[int, int | None]], kept: set[int]
) -> None:
    expected = [
        (start, end)
        for start, end in spans
        if end is not None and not any(revision in kept for revision in range(start, end))
    ]
    assert removable_spans(spans, sorted(kept)) == expected


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=12, max_size=12), max_size=3),
    st.sets(st.integers(1, 12)),
)
def test_removable_spans__removed__do_not_change_any_kept_snapshot(
    writes: list[list[int]], kept: set[int]
) -> None:
    """The rows of a key: it is written at the revisions where its list has no 0, and valid until
    the next."""
    for key in writes:
        starts = [revision for revision, wrote in enumerate(key, 1) if wrote]
        rows: list[tuple[int, int | None]] = list(zip(starts, [*starts[1:], None], strict=False))

        def at(revision: int, rows: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
            return [(a, b) for a, b in rows if a <= revision and (b is None or revision < b)]

        gone = set(removable_spans(rows, sorted(kept)))
        left = [row for row in rows if row not in gone]
        assert all(at(revision, left) == at(revision, rows) for revision in kept)


@pytest.mark.parametrize(
    ("keep_last", "keep_seconds", "gone"),
    [
        (None, None, []),
        (2, None, [1, 2, 3]),
        (1, None, [1, 2, 3, 4]),
        (0, None, [1, 2, 3, 4]),
        (None, 60, [1, 2]),
        (None, 0, [1, 2, 3, 4]),
        (4, 60, [1]),
        (2, 600, []),
        (9, None, []),
    ],
)
def test_removable_versions__by_limits__are_the_old_ones(
    keep_last: int | None, keep_seconds: int | None, gone: list[int]
) -> None:
    versions = history([500, 100, 50, 10, 5])
    found = removable_versions(versions, keep_last=keep_last, keep_seconds=keep_seconds, now=NOW)
    assert found == gone
    shuffled = removable_versions(
        versions[::-1], keep_last=keep_last, keep_seconds=keep_seconds, now=NOW
    )
    assert shuffled == gone


def test_removable_versions__pinned__are_kept() -> None:
    versions = history([500, 400, 300], pinned={1})
    assert removable_versions(versions, keep_last=1, keep_seconds=None, now=NOW) == [2]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=12),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 100),
)
def test_removable_versions__any_history__keeps_newest_pinned_and_young(
    rows: list[tuple[int, bool]], keep_last: int | None, keep_seconds: int | None
) -> None:
    ages = sorted((age for age, _ in rows), reverse=True)
    pinned = {number for number, (_, pin) in enumerate(rows, 1) if pin}
    gone = removable_versions(
        history(ages, pinned), keep_last=keep_last, keep_seconds=keep_seconds, now=NOW
    )
    assert len(rows) not in gone
    assert not set(gone) & pinned
    if keep_seconds is not None:
        assert all(ages[number - 1] > keep_seconds for number in gone)
    if keep_last is not None:
        assert all(number <= len(rows) - keep_last for number in gone)
