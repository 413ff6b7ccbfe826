from __future__ import annotations

import pytest

from state_admin.domain.numbers import MAX_WHOLE, read_whole


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("007", 7), ("9" * 18, MAX_WHOLE), ("0" * 17 + "1", 1)]
)
def test_read_whole__ascii_digits__is_their_number(text: str, number: int) -> None:
    assert read_whole(text) == number


@pytest.mark.parametrize(
    "text", [None, 7, "", "-1", "+1", " 1", "1.0", "1e3", "٣", "²", "0" * 18 + "1", "9" * 5000]
)
def test_read_whole__anything_else__is_none(text: object) -> None:
    assert read_whole(text) is None


@pytest.mark.parametrize(("text", "within"), [("1", False), ("2", True), ("5", True), ("6", False)])
def test_read_whole__bounds__are_included(text: str, within: bool) -> None:
    assert read_whole(text, least=2, most=5) == (int(text) if within else None)
