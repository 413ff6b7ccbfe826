"""Differences: JSON Patch, rows, three-way merge."""

from __future__ import annotations

import copy

import jsonpatch
import pytest
from hypothesis import given, settings

from state_admin.domain import diffs, patches, values
from state_admin.domain.alignment import align
from state_admin.domain.diffs import Difference, json_patch, rows
from state_admin.domain.values import JSON, same
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


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        # One insert is one operation, whatever the length; so is a removal.
        ([{"n": n} for n in range(17)], [{"n": -1}, *({"n": n} for n in range(17))],
         [{"op": "add", "path": "/0", "value": {"n": -1}}]),
        ([1, 2, 3, 4, 5], [2, 3, 9, 4, 5],
         [{"op": "remove", "path": "/0"}, {"op": "add", "path": "/2", "value": 9}]),
        # Changes have the index in the new value.
        ([{"id": 1, "n": 1}, {"id": 2, "n": 1}], [{"id": 3}, {"id": 1, "n": 1}, {"id": 2, "n": 2}],
         [{"op": "add", "path": "/0", "value": {"id": 3}},
          {"op": "replace", "path": "/2/n", "value": 2}]),
        # An item that moved is removed and added.
        ([{"id": 1}, {"id": 2}, {"id": 3}], [{"id": 3}, {"id": 1}, {"id": 2}],
         [{"op": "remove", "path": "/2"}, {"op": "add", "path": "/0", "value": {"id": 3}}]),
    ],
)  # fmt: skip
def test_json_patch__of_two_arrays__follows_the_items(
    before: object, after: object, operations: object
) -> None:
    assert json_patch(before, after) == operations
    assert same(patches.json_patch(before, operations), after)


@settings(max_examples=500)
@given(strategies.keyed_arrays, strategies.keyed_arrays)
def test_json_patch__of_items_with_identities__applies_exactly(
    before: object, after: object
) -> None:
    operations = json_patch(before, after)
    assert same(patches.json_patch(before, operations), after)
    assert same(jsonpatch.apply_patch(copy.deepcopy(before), operations), after)


def test_json_patch__numbers__keep_their_text() -> None:
    before, after = values.load('[{"id": 1}]'), values.load('[{"id": 2, "n": 1.10}, {"id": 1.0}]')
    assert values.dump(json_patch(before, after)) == (
        '[{"op":"add","path":"/0","value":{"id":2,"n":1.10}}]'
    )


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


def test_rows__equal_items_of_an_array__are_not_compared_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aligned = list[object]()

    def count(before: list[JSON], after: list[JSON], key: str | None) -> list[int | None]:
        aligned.append(after)
        return align(before, after, key)

    monkeypatch.setattr(diffs, "align", count)
    before: JSON = {"items": [{"id": n, "tags": ["a", "b"]} for n in range(9)]}
    after: JSON = {"items": [{"id": n, "tags": ["a", "b" if n else "c"]} for n in range(9)]}
    assert rows(before, after) == [Difference("/items/0/tags/1", "changed", "b", "c")]
    assert aligned == [after["items"], ["a", "c"]]


def test_rows__equal_items_in_deeply_nested_arrays__are_none() -> None:
    before, after = [[[[[1], [2]], [3]]]], [[[[[1], [4]], [3]]]]
    assert rows(before, after) == [Difference("/0/0/0/1/0", "changed", 2, 4)]
