"""Three-way merges of arrays: which changes of two sides go together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from state_admin.domain.json_pointers import WorkingCopy, find, parts_of
from state_admin.domain.three_way import Clash, keep_both, merge
from state_admin.domain.values import same
from tests.domain import strategies

A, B, C, D = ({"id": name, "n": 0} for name in "abcd")


def changed(item: dict[str, Any], **members: Any) -> dict[str, Any]:
    return item | members


@given(
    st.lists(strategies.close_values, min_size=1, max_size=6),
    strategies.close_values,
    strategies.close_values,
    st.data(),
)
def test_merge__two_inserts_at_different_places__keeps_both(
    base: list[Any], one: Any, other: Any, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(base) - 1))
    second = data.draw(st.integers(first + 1, len(base)))
    # Beside an equal item, the place of an insert is not unique.
    for item, place in ((one, first), (other, second)):
        assume(not any(same(item, near) for near in base[max(0, place - 1) : place + 1]))
    theirs = [*base[:first], one, *base[first:]]
    yours = [*base[:second], other, *base[second:]]
    wanted = [*base[:first], one, *base[first:second], other, *base[second:]]
    for merged, clashes in (merge(base, theirs, yours), merge(base, yours, theirs)):
        assert clashes == []
        assert same(merged, wanted)


_tasks = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abcdef"), "n": st.integers(0, 2)}),
    max_size=5,
    unique_by=lambda task: task["id"],
)


@given(_tasks, _tasks, _tasks)
def test_merge__items_with_ids__merge_like_members_of_an_object(
    base: list[Any], theirs: list[Any], yours: list[Any]
) -> None:
    merged, clashes = merge(base, theirs, yours)
    _, mirrored = merge(base, yours, theirs)
    assert len(clashes) == len(mirrored)
    if not clashes:
        sides = [{task["id"]: task for task in side} for side in (base, theirs, yours)]
        expected, found = merge(*sides)
        assert found == []
        assert {task["id"]: task for task in merged} == expected
        assert len(merged) == len(expected)


_lists = _tasks | st.lists(strategies.close_values, max_size=4)


@given(_lists, _lists, _lists)
def test_merge__clash__has_its_place_in_the_merged_value_and_in_the_sides(
    base: list[Any], theirs: list[Any], yours: list[Any]
) -> None:
    sides = {"base": {"l": base}, "theirs": {"l": theirs}, "yours": {"l": yours}}
    merged, clashes = merge(*sides.values())
    for clash in clashes:
        if "theirs" not in clash.absent:
            assert same(find(merged, parts_of(clash.pointer)), clash.theirs)
        for name in sides.keys() - {*clash.absent}:
            pointer = clash.pointers.get(name, clash.pointer)
            assert same(find(sides[name], parts_of(pointer)), getattr(clash, name))


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "merged"),
    [
        # Scalars
        ([1, 2], [0, 1, 2], [1, 2, 3], [0, 1, 2, 3]),
        ([1, 2, 3], [1, 3], [1, 2, 3, 4], [1, 3, 4]),
        ([1, 2, 3], [1, 3], [1, 2, 9, 3], [1, 9, 3]),
        ([1, 2], [1, 5, 2], [1, 5, 2, 6], [1, 5, 2, 6]),
        ([1, 2, 3], [9, 2, 3], [1, 2], [9, 2]),
        ([1, 2, 3], [1, 2], [1, 2], [1, 2]),
        # An edit beside an insert
        (
            ["book a hotel"],
            ["book a hotel in Porto"],
            ["call Ann", "book a hotel"],
            ["call Ann", "book a hotel in Porto"],
        ),
        # Items with ids: both append, both edit, one moves and the other edits, both add one id
        ([A], [A, B], [A, C], [A, B, C]),
        ([], [A], [B], [A, B]),
        ([A, B], [B, A], [A, changed(B, n=1)], [changed(B, n=1), A]),
        ([A, B], [A, changed(B, n=1)], [B, A, C], [changed(B, n=1), A, C]),
        ([A, B, C], [C, A, B], [A, D, B, C], [C, A, D, B]),
        ([A, B, C], [C, A, B], [C, A, B, D], [C, A, B, D]),
        ([A], [A, B], [changed(B, m=1), A], [A, changed(B, m=1)]),
        ([A, B], [A], [A, B, C], [A, C]),
    ],
)
def test_merge__changes_of_different_items__keeps_both(
    base: Any, theirs: Any, yours: Any, merged: Any
) -> None:
    assert merge(base, theirs, yours) == (merged, [])


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "clash"),
    [
        # The clash of one item, at its index in the merged value
        ([1, 2], [0, 1, 5], [1, 6], Clash("/2", 2, 5, 6, (), {"base": "/1", "yours": "/1"})),
        (
            [A],
            [B, changed(A, n=1)],
            [changed(A, n=2)],
            Clash("/1/n", 0, 1, 2, (), {"base": "/0/n", "yours": "/0/n"}),
        ),
        ([], [changed(A, n=1)], [changed(A, n=2)], Clash("/0/n", None, 1, 2, ("base",))),
        # The array as a whole: different inserts at one place, two orders
        ([1], [1, 2], [1, 3], Clash("", [1], [1, 2], [1, 3])),
        ([A, B, C], [B, A, C], [A, C, B], Clash("", [A, B, C], [B, A, C], [A, C, B])),
    ],
)
def test_merge__changes_of_the_same_place__is_a_conflict(
    base: Any, theirs: Any, yours: Any, clash: Clash
) -> None:
    merged, clashes = merge(base, theirs, yours)
    assert clashes == [clash]
    if not clash.pointer:
        assert merged == theirs


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "both"),
    [
        ([1], [1, 2], [1, 3], [1, 2, 3]),
        ([], ["theirs"], ["mine", "also"], ["theirs", "mine", "also"]),
        # With all other changes of both
        ([1, 2, 3], [1, 8, 2], [0, 1, 9, 2, 3], [0, 1, 8, 9, 2]),
        # The same insertion is kept once
        ([1, 2], [1, 5, 2, 7], [1, 5, 2, 8], [1, 5, 2, 7, 8]),
        # Different orders, a value that both changed, and other types
        ([A, B, C], [B, A, C], [A, C, B], None),
        ([[1]], [[1, 2], 5], [[1, 3], 6], None),
        (1, [2], [3], None),
        ({}, {"a": 1}, {"a": 2}, None),
    ],
)
def test_keep_both__inserts_at_one_place__are_both_in_the_array(
    base: Any, theirs: Any, yours: Any, both: list[Any] | None
) -> None:
    assert keep_both(Clash("", base, theirs, yours)) == both


@given(*[st.lists(strategies.close_values, max_size=4)] * 3)
def test_keep_both__any_arrays__contains_what_each_side_inserted(
    base: list[Any], theirs: list[Any], yours: list[Any]
) -> None:
    _, clashes = merge(base, theirs, yours)
    assume(clashes and clashes[0].pointer == "")
    both = keep_both(clashes[0])
    assume(both is not None)
    for item in [*theirs, *yours]:
        if not any(same(item, each) for each in base):
            assert any(same(item, each) for each in both or [])


PLAN = {"task": "book a hotel in Porto", "status": "open", "owner": "ann"}
WALK = {"task": "walk along the river", "status": "open", "owner": "bob"}
CALL = {"task": "call the agency again", "status": "open", "owner": "eve"}


@pytest.mark.parametrize(
    ("base", "remover", "editor", "place", "kept", "merged"),
    [
        # With an identity key: the other changes of both sides are merged
        ([A, B, C], [A, C], [A, changed(B, n=1), C], 1, 1, [A, changed(B, n=1), C]),
        (
            [A, B, C],
            [changed(A, n=2), C],
            [A, changed(B, n=1), C, D],
            1,
            1,
            [changed(A, n=2), changed(B, n=1), C, D],
        ),
        ([A, B], [B], [B, changed(A, n=1)], 0, 1, [B, changed(A, n=1)]),
        ([A], [], [D, changed(A, n=1)], 0, 1, [D, changed(A, n=1)]),
        # By position in a common subsequence
        (
            [PLAN, WALK, CALL],
            [PLAN, changed(CALL, owner="joe")],
            [changed(PLAN, status="done"), changed(WALK, status="done"), CALL],
            1,
            1,
            [
                changed(PLAN, status="done"),
                changed(WALK, status="done"),
                changed(CALL, owner="joe"),
            ],
        ),
        (
            ["walk", "call Ann"],
            ["walk"],
            ["walk", "call Ann today"],
            1,
            1,
            ["walk", "call Ann today"],
        ),
        ([1, 2], [], [1, 3], 1, 0, [3]),
    ],
)
def test_merge__item_removed_and_changed__is_a_conflict_of_that_item_only(
    base: list[Any], remover: list[Any], editor: list[Any], place: int, kept: int, merged: Any
) -> None:
    """`place` is that of the item in the base, and `kept` in the merged value."""
    for sides, absent, other in (
        ((remover, editor), "theirs", "yours"),
        ((editor, remover), "yours", "theirs"),
    ):
        value, (clash,) = merge(base, *sides)
        assert value == merged
        assert (clash.pointer, clash.base, clash.absent) == (f"/{kept}", base[place], (absent,))
        assert getattr(clash, other) == merged[kept]


def test_merge__each_side_removes_what_the_other_changed__is_a_conflict_of_each() -> None:
    theirs, yours = [changed(A, n=1), C], [changed(B, n=2), C, D]
    merged, clashes = merge([A, B, C], theirs, yours)
    assert merged == [changed(A, n=1), changed(B, n=2), C, D]
    assert [(clash.pointer, clash.absent) for clash in clashes] == [
        ("/0", ("yours",)),
        ("/1", ("theirs",)),
    ]
    assert merge([A, B, C], yours, theirs)[0] == merged


@given(_tasks, st.data())
def test_merge__one_item_removed_and_changed__choices_give_the_value_of_each_side(
    base: list[Any], data: st.DataObject
) -> None:
    assume(base)
    at = data.draw(st.integers(0, len(base) - 1))
    theirs = [*base[:at], *base[at + 1 :]]
    yours = [*base[:at], changed(base[at], n=9), *base[at + 1 :]]
    merged, (clash,) = merge(base, theirs, yours)
    assert clash.pointer == f"/{at}"
    assert merged == yours
    copy = WorkingCopy(merged)
    copy.remove(parts_of(clash.pointer))
    assert copy.document == theirs
