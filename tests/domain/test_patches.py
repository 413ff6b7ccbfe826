"""Merge patch, JSON Patch, update operations."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import json_pointers
from state_admin.domain.json_pointers import MAX_HASHED
from state_admin.domain.patches import (
    JSON_PATCH_OPS,
    MAX_OPERATIONS,
    UPDATE_OPS,
    PatchRefused,
    PatchTestFailed,
    json_patch,
    merge_patch,
    update,
)
from state_admin.domain.values import dump, identity, load, same
from tests.domain import reference_patches, strategies


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch__examples_of_the_rfc__are_satisfied(
    target: object, patch: object, result: object
) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == result
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        ({"l": [1, 2]}, [{"op": "add", "path": "/l/-", "value": 3}], {"l": [1, 2, 3]}),
        ({"l": [1, 2]}, [{"op": "add", "path": "/l/2", "value": 3}], {"l": [1, 2, 3]}),
        ({"l": [1, 2]}, [{"op": "add", "path": "/l/0", "value": 0}], {"l": [0, 1, 2]}),
        ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
        ({"-": 1}, [{"op": "replace", "path": "/-", "value": 2}], {"-": 2}),
        ({"0": 1}, [{"op": "remove", "path": "/0"}], {}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
        ({"a": 1}, [{"op": "add", "path": "", "value": None}], None),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"l": [1, 2, 3]}, [{"op": "move", "from": "/l/0", "path": "/l/2"}], {"l": [2, 3, 1]}),
        ({"a": [1]}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": [1]}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
        ({"a/b": {"m~n": 1}}, [{"op": "remove", "path": "/a~1b/m~0n"}], {"a/b": {}}),
        ({"": 1}, [{"op": "test", "path": "/", "value": 1}], {"": 1}),
        ({}, [{"op": "add", "path": "/a", "value": 1, "x": "ignored"}], {"a": 1}),
        ({}, [], {}),
    ],
)
def test_json_patch__valid_operations__follow_the_rfc(
    document: object, operations: object, result: object
) -> None:
    before = copy.deepcopy((document, operations))
    assert json_patch(document, operations) == result
    assert (document, operations) == before


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ({"op": "remove", "path": "/x"}, "/0/path: 'x' does not exist in an object"),
        ({"op": "remove", "path": ""}, "/0/path: the whole document cannot be removed"),
        ({"op": "remove", "path": "/l/2"}, "/0/path: '2' does not exist in an array"),
        ({"op": "remove", "path": "/l/-"}, "/0/path: '-' does not exist in an array"),
        ({"op": "replace", "path": "/l/-", "value": 1}, "/0/path: '-' does not exist in an array"),
        ({"op": "replace", "path": "/x", "value": 1}, "/0/path: 'x' does not exist in an object"),
        ({"op": "add", "path": "/l/3", "value": 1}, "/0/path: '3' is not within the array"),
        ({"op": "add", "path": "/l/01", "value": 1}, "/0/path: '01' is not within the array"),
        ({"op": "add", "path": "/l/-1", "value": 1}, "/0/path: '-1' is not within the array"),
        ({"op": "add", "path": "/l/1e0", "value": 1}, "/0/path: '1e0' is not within the array"),
        ({"op": "add", "path": "/l/٣", "value": 1}, "/0/path: '٣' is not within the array"),
        (
            {"op": "add", "path": "/l/" + "9" * 5000, "value": 1},
            "/0/path: '99999999999999999999999999999999999999999999999999999999999999999999999999999999' is not within the array",
        ),
        (
            {"op": "remove", "path": "/" + "x" * 90},
            f"/0/path: '{'x' * 80}' does not exist in an object",
        ),
        (
            {"op": "add", "path": "/n/" + "x" * 90, "value": 1},
            f"/0/path: '{'x' * 80}' does not exist in a number",
        ),
        (
            {"op": "x" * 90, "path": ""},
            f"/0/op: unknown op '{'x' * 40}'; the ops are {JSON_PATCH_OPS}",
        ),
        ({"op": "add", "path": "/n/a", "value": 1}, "/0/path: 'a' does not exist in a number"),
        ({"op": "add", "path": "/s/0", "value": 1}, "/0/path: '0' does not exist in a string"),
        ({"op": "add", "path": "/x/y", "value": 1}, "/0/path: 'x' does not exist in an object"),
        (
            {"op": "add", "path": "x", "value": 1},
            "/0/path: 'path' must be a JSON Pointer, such as /a/0 or /a~1b",
        ),
        (
            {"op": "add", "path": "/a~2", "value": 1},
            "/0/path: 'path' must be a JSON Pointer, such as /a/0 or /a~1b",
        ),
        (
            {"op": "add", "path": "/a~", "value": 1},
            "/0/path: 'path' must be a JSON Pointer, such as /a/0 or /a~1b",
        ),
        ({"op": "add", "path": "/a" * 65, "value": 1}, "/0/path: 'path' is deeper than 64 levels"),
        ({"op": "add", "path": 1, "value": 1}, "/0/path: 'path' must be a string"),
        ({"op": "add", "value": 1}, "/0/path: 'path' is missing"),
        ({"op": "add", "path": "/x"}, "/0/value: 'value' is missing"),
        ({"op": "test", "path": "/n"}, "/0/value: 'value' is missing"),
        (
            {"op": "move", "from": "/o", "path": "/o/p"},
            "/0/path: a value cannot be moved into its own child",
        ),
        (
            {"op": "move", "from": "", "path": "/o"},
            "/0/path: a value cannot be moved into its own child",
        ),
        ({"op": "move", "from": "/x", "path": "/y"}, "/0/from: 'x' does not exist in an object"),
        ({"op": "copy", "path": "/y"}, "/0/from: 'from' is missing"),
        ({"op": "copy", "from": "/l/-", "path": "/y"}, "/0/from: '-' does not exist in an array"),
        (
            {"op": "wizard", "path": "/y"},
            f"/0/op: unknown op 'wizard'; the ops are {JSON_PATCH_OPS}",
        ),
        ({"path": "/y"}, "/0/op: 'op' is missing"),
        ("add", "/0: an operation must be an object, not a string"),
        (None, "/0: an operation must be an object, not null"),
        (
            {"op": "remove", "path": "/\ud800\0"},
            "/0/path: '\\ud800\\0' does not exist in an object",
        ),
    ],
)
def test_json_patch__inapplicable_operation__is_located(operation: object, fault: str) -> None:
    document = {"l": [1, 2], "n": 1, "s": "text", "o": {"p": 1}}
    with pytest.raises(PatchRefused) as error:
        json_patch(document, [operation])
    assert str(error.value) == fault


@pytest.mark.parametrize("operations", [{}, None, "x", [{}] * (MAX_OPERATIONS + 1)])
def test_json_patch__not_a_list_or_too_long__is_refused(operations: object) -> None:
    with pytest.raises(PatchRefused) as refused:
        json_patch({}, operations)
    assert [fault.pointer for fault in refused.value.faults] == [""]
    assert str(refused.value).startswith("a patch ")


@pytest.mark.parametrize(
    ("path", "value"),
    [("/a", True), ("/a", "1"), ("/x", None), ("/l/0/z", 1), ("/l/7", 1), ("/b", 1)],
)
def test_json_patch__failed_test__is_located(path: str, value: object) -> None:
    with pytest.raises(PatchTestFailed) as error:
        json_patch({"a": 1, "b": True, "l": [1]}, [{"op": "test", "path": path, "value": value}])
    assert error.value.pointer == path


def test_json_patch__one_operation_refused__reports_its_index() -> None:
    good = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(PatchRefused) as error:
        json_patch({}, [good, good, {"op": "remove", "path": "/nope"}])
    assert error.value.faults[0].pointer == "/2/path"


@pytest.mark.parametrize(
    "operation",
    [{"op": "copy", "from": "", "path": "/a"}, {"op": "copy", "from": "/s", "path": "/l/-"}],
)
def test_json_patch__repeatedly_doubled_copies__are_refused(operation: object) -> None:
    with pytest.raises(PatchRefused) as refused:
        json_patch({"s": "x" * 100_000, "l": []}, [operation] * 1_000)
    (fault,) = refused.value.faults
    assert fault.pointer.endswith("/from")
    assert fault.message == "the patch copies more than the size limit of a value"


_paths = st.lists(st.sampled_from(["a", "b", "c/d", "0", "1", "-", "", "e~f"]), max_size=3).map(
    lambda parts: jsonpointer.JsonPointer.from_parts(parts).path
)
_operations = st.lists(
    st.builds(
        lambda op, path, origin, value: {"op": op, "path": path, "from": origin, "value": value},
        st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        _paths,
        _paths,
        strategies.close_values,
    ),
    max_size=4,
)


@given(strategies.close_values, _operations)
def test_json_patch__any_patch__has_the_result_of_a_library(
    document: object, operations: list[dict[str, object]]
) -> None:
    before = json.dumps([document, operations])
    try:
        expected = jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(operations))
    except jsonpatch.JsonPatchTestFailed:
        with pytest.raises(PatchTestFailed):
            json_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        with pytest.raises((PatchRefused, PatchTestFailed)):
            json_patch(document, operations)
    else:
        assert same(json_patch(document, operations), expected)
    assert json.dumps([document, operations]) == before


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        ({"n": 1}, {"op": "add", "path": "/n", "value": 2}, {"n": 3}),
        ({}, {"op": "add", "path": "/n", "value": 2}, {"n": 2}),
        ({}, {"op": "add", "path": "/a/b/n", "value": 2}, {"a": {"b": {"n": 2}}}),
        (None, {"op": "add", "path": "", "value": 2}, 2),
        (None, {"op": "add", "path": "/n", "value": 2}, {"n": 2}),
        (10**30, {"op": "add", "path": "", "value": 1}, 10**30 + 1),
        (1, {"op": "add", "path": "", "value": 0.5}, 1.5),
        ([1, 2], {"op": "add", "path": "/1", "value": 5}, [1, 7]),
        ([1, 2, 3], {"op": "add", "path": "/0", "value": 5}, [6, 2, 3]),
        ({"n": 3}, {"op": "max", "path": "/n", "value": 5}, {"n": 5}),
        ({"n": 3}, {"op": "max", "path": "/n", "value": 2}, {"n": 3}),
        ({"n": 3}, {"op": "min", "path": "/n", "value": 2}, {"n": 2}),
        ({}, {"op": "min", "path": "/n", "value": -1}, {"n": -1}),
        ({"n": -4}, {"op": "max", "path": "/m", "value": -9}, {"n": -4, "m": -9}),
        ({"l": [1]}, {"op": "append", "path": "/l", "value": [2]}, {"l": [1, [2]]}),
        ({}, {"op": "append", "path": "/l", "value": 1}, {"l": [1]}),
        (
            {"l": [1]},
            {"op": "union", "path": "/l", "value": [1.0, True, 2, 2]},
            {"l": [1, True, 2]},
        ),
        ({}, {"op": "union", "path": "/l", "value": [1, 1]}, {"l": [1]}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"a": 1}, {"op": "remove", "path": "/x/y"}, {"a": 1}),
        ({"l": [1, 2]}, {"op": "remove", "path": "/l/0"}, {"l": [2]}),
        ({"l": [1, 2, 1.0, True]}, {"op": "remove", "path": "/l", "value": 1}, {"l": [2, True]}),
        ({"a": 1}, {"op": "remove", "path": "/l", "value": 1}, {"a": 1}),
        (
            {"o": {"a": 1}},
            {"op": "merge", "path": "/o", "value": {"a": None, "b": 1}},
            {"o": {"b": 1}},
        ),
        ({}, {"op": "merge", "path": "/o/p", "value": {"b": 1}}, {"o": {"p": {"b": 1}}}),
        ({"a": 1}, {"op": "set", "path": "/a", "value": None}, {"a": None}),
        ({"a": 1}, {"op": "set", "path": "", "value": [1]}, [1]),
        ({}, {"op": "set", "path": "/x/y", "value": 1}, {"x": {"y": 1}}),
        ({"l": [1]}, {"op": "set", "path": "/l/-", "value": 2}, {"l": [1, 2]}),
        ({"l": [1]}, {"op": "set", "path": "/l/1", "value": 2}, {"l": [1, 2]}),
    ],
)
def test_update__each_operation__has_its_documented_result(
    document: object, operation: object, result: object
) -> None:
    before = copy.deepcopy((document, operation))
    for written in (operation, [operation]):
        made = update(document, written)
        assert same(made, result), made
    assert (document, operation) == before


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (
            {"op": "set", "path": "/s/" + "x" * 90, "value": 1},
            f"/path: '{'x' * 80}' does not exist in a string",
        ),
        (
            {"op": "x" * 90, "path": "", "value": 1},
            f"/op: unknown op '{'x' * 40}'; the ops are {UPDATE_OPS}",
        ),
        (
            {"op": "set", "path": "", "value": 1, "x" * 90: 1},
            f"/{'x' * 90}: unknown member '{'x' * 40}'",
        ),
        (
            {"op": "add", "path": "/s", "value": 1},
            "/path: add requires a number, but the current value is a string",
        ),
        (
            {"op": "add", "path": "/b", "value": 1},
            "/path: add requires a number, but the current value is a boolean",
        ),
        ({"op": "add", "path": "/n", "value": "1"}, "/value: add requires a number, not a string"),
        (
            {"op": "add", "path": "/n", "value": True},
            "/value: add requires a number, not a boolean",
        ),
        ({"op": "add", "path": "/n", "value": None}, "/value: add requires a number, not null"),
        (
            {"op": "append", "path": "/n", "value": 1},
            "/path: append requires an array, but the current value is a number",
        ),
        (
            {"op": "union", "path": "/l", "value": 1},
            "/value: union requires an array, not a number",
        ),
        (
            {"op": "merge", "path": "/l", "value": {}},
            "/path: merge requires an object, but the current value is an array",
        ),
        (
            {"op": "merge", "path": "/o", "value": 1},
            "/value: merge requires an object, not a number",
        ),
        (
            {"op": "remove", "path": "/n", "value": 1},
            "/path: remove with a value requires an array, but the current value is a number",
        ),
        ({"op": "remove", "path": ""}, "/path: the whole document cannot be removed"),
        ({"op": "set", "path": "/n/x", "value": 1}, "/path: 'x' does not exist in a number"),
        ({"op": "set", "path": "/l/5", "value": 1}, "/path: '5' does not exist in an array"),
        (
            {"op": "set", "path": "l", "value": 1},
            "/path: 'path' must be a JSON Pointer, such as /a/0 or /a~1b",
        ),
        ({"op": "set", "path": "/l"}, "/value: 'value' is missing"),
        ({"op": "set", "value": 1}, "/path: 'path' is missing"),
        (
            {"op": "wizard", "path": "/l", "value": 1},
            f"/op: unknown op 'wizard'; the ops are {UPDATE_OPS}",
        ),
        ({"op": "set", "path": "/l", "value": 1, "vale": 2}, "/vale: unknown member 'vale'"),
        ({"path": "/l", "value": 1}, "/op: 'op' is missing"),
        (
            {"op": "add", "path": "/f", "value": 1e308},
            "/value: the sum is outside the range of a double",
        ),
        (
            {"op": "add", "path": "/big", "value": 0.5},
            "/value: the sum is outside the range of a double",
        ),
    ],
)
def test_update__wrong_type_or_place__is_located(operation: object, fault: str) -> None:
    document = {"s": "x", "b": True, "n": 1, "l": [1], "o": {}, "f": 1.7e308, "big": 10**400}
    for written, place in ((operation, fault), ([operation], "/0" + fault)):
        with pytest.raises(PatchRefused) as error:
            update(document, written)
        assert str(error.value) == place


def test_update__several_operations__are_applied_all_or_none() -> None:
    document = {"n": 1}
    good = {"op": "add", "path": "/n", "value": 1}
    assert update(document, [good, good]) == {"n": 3}
    with pytest.raises(PatchRefused):
        update(document, [good, {"op": "append", "path": "/n", "value": 1}])
    assert document == {"n": 1}


@pytest.mark.parametrize("operations", [None, 1, "x", ["x"], [None]])
def test_update__not_an_operation__is_refused(operations: object) -> None:
    with pytest.raises(PatchRefused):
        update({}, operations)


def test_update__path_at_the_depth_limit__is_created() -> None:
    made = update(None, {"op": "set", "path": "/a" * 64, "value": 1})
    for _ in range(64):
        made = made["a"]
    assert made == 1


def test_update__equal_number__keeps_the_stored_spelling() -> None:
    for verb in ("max", "min"):
        assert dump(update(load("[1.0]"), {"op": verb, "path": "/0", "value": 1})) == "[1.0]"


def test_update__of_stored_text__does_not_change_other_spellings() -> None:
    document = load('{"price":1.10,"n":1,"e":1e2}')
    made = update(document, {"op": "add", "path": "/n", "value": 1})
    assert dump(made) == '{"price":1.10,"n":2,"e":1e2}'


@given(st.lists(strategies.close_values, max_size=5), st.lists(strategies.close_values, max_size=5))
def test_union__any_lists__adds_each_missing_item_once(
    old: list[object], new: list[object]
) -> None:
    made = update(old, {"op": "union", "path": "", "value": new})
    assert made[: len(old)] == old
    for item in new:
        assert any(same(item, other) for other in made)
    added = made[len(old) :]
    for place, item in enumerate(added):
        assert not any(same(item, other) for other in [*old, *added[:place]])


_verbs = st.builds(
    lambda op, path, value: {"op": op, "path": path, "value": value},
    st.sampled_from(["add", "max", "min", "append", "union", "remove", "merge", "set"]),
    _paths,
    strategies.close_values,
) | st.builds(lambda path: {"op": "remove", "path": path}, _paths)


@given(strategies.close_values, st.lists(_verbs, max_size=6))
def test_update__any_operations__have_the_reference_result(
    document: object, operations: list[dict[str, object]]
) -> None:
    _compare(update, reference_patches.update, document, operations)


@given(
    strategies.close_values, st.lists(_operations.filter(bool).map(lambda ops: ops[0]), max_size=12)
)
def test_json_patch__many_operations__have_the_reference_result(
    document: object, operations: list[dict[str, object]]
) -> None:
    _compare(json_patch, reference_patches.json_patch, document, operations)


def _compare(function: Any, reference: Any, document: object, operations: Any) -> None:
    """The longest prefix of the operations that the reference accepts has the same result here, and
    the next operation is refused here too."""
    before = dump([document, operations])
    expected = document
    for count, operation in enumerate(operations, 1):
        try:
            expected = reference(expected, [operation])
        except reference_patches.Refused:
            with pytest.raises((PatchRefused, PatchTestFailed)):
                function(document, operations[:count])
            return
        assert dump(function(document, operations[:count])) == dump(expected)
    assert dump([document, operations]) == before


def test_update__many_operations_on_a_large_array__hash_each_item_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[object] = []
    monkeypatch.setattr(
        json_pointers, "identity", lambda item: hashed.append(item) or identity(item)
    )
    document = [{"i": i} for i in range(4_900)]
    operations = [
        {"op": "union", "path": "", "value": [{"i": 1}]},
        {"op": "remove", "path": "", "value": {"i": -1}},
        {"op": "set", "path": "/7/seen", "value": True},
        {"op": "append", "path": "", "value": {"j": 1}},
        {"op": "remove", "path": "/0"},
    ] * 200
    result = update(document, operations)
    # The array, the value of every union and remove, and the item that each other operation
    # changed.
    assert len(hashed) <= 4_900 + 5 * 200
    assert len(result) == 4_901  # 1 was removed from the front, and added once
    assert hashed.count({"i": 4_000}) == 1


def test_update__operations_that_hash_items_again__are_refused_beyond_a_limit() -> None:
    document = [["x" * 8_000] * 100]
    operations = [
        {"op": "append", "path": "/0", "value": 1},
        {"op": "union", "path": "", "value": [1]},
    ] * 100
    with pytest.raises(PatchRefused, match=f"more than {MAX_HASHED:,} bytes") as error:
        update(document, operations)
    (fault,) = error.value.faults
    assert 40 < int(fault.pointer[1:]) < 80


def test_update__union_on_the_largest_value__is_within_the_limit() -> None:
    document = [f"{i:05}" + "x" * 800 for i in range(10_000)]
    update(document, [{"op": "union", "path": "", "value": document[:5_000]}])


def test_union__numbers_of_any_spelling__are_equal_by_value() -> None:
    document = load("[1.10, 1e2, [1.50], 1]")
    items = load("[1.1, 100, [1.5], 1.0, true]")
    assert dump(update(document, {"op": "union", "path": "", "value": items})) == (
        "[1.10,1e2,[1.50],1,true]"
    )
    for item in items[:4]:
        document = update(document, {"op": "remove", "path": "", "value": item})
    assert document == []


def test_json_patch__copied_place_changed__does_not_change_the_original() -> None:
    copies = [
        {"op": "add", "path": "/a/l/0", "value": 0},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/a/l/-", "value": 1},
        {"op": "add", "path": "/b/l/-", "value": 2},
        {"op": "move", "from": "/b/l", "path": "/c"},
        {"op": "add", "path": "/c/-", "value": 3},
    ]
    assert json_patch({"a": {"l": []}}, copies) == {"a": {"l": [0, 1]}, "b": {}, "c": [0, 2, 3]}


@pytest.mark.parametrize("verb", ["copy", "move"])
def test_json_patch__result_too_deep_to_be_written__is_refused(verb: str) -> None:
    deep: Any = 1
    for _ in range(50):
        deep = {"a": deep}
    if verb == "copy":
        round_ = [{"op": "copy", "from": "", "path": "/a" * 50}]
        first = {"op": "add", "path": "", "value": deep}
    else:
        round_ = [
            {"op": "add", "path": "/a", "value": deep},
            {"op": "move", "from": "/b", "path": "/a" * 51},
            {"op": "move", "from": "/a", "path": "/b"},
        ]
        first = {"op": "add", "path": "", "value": {"b": 1}}

    dump(json_patch({}, [first, *round_ * 2]))
    with pytest.raises(PatchRefused, match="too deep"):
        json_patch({}, [first, *round_ * 200])
