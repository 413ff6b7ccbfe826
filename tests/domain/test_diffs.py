"""Differences: JSON Patch, rows, three-way merge."""

from __future__ import annotations

import copy

import jsonpatch
import pytest
from hypothesis import given, settings

from state_admin.domain import patches
from state_admin.domain.diffs import Clash, Difference, json_patch, rows, three_way
from state_admin.domain.values import same
from tests.domain import strategies


@settings(max_examples=500)
@given(strategies.close_values, strategies.close_values)
def test_json_patch__of_any_two_values__applies_exactly(before: object, after: object) -> None:
    operations = json_patch(before, after)
    assert same(patches.json_patch(before, operations), after)
    assert same(jsonpatch.apply_patch(copy.deepcopy(before), operations), after)
    assert {operation["op"] for operation in operations} <= {"add", "remove", "replace"}
    assert (operations == []) == same(before, after)


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}]),
        ({"goal": "a"}, {"goal": "b"}, [{"op": "replace", "path": "/goal", "value": "b"}]),
        ([1, 2, 3, 4], [1, 4], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]),
        ([1, 4], [1, 2, 3, 4], [{"op": "add", "path": "/1", "value": 2}, {"op": "add", "path": "/2", "value": 3}]),
        ([{"a": 1}, 2], [{"a": 5}, 2], [{"op": "replace", "path": "/0/a", "value": 5}]),
        ({"a/b~": [1]}, {"a/b~": []}, [{"op": "remove", "path": "/a~1b~0/0"}]),
        (1, [1], [{"op": "replace", "path": "", "value": [1]}]),
        ({}, [], [{"op": "replace", "path": "", "value": []}]),
        ([1, 1], [1], [{"op": "remove", "path": "/1"}]),
    ],
)  # fmt: skip
def test_json_patch__of_two_values__is_minimal(
    before: object, after: object, operations: object
) -> None:
    assert json_patch(before, after) == operations


def test_rows__of_a_change__contain_before_and_after() -> None:
    assert rows({"a": 1, "b": [1, 2], "c": 3}, {"a": 2, "b": [1], "d": 4}) == [
        Difference("/a", "changed", 1, 2),
        Difference("/b/1", "removed", 2, None),
        Difference("/c", "removed", 3, None),
        Difference("/d", "added", None, 4),
    ]


def test_rows__more_than_the_limit__are_truncated() -> None:
    assert len(rows(list(range(1000)), [])) == 500
    assert len(rows({}, {str(n): n for n in range(20)}, limit=7)) == 7


@given(strategies.close_values, strategies.close_values)
def test_three_way__one_side_untouched__is_the_other(base: object, changed: object) -> None:
    for merged, clashes in (three_way(base, changed, base), three_way(base, base, changed)):
        assert same(merged, changed)
        assert clashes == []


@given(strategies.close_values, strategies.close_values)
def test_three_way__same_change_on_both__is_not_a_conflict(base: object, changed: object) -> None:
    merged, clashes = three_way(base, changed, copy.deepcopy(changed))
    assert same(merged, changed)
    assert clashes == []


@given(strategies.close_values, strategies.close_values, strategies.close_values)
def test_three_way__sides_swapped__has_the_same_conflicts(
    base: object, theirs: object, yours: object
) -> None:
    _, clashes = three_way(base, theirs, yours)
    _, mirrored = three_way(base, yours, theirs)
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
def test_three_way__changes_of_both__merge_or_conflict(
    base: object, theirs: object, yours: object, merged: object, clashes: object
) -> None:
    made, found = three_way(base, theirs, yours)
    assert same(made, merged), made
    assert found == clashes
