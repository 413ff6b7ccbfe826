"""The alignment of arrays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import alignment
from state_admin.domain.alignment import Effort, align, identity_key, in_order
from state_admin.domain.values import same
from tests.domain import strategies

few = st.lists(st.sampled_from([0, 1, 2, "a b c", "a b d", True, None]), max_size=9)


def longest_common(before: list[Any], after: list[Any]) -> int:
    best = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for x, a in enumerate(before):
        for y, b in enumerate(after):
            found = best[x][y] + 1 if same(a, b) else 0
            best[x + 1][y + 1] = max(found, best[x][y + 1], best[x + 1][y])
    return best[-1][-1]


@given(few, few)
def test_align__without_keys__keeps_a_longest_common_subsequence(
    before: list[Any], after: list[Any]
) -> None:
    origins = align(before, after, None)
    pairs = [(origin, index) for index, origin in enumerate(origins) if origin is not None]
    assert pairs == sorted(set(pairs))
    assert len({origin for origin, _ in pairs}) == len(pairs)
    equal = sum(same(before[origin], after[index]) for origin, index in pairs)
    assert equal == longest_common(before, after)


@given(few, st.integers(0, 9), strategies.close_values)
def test_align__one_inserted_item__keeps_all_others(
    before: list[Any], place: int, item: Any
) -> None:
    after = [*before[:place], item, *before[place:]]
    origins = align(before, after, None)
    assert sorted(o for o in origins if o is not None) == list(range(len(before)))


@pytest.mark.parametrize(
    ("before", "after", "origins"),
    [
        # The edited last note and a new one; a new first note and the edited one.
        (["call Ann", "book a hotel"], ["call Ann", "book a hotel in Porto", "pay"], [0, 1, None]),
        (["book a hotel", "pay"], ["call Ann", "book a hotel in Porto", "pay"], [None, 0, 1]),
        (
            [{"title": "book a hotel", "done": False}],
            [{"title": "pay", "done": False}, {"title": "book a hotel", "done": True}],
            [None, 0],
        ),
        ([["a", "b"], 1], [[1, 2], ["a", "b", "c"], 1], [None, 0, 1]),
        # Not similar: by position, if both have the same number of items or the items are scalars.
        ([{"a": 1}, 2], [{"a": 5}, 2], [0, 1]),
        ([{"a": 1}], [{"a": 5}, {"b": 1}], [None, None]),
        ([1], [5, 6], [0, None]),
        ([1, [2]], [[3]], [None]),
    ],
)
def test_align__changed_items__correspond_if_they_are_similar(
    before: list[Any], after: list[Any], origins: list[int | None]
) -> None:
    assert align(before, after, None) == origins


def test_align__by_key__follows_items_anywhere() -> None:
    before = [{"id": 1, "x": 1}, {"id": 2}, {"id": 3}]
    after = [{"id": 3}, {"id": 4}, {"id": 1.0, "x": 2}]
    assert align(before, after, identity_key(before, after)) == [2, None, 0]


@pytest.mark.parametrize(
    ("arrays", "key"),
    [
        ([[{"id": 1}], [{"id": "1"}]], "id"),
        ([[{"id": 1, "key": "a"}], [{"key": "a"}]], "key"),
        ([[{"name": "a"}, {"name": "b"}], []], "name"),
        ([[{"id": 1}, {"id": 1.0}], []], None),
        ([[{"id": True}], []], None),
        ([[{"id": None}], []], None),
        ([[{"id": [1]}], []], None),
        ([[{"id": 1}, 1], []], None),
        ([[{"title": "a"}], []], None),
    ],
)
def test_identity_key__of_arrays__is_unique_in_each(arrays: Any, key: str | None) -> None:
    assert identity_key(*arrays) == key


def test_align__beyond_the_limits__corresponds_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MAX_EQUAL", 8)
    monkeypatch.setattr(alignment, "MAX_SIMILAR", 3)
    assert align([0, 1, 2, 3, 9], [0, 2, 3, 1, 9], None) == [0, 1, 2, 3, 4]
    assert align([{}, {"a": 1}], [{"b": 1}, {"a": 1}, {"c": 1}, {}, {}], None) == [None] * 5
    assert align(["a b", "c d"], ["x", "a b c"], None) == [0, 1]


def test_align__without_effort_left__corresponds_by_position() -> None:
    effort = Effort(20)
    assert align([0, 1, 2, 3], [1, 0, 2, 9], None, effort) == [None, 0, 2, 3]
    assert align([0, 1, 2, 3], [1, 0, 2, 9], None, effort) == [0, 1, 2, 3]


def increasing(origins: list[int]) -> int:
    best: list[int] = []
    for place, origin in enumerate(origins):
        best.append(1 + max((best[n] for n in range(place) if origins[n] < origin), default=0))
    return max(best, default=0)


@given(st.permutations(range(7)), st.sets(st.integers(0, 6)))
def test_in_order__of_an_alignment__moves_as_few_items_as_possible(
    order: list[int], new: set[int]
) -> None:
    origins = [None if index in new else origin for index, origin in enumerate(order)]
    kept = [origin for origin in in_order(origins) if origin is not None]
    assert kept == sorted(kept)
    assert len(kept) == increasing([origin for origin in origins if origin is not None])
    assert all(o in (None, origins[index]) for index, o in enumerate(in_order(origins)))
