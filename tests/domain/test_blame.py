"""Blame: each path of a value is attributed to the version that last changed it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.blame import BlamedPointer, attribute
from state_admin.domain.values import same

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


def at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


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
        owner = max((p for p in lines if leaf == p or leaf.startswith(f"{p}/")), key=len)
        version = lines[owner]
        # From its version on, the leaf has had its current value.
        for later in values[version - 1 :]:
            assert same(at(later, leaf), at(values[-1], leaf))
