"""Batches: limited in rows and in bytes, in order, complete."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from state_admin.services.batching import MOST_BYTES, MOST_ROWS, split_by_size


@given(st.lists(st.integers(0, MOST_BYTES * 2), max_size=40))
def test_slices__any_sizes__keep_order_and_bounds(sizes: list[int]) -> None:
    made = list(split_by_size((index, size) for index, size in enumerate(sizes)))
    assert [item for part in made for item in part] == list(range(len(sizes)))
    for part in made:
        assert part
        assert len(part) == 1 or sum(sizes[item] for item in part) <= MOST_BYTES


def test_slices__many_small_items__are_cut_by_rows() -> None:
    made = list(split_by_size((index, 1) for index in range(MOST_ROWS * 2 + 1)))
    assert [len(part) for part in made] == [MOST_ROWS, MOST_ROWS, 1]
