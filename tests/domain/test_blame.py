"""Blame: each path of a value is attributed to the version that last changed it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from state_admin.domain.blame import BlamedPointer, attribute, follow
from state_admin.domain.values import MISSING, same

# Versions oldest first; None means deleted.
Gone = object()


def blame(*values: Any) -> dict[str, int]:
    history = [
        (number, None if value is Gone else value, value is not Gone)
        for number, value in enumerate(values, start=1)
    ]
    return {line.pointer: line.version for line in attribute(reversed(history))}


def test_blame__one_version__set_everything() -> None:
    assert blame({"a": 1, "b": {"c": 2}}) == {"": 1}


def test_blame__changed_member__is_attributed_to_its_version_alone() -> None:
    assert blame({"a": 1, "b": 1}, {"a": 1, "b": 2}) == {"": 1, "/b": 2}


def test_blame__same_value_written_again__stays_with_the_first() -> None:
    assert blame({"a": 1}, {"a": 1}, {"a": 1}) == {"": 1}


def test_blame__nested_change__names_the_deepest_place() -> None:
    assert blame({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}) == {"": 1, "/a/b/1": 2}


def test_blame__added_member__is_attributed_to_its_version_as_is_the_set_of_members() -> None:
    assert blame({"a": 1}, {"a": 1, "b": 2}) == {"": 2, "/a": 1}


def test_blame__changed_and_changed_back__belongs_to_the_last_change() -> None:
    assert blame({"a": 1, "b": 0}, {"a": 2, "b": 0}, {"a": 1, "b": 0}) == {"": 1, "/a": 3}


def test_blame__deleted_and_recreated__ignores_versions_before_the_deletion() -> None:
    assert blame({"a": 1}, Gone, {"a": 1}) == {"": 3}


def test_blame__deleted_entry__has_no_lines() -> None:
    assert blame({"a": 1}, Gone) == {}


def test_blame__changed_type__is_attributed_completely() -> None:
    assert blame({"a": 1}, [1], "x") == {"": 3}


def test_blame__everything_attributed__reads_no_older_version() -> None:
    def history() -> Any:
        yield 3, {"a": 2}, True
        yield 2, {"b": 1}, True
        raise AssertionError("read too far")

    assert list(attribute(history())) == [BlamedPointer("", 3)]


_values = st.recursive(
    st.integers(0, 2),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)


def leaves(value: Any, pointer: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [p for k, v in value.items() for p in leaves(v, f"{pointer}/{k}")]
    if isinstance(value, list) and value:
        return [p for i, v in enumerate(value) for p in leaves(v, f"{pointer}/{i}")]
    return [pointer]


@given(st.lists(_values, min_size=1, max_size=6))
def test_blame__every_leaf__was_last_changed_in_its_version(values: list[Any]) -> None:
    lines = blame(*values)
    for leaf in leaves(values[-1]):
        version = owner(lines, leaf)
        # From its version on, the value has had the leaf, at this index or at another one.
        for later in values[version - 1 :]:
            assert any(same(at(values[-1], leaf), found) for found in matches(later, leaf))


def owner(lines: dict[str, int], pointer: str) -> int:
    return lines[max((p for p in lines if pointer == p or pointer.startswith(f"{p}/")), key=len)]


def at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def matches(value: Any, pointer: str) -> list[Any]:
    """The values at a pointer, with every item of an array instead of the one at its index."""
    found = [value]
    for part in pointer.split("/")[1:]:
        objects = [each[part] for each in found if isinstance(each, dict) and part in each]
        found = objects + [item for each in found if isinstance(each, list) for item in each]
    return found


@given(st.lists(_values, max_size=5), st.lists(st.tuples(st.integers(0, 9), _values), max_size=5))
def test_blame__inserted_items__never_blame_their_neighbours(
    base: list[Any], inserts: list[tuple[int, Any]]
) -> None:
    # Each item with the version that inserted it; an item beside an equal one cannot be
    # distinguished from it.
    items = [(item, 1) for item in base]
    history = [list(base)]
    for version, (place, item) in enumerate(inserts, start=2):
        place = min(place, len(items))
        assume(not any(same(item, near) for near, _ in items[max(0, place - 1) : place + 1]))
        items.insert(place, (item, version))
        history.append([each for each, _ in items])
    lines = blame(*history)
    for index, (_, version) in enumerate(items):
        assert owner(lines, f"/{index}") == version
        assert not any(pointer.startswith(f"/{index}/") for pointer in lines)


def test_blame__edit_beside_an_insert__names_the_member_alone() -> None:
    first = {"title": "book a hotel", "done": False}
    after = [{"title": "pay", "done": False}, {**first, "done": True}]
    assert blame([first], after) == {"": 2, "/1": 1, "/1/done": 2}


def test_blame__beyond_the_effort__compares_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = ([1, 2, 3], [0, 1, 5, 3])
    assert blame(*versions) == {"": 2, "/1": 1, "/3": 1}
    monkeypatch.setattr("state_admin.domain.blame.MAX_EFFORT", 0)
    assert blame(*versions) == {"": 2, "/3": 1}
    assert blame([1, 2], [0, 1, 2]) == {"": 2, "/1": 1, "/2": 1}


def test_blame__item_with_an_id__is_followed_when_it_moves() -> None:
    versions = (
        [{"id": 1, "n": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1}],
        [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 1}],
        [{"id": 3, "n": 1}, {"id": 1, "n": 1}, {"id": 2, "n": 2}],
        [{"id": 4, "n": 1}, {"id": 3, "n": 1}, {"id": 2, "n": 2}],
    )
    assert blame(*versions[:3]) == {"": 3, "/0": 1, "/1": 1, "/2": 1, "/2/n": 2}
    assert blame(*versions) == {"": 4, "/1": 1, "/2": 1, "/2/n": 2}


def test_blame__removed_and_inserted_again__belongs_to_the_last_insert() -> None:
    assert blame(["a", "b"], ["b"], ["a", "b"]) == {"": 3, "/1": 1}
    # The first "a" is the oldest one, although the index of the second one had an "a" before, too.
    assert blame(["z", "a", "y"], ["a", "y"], ["a", "a", "y"]) == {"": 3, "/0": 1, "/2": 1}


def changes(pointer: str, *values: Any) -> list[tuple[int, str, Any, Any]]:
    """The changes at a path, oldest first: version, place of the value, before and after."""
    history = [
        (number, None if value is Gone else value, value is not Gone)
        for number, value in enumerate((Gone, *values))
    ]
    return [
        (step.version, "/".join(["", *place]), step.before, step.after)
        for step in follow(reversed(history), pointer.split("/")[1:])
        if step.is_change
        for place in [step.path_before if step.after is MISSING else step.path]
    ][::-1]


def test_follow__other_members__are_left_out() -> None:
    versions = ({"a": {"b": 1}, "c": 1}, {"a": {"b": 1}, "c": 2}, {"a": {"b": 2}, "c": 2})
    assert changes("/a/b", *versions) == [(1, "/a/b", MISSING, 1), (3, "/a/b", 1, 2)]


def test_follow__insert_before_the_item__is_no_change() -> None:
    versions = (["x", {"n": 1}], ["x", {"n": 2}], ["new", "x", {"n": 2}], ["new", "x", {"n": 3}])
    assert changes("/2/n", *versions) == [
        (1, "/1/n", MISSING, 1),
        (2, "/1/n", 1, 2),
        (4, "/2/n", 2, 3),
    ]


def test_follow__inserted_item__begins_with_its_version() -> None:
    steps = list(follow(iter([(3, [1, 2], True), (2, [1], True), (1, [5, 6], True)]), ["1"]))
    assert [(step.version, step.before, step.begins) for step in steps] == [(3, MISSING, True)]


def test_follow__deleted_and_restored__shows_both_and_what_was_before() -> None:
    versions = ([{"id": 1, "n": 1}], Gone, [{"id": 2, "n": 5}, {"id": 1, "n": 1}])
    assert changes("/1/n", *versions) == [
        (1, "/0/n", MISSING, 1),
        (2, "/0/n", 1, MISSING),
        (3, "/1/n", MISSING, 1),
    ]


def test_follow__removed_member_of_the_newest__is_found_in_older_versions() -> None:
    versions = ({"a": 1}, {"a": [7]}, {}, {"b": 1})
    assert changes("/a/0", *versions) == [(2, "/a/0", MISSING, 7), (3, "/a/0", 7, MISSING)]
    assert changes("/nothing", *versions) == []


@given(st.lists(_values, min_size=1, max_size=6))
def test_follow__each_part__last_changed_in_the_version_that_blame_names(
    values: list[Any],
) -> None:
    lines = blame(*values)
    for leaf in leaves(values[-1]):
        assert changes(leaf, *values)[-1][0] == owner(lines, leaf)
