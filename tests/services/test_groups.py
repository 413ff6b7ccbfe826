"""Calls that are stored in one transaction: their turns."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from state_admin.services.groups import take_turns


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1)))
def test_take_turns__any_addresses__occur_once_per_turn_in_order(calls: list[set[str]]) -> None:
    turns = take_turns(calls)
    assert sorted(chain(*turns)) == list(range(len(calls)))
    for turn in turns:
        addresses = list(chain(*(calls[index] for index in turn)))
        assert len(set(addresses)) == len(addresses) > 0
    for address in "abc":
        taken = [index for turn in turns for index in turn if address in calls[index]]
        assert taken == sorted(taken)


@given(st.lists(st.sampled_from("abc")))
def test_take_turns__one_address_each__takes_no_more_turns_than_it_needs(calls: list[str]) -> None:
    turns = take_turns([address] for address in calls)
    assert len(turns) == max(map(calls.count, calls), default=0)
