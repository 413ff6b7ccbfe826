"""Two lists of digests compared, and the digest of a set that changes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.digests import DigestLine, SetDigest, differences

_NAMES = st.tuples(st.sampled_from(["entry", "state"]), st.integers(1, 3), st.integers(1, 3))
_LISTS = st.dictionaries(_NAMES, st.sampled_from("abc"))


@given(_LISTS, _LISTS)
def test_differences__any_lists__are_those_of_lines_with_the_same_name(
    before: dict[tuple[str, int, int], str], now: dict[tuple[str, int, int], str]
) -> None:
    def lines(of: dict[tuple[str, int, int], str]) -> list[DigestLine]:
        return [DigestLine(*name, of[name]) for name in sorted(of)]

    found = {(old or new)[:3]: (old, new) for old, new in differences(lines(before), lines(now))}  # type: ignore[index]
    assert found == {
        name: tuple(
            DigestLine(*name, each[name]) if name in each else None for each in (before, now)
        )
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
    }


@given(st.lists(st.binary(max_size=3), unique=True), st.lists(st.binary(max_size=3), unique=True))
def test_sum__of_the_same_set__is_independent_of_the_order_of_changes(
    stay: list[bytes], pass_by: list[bytes]
) -> None:
    one, other = SetDigest(), SetDigest()
    for text in stay:
        one.add(hashlib.sha256(text).digest())
    for text in pass_by:
        other.add(hashlib.sha256(text).digest())
    for text in reversed(stay):
        other.add(hashlib.sha256(text).digest())
    assert (one.hex() == other.hex()) == (not pass_by)
    for text in pass_by:
        other.remove(hashlib.sha256(text).digest())
    assert one.hex() == other.hex()


def test_line__formatted_and_parsed__round_trips() -> None:
    line = DigestLine("state", 12, 7, "ab")
    assert DigestLine.parse(f"{line}\n") == line
    for text in ("state 1 2", "state x 2 ab", ""):
        with pytest.raises(ValueError):
            DigestLine.parse(text)
