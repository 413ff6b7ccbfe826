"""Many changes of one working copy have the result of separate changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import json_pointers
from state_admin.domain.json_pointers import Mismatch, WorkingCopy, parts_of
from state_admin.domain.values import dump
from tests.domain import reference_patches

# Few values and few places, so that most operations apply and affect one another's results.
_item = st.sampled_from([1, 2, {"a": 1}, {"a": [1]}, [1], [1, 2]])
_place = st.sampled_from(["", "", "", "/0", "/1", "/-", "/0/0", "/0/a"])
_updates = st.builds(
    lambda op, path, items: {"op": op, "path": path, "value": items if op == "union" else items[0]},
    st.sampled_from(["union", "union", "remove", "remove", "append", "set", "add", "max"]),
    _place,
    st.lists(_item, min_size=1, max_size=3),
)
_merges = st.builds(
    lambda path, name, item: {"op": "merge", "path": path, "value": {name: item}},
    _place,
    st.sampled_from("ab"),
    _item | st.none(),
)
_patches = st.builds(
    lambda op, path, origin, item: {"op": op, "path": path, "from": origin, "value": item},
    st.sampled_from(["add", "remove", "replace", "move", "copy"]),
    _place,
    _place,
    _item,
)


@given(
    st.lists(_item, max_size=5),
    st.lists(
        st.tuples(st.just("update"), _updates | _merges) | st.tuples(st.just("patch"), _patches),
        max_size=15,
    ),
)
def test_working_copy__changes_of_every_kind__equal_those_of_separate_copies(
    document: list[Any], operations: list[tuple[str, dict[str, Any]]]
) -> None:
    before = dump([document, [operation for _, operation in operations]])
    expected: Any = document
    copy = WorkingCopy(document)
    for family, operation in operations:
        reference = reference_patches.update if family == "update" else reference_patches.json_patch
        try:
            expected = reference(expected, [operation])
        except reference_patches.Refused:
            continue
        _apply(copy, family, operation)
        assert dump(copy.document) == dump(expected)
    assert dump([document, [operation for _, operation in operations]]) == before


_INDEX = ("update", {"op": "union", "path": "", "value": [9]})


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("update", [{"op": "set", "path": "/0/a", "value": 5}]),
        ("update", [{"op": "merge", "path": "/0", "value": {"a": 5}}]),
        ("update", [{"op": "append", "path": "/1", "value": 5}]),
        ("update", [{"op": "set", "path": "/0", "value": 5}]),
        ("update", [{"op": "set", "path": "/-", "value": 5}]),
        ("update", [{"op": "append", "path": "", "value": 5}]),
        ("update", [{"op": "remove", "path": "", "value": {"a": 1}}]),
        ("patch", [{"op": "remove", "path": "/0", "value": None}]),
        ("patch", [{"op": "replace", "path": "/0", "value": 5}]),
        ("patch", [{"op": "add", "path": "/1", "value": 5}]),
        ("patch", [{"op": "add", "path": "/0/a", "value": 5}]),
        ("patch", [{"op": "move", "path": "/1", "from": "/0", "value": None}]),
        (
            "patch",
            [
                {"op": "copy", "path": "/-", "from": "/1", "value": None},
                {"op": "add", "path": "/1/-", "value": 5},
                {"op": "add", "path": "/4/-", "value": 6},
            ],
        ),
    ],
)
def test_working_copy__array_changed_after_a_union__has_a_current_index(
    family: str, changes: list[dict[str, Any]]
) -> None:
    document = [{"a": 1}, [1], {"a": 1}]
    copy, expected = WorkingCopy(document), document
    items = [{"a": 1}, {"a": 5}, [1], [1, 5], 5, 9]
    unions = [("update", {"op": "union", "path": "", "value": [item]}) for item in items]
    removals = [("update", {"op": "remove", "path": "", "value": item}) for item in items]
    steps = [_INDEX, *((family, change) for change in changes), *unions, *removals, *unions]
    for kind, operation in steps:
        reference = reference_patches.update if kind == "update" else reference_patches.json_patch
        expected = reference(expected, [operation])
        _apply(copy, kind, operation)
        assert dump(copy.document) == dump(expected)
    assert document == [{"a": 1}, [1], {"a": 1}]


def _apply(copy: WorkingCopy, family: str, operation: dict[str, Any]) -> None:
    verb, path, value = operation["op"], parts_of(operation["path"]), operation["value"]
    if family == "patch":
        if verb == "add":
            copy.add(path, value)
        elif verb == "remove":
            copy.remove(path)
        elif verb == "replace":
            copy.replace(path, value)
        elif verb == "move":
            copy.move(parts_of(operation["from"]), path)
        else:
            copy.duplicate(parts_of(operation["from"]), path)
    elif verb == "union":
        copy.extend(path, value, verb="union")
    elif verb == "append":
        copy.extend(path, [value])
    elif verb == "remove":
        copy.discard(path, value)
    elif verb == "merge":
        copy.merge(path, value)
    elif verb == "set":
        copy.put(path, value)
    else:
        copy.change(path, lambda old: _number(verb, old, value))


def _number(verb: str, old: Any, value: Any) -> Any:
    try:
        return reference_patches.combine(verb, old, value)
    except reference_patches.Refused:
        raise Mismatch("no number") from None


@pytest.mark.parametrize(
    ("verbs", "result"),
    [
        ("union:1 remove:/0 union:1", [1]),
        ("union:1 union:2 remove:/0 union:2 union:1", [2, 1]),
        ("union:1 append:3 append:4 union:3 union:4", [1, 3, 4]),
        ("append:1 append:1 union:1 remove:/0 union:1 remove:/0 union:1", [1]),
        ("union:1 append:1 remove:/1 union:1", [1]),
    ],
)
def test_working_copy__items_added_and_removed__are_counted(verbs: str, result: list[int]) -> None:
    copy = WorkingCopy([])
    for verb in verbs.split():
        name, _, what = verb.partition(":")
        if name == "remove":
            copy.remove(parts_of(what))
        else:
            copy.extend([], [int(what)], verb=name)
    assert copy.document == result


def test_budget__exceeded__error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pointers, "MAX_HASHED", 100)
    with pytest.raises(Mismatch) as refused:
        WorkingCopy([]).extend([], ["a" * 100], verb="union")
    assert str(refused.value).endswith(
        " bytes of array items; send fewer of them, or keep the array in smaller parts"
    )
