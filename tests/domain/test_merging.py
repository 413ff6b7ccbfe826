"""Merging parallel batches."""

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
    clashes,
    merge_batches,
)
from state_admin.domain.reducers import apply


def batch(*keys: str, base: int | None = None) -> Batch:
    return Batch(tuple(Update(key, number) for number, key in enumerate(keys)), base)


def shared(key: str) -> bool:
    return key.startswith("shared")


def test_merge__disjoint_keys__are_merged_in_order() -> None:
    left, right = batch("a", "a", "b"), batch("c")
    assert merge_batches([left, right], shared).updates == (*left.updates, *right.updates)


def test_merge__exclusive_key_in_two__is_refused_with_its_name() -> None:
    with pytest.raises(ParallelMergeConflict) as error:
        merge_batches([batch("a", "shared"), batch("shared", "b", "a"), batch("b")], shared)
    assert str(error.value) == "parallel merge conflict on exclusive key: a"


def test_merge__cleared_key__counts_as_updated() -> None:
    clearing = Batch((Update("a", clear=True),))
    with pytest.raises(ParallelMergeConflict):
        merge_batches([batch("a"), clearing], shared)


def test_merge__commutative_key_in_many__is_merged() -> None:
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
def test_merge__equal_base_revisions__apply_to_all(bases: Any, result: int | None) -> None:
    assert merge_batches([Batch((), base) for base in bases], shared).base_revision == result


def test_merge__different_base_revisions__are_refused_before_keys_are_checked() -> None:
    with pytest.raises(BaseRevisionMismatch) as error:
        merge_batches([batch("a", base=3), batch("b"), batch("a", base=5)], shared)
    assert str(error.value) == "patch base revision mismatch: 3 vs 5"


@pytest.mark.parametrize(
    "parts",
    [
        (Batch((), 3), batch("a", base=5)),
        (batch("a", base=3), Batch((), 5)),
        (Batch((), 3), Batch(), batch("a"), batch("b", base=5)),
    ],
)
def test_merge__empty_batch_of_another_base__is_refused(parts: tuple[Batch, ...]) -> None:
    with pytest.raises(BaseRevisionMismatch) as error:
        merge_batches(parts, shared)
    assert str(error.value) == "patch base revision mismatch: 3 vs 5"


def test_merge__key_twice_in_one_batch__is_not_a_conflict() -> None:
    alone = batch("a", "a", "a")
    assert merge_batches([alone, batch("b")], shared).updates[:3] == alone.updates


def test_clashes__several_keys__list_the_batches_that_update_each() -> None:
    parts = [batch("a", "shared"), batch("b"), batch("shared", "b", "a"), batch("a", "c", "c")]
    assert clashes(parts, shared) == {"a": [0, 2, 3], "b": [1, 2]}


@given(st.lists(st.lists(st.integers(-5, 5), max_size=3), max_size=4), st.randoms())
def test_merge__commutative_updates__are_independent_of_the_order_of_branches(
    amounts: list[list[int]], random: Any
) -> None:
    branches = [Batch(tuple(Update("shared", each) for each in part)) for part in amounts]
    shuffled = branches[:]
    random.shuffle(shuffled)

    def total(parts: list[Batch], reducer: str) -> Any:
        value: Any = 0
        for update in merge_batches(parts, shared).updates:
            value = apply(reducer, value, update.update)
        return value

    for reducer in ("add", "max", "min"):
        assert total(branches, reducer) == total(shuffled, reducer)


_batches = st.lists(
    st.lists(st.sampled_from(["a", "b", "shared", "shared2"]), max_size=3), max_size=4
)


@given(_batches)
def test_merge__any_batches__succeed_exactly_if_no_exclusive_key_is_in_two(
    keys: list[list[str]],
) -> None:
    batches = [batch(*names) for names in keys]
    clash = any(
        not shared(name) and sum(name in names for names in keys) > 1
        for name in {name for names in keys for name in names}
    )
    assert bool(clashes(batches, shared)) == clash
    if clash:
        with pytest.raises(ParallelMergeConflict):
            merge_batches(batches, shared)
    else:
        merged = merge_batches(batches, shared)
        assert merged.updates == tuple(update for each in batches for update in each.updates)
