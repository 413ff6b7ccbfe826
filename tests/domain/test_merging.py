"""Joining parallel batches (semantics §6; awaken-facts §2.3, §8.2 no. 17)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.merging import (
    BaseRevisionMismatch,
    Batch,
    ParallelMergeConflict,
    Update,
    merge_batches,
)


def batch(*keys: str, base: int | None = None) -> Batch:
    return Batch(tuple(Update(key, number) for number, key in enumerate(keys)), base)


def shared(key: str) -> bool:
    return key.startswith("shared")


def test_merge__disjoint_keys__join_in_order() -> None:
    left, right = batch("a", "a", "b"), batch("c")
    assert merge_batches([left, right], shared).updates == (*left.updates, *right.updates)


def test_merge__exclusive_key_in_two__is_refused_with_its_name() -> None:
    with pytest.raises(ParallelMergeConflict) as error:
        merge_batches([batch("a", "shared"), batch("shared", "b", "a"), batch("b")], shared)
    assert str(error.value) == "parallel merge conflict on exclusive key: a"
    assert error.value.key == "a"


def test_merge__clearing__counts_as_a_touch() -> None:
    clearing = Batch((Update("a", clear=True),))
    with pytest.raises(ParallelMergeConflict):
        merge_batches([batch("a"), clearing], shared)


def test_merge__commutative_key_in_many__joins() -> None:
    merged = merge_batches([batch("shared", "a"), batch("shared"), batch("b", "shared")], shared)
    assert [update.key for update in merged.updates] == ["shared", "a", "shared", "b", "shared"]


def test_merge__conflict_with_any_earlier_batch__is_found() -> None:
    with pytest.raises(ParallelMergeConflict):
        merge_batches([batch("a"), batch("b"), batch("c"), batch("a")], shared)


def test_merge__nothing_or_empty_batches__is_empty() -> None:
    assert merge_batches([], shared) == Batch()
    assert merge_batches([Batch(), Batch()], shared) == Batch()
    assert merge_batches([Batch(), batch("a")], shared) == batch("a")


@pytest.mark.parametrize(
    ("bases", "result"),
    [((None, None), None), ((3, None), 3), ((None, 3), 3), ((3, 3), 3), ((None, 0, None), 0)],
)
def test_merge__base_revisions_that_agree__hold_for_all(bases: Any, result: int | None) -> None:
    assert merge_batches([Batch((), base) for base in bases], shared).base_revision == result


def test_merge__base_revisions_that_differ__are_refused_before_the_keys() -> None:
    with pytest.raises(BaseRevisionMismatch) as error:
        merge_batches([batch("a", base=3), batch("b"), batch("a", base=5)], shared)
    assert str(error.value) == "patch base revision mismatch: 3 vs 5"
    assert (error.value.left, error.value.right) == (3, 5)


_batches = st.lists(
    st.lists(st.sampled_from(["a", "b", "shared", "shared2"]), max_size=3), max_size=4
)


@given(_batches)
def test_merge__any_batches__join_exactly_when_no_exclusive_key_is_in_two(
    keys: list[list[str]],
) -> None:
    batches = [batch(*names) for names in keys]
    clash = any(
        not shared(name) and sum(name in names for names in keys) > 1
        for name in {name for names in keys for name in names}
    )
    if clash:
        with pytest.raises(ParallelMergeConflict):
            merge_batches(batches, shared)
    else:
        merged = merge_batches(batches, shared)
        assert merged.updates == tuple(update for each in batches for update in each.updates)
