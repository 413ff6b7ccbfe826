"""Tombstones in values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import values
from state_admin.domain.json_pointers import Mismatch
from state_admin.domain.redaction import TOMBSTONE, is_tombstone, redact
from tests.domain import strategies

_VALUE = {"user": {"name": "ann", "keys": ["s1", "s2"]}, "n": 1}


@pytest.mark.parametrize(
    ("pointers", "result", "found"),
    [
        ([], TOMBSTONE, {""}),
        ([""], TOMBSTONE, {""}),
        (["/n"], _VALUE | {"n": TOMBSTONE}, {"/n"}),
        (
            ["/user/keys/1", "/nope"],
            {"user": {"name": "ann", "keys": ["s1", TOMBSTONE]}, "n": 1},
            {"/user/keys/1"},
        ),
        (
            ["/user", "/user/keys/0"],
            {"user": TOMBSTONE, "n": 1},
            {"/user", "/user/keys/0"},
        ),
        (["/user/keys/2", "/n/x"], _VALUE, set()),
        (["/nope", "/n"], _VALUE | {"n": TOMBSTONE}, {"/n"}),
    ],
)
def test_redact__pointers__are_replaced_by_tombstones(
    pointers: list[str], result: object, found: set[str]
) -> None:
    before = values.dump(_VALUE)
    assert redact(_VALUE, pointers) == (result, found)
    assert values.dump(_VALUE) == before


def test_redact__again__changes_nothing() -> None:
    once, _ = redact(_VALUE, ["/user/name"])
    again, found = redact(once, ["/user/name"])
    assert again is once
    assert found == {"/user/name"}


def test_redact__malformed_pointer__is_refused() -> None:
    with pytest.raises(Mismatch):
        redact(_VALUE, ["user"])


@given(strategies.values, st.data())
def test_redact__whole__replaces_the_value(value: object, data: st.DataObject) -> None:
    made, _ = redact(value, [])
    assert is_tombstone(values.dump(made))
    assert is_tombstone(values.dump(value)) == values.same(value, TOMBSTONE)
