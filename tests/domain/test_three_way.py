"""Three-way merges of values."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given

from state_admin.domain.three_way import Clash, merge
from state_admin.domain.values import same
from tests.domain import strategies


@given(strategies.close_values, strategies.close_values)
def test_merge__one_side_untouched__is_the_other(base: object, changed: object) -> None:
    for merged, clashes in (merge(base, changed, base), merge(base, base, changed)):
        assert same(merged, changed)
        assert clashes == []


@given(strategies.close_values, strategies.close_values)
def test_merge__same_change_on_both__is_not_a_conflict(base: object, changed: object) -> None:
    merged, clashes = merge(base, changed, copy.deepcopy(changed))
    assert same(merged, changed)
    assert clashes == []


@given(strategies.close_values, strategies.close_values, strategies.close_values)
def test_merge__sides_swapped__has_the_same_conflicts(
    base: object, theirs: object, yours: object
) -> None:
    _, clashes = merge(base, theirs, yours)
    _, mirrored = merge(base, yours, theirs)
    assert {c.pointer for c in clashes} == {c.pointer for c in mirrored}
    for clash in clashes:
        assert not same(clash.theirs, clash.yours) or clash.absent


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "merged", "clashes"),
    [
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}, []),
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}, [Clash("/a", 1, 2, 3)]),
        ({"a": 1}, {}, {"a": 3}, {}, [Clash("/a", 1, None, 3, ("theirs",))]),
        ({"a": 1}, {"a": 2}, {}, {"a": 2}, [Clash("/a", 1, 2, None, ("yours",))]),
        ({}, {"a": 1}, {"a": 2}, {"a": 1}, [Clash("/a", None, 1, 2, ("base",))]),
        ({"a": 1, "b": 1}, {"b": 1}, {"a": 1}, {}, []),
        ({}, {"a": {"x": 1}}, {"a": {"y": 1}}, {"a": {"x": 1, "y": 1}}, []),
        ({"l": [1, 2]}, {"l": [5, 2]}, {"l": [1, 6]}, {"l": [5, 6]}, []),
        ({"l": [1]}, {"l": [1, 2]}, {"l": [1, 3]}, {"l": [1, 2]}, [Clash("/l", [1], [1, 2], [1, 3])]),
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}, []),
        (1, 2, 3, 2, [Clash("", 1, 2, 3)]),
    ],
)  # fmt: skip
def test_merge__changes_of_both__merge_or_conflict(
    base: object, theirs: object, yours: object, merged: object, clashes: object
) -> None:
    made, found = merge(base, theirs, yours)
    assert same(made, merged), made
    assert found == clashes
