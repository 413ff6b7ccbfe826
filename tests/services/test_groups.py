"""Calls that are stored in one transaction: their turns."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from state_admin.services.groups import take_turns


@given(st.lists(st.sampled_from("abc")))
def test_take_turns__any_addresses__occur_once_per_turn_in_order(
    addresses: list[str],
) -> None:
    turns = take_turns(addresses)
    assert sorted(chain(*turns)) == list(range(len(addresses)))
    for turn in turns:
        assert len({addresses[index] for index in turn}) == len(turn) > 0
    for address in "abc":
        taken = [index for turn in turns for index in turn if addresses[index] == address]
        assert taken == sorted(taken)
        assert all(address in {addresses[i] for i in turn} for turn in turns[: len(taken)])
