"""Changes of texts, by words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.text_changes import MAX_WORDS, text_changes

_texts = st.lists(st.sampled_from(["a", "the", " ", "\n", "é", "<b>", ".", "\U0001f600"])).map(
    "".join
)


@given(_texts, _texts)
def test_text_changes__of_two_texts__contain_both(before: str, after: str) -> None:
    pieces = text_changes(before, after)
    if pieces is not None:
        assert "".join(text for kind, text in pieces if kind != "added") == before
        assert "".join(text for kind, text in pieces if kind != "removed") == after
        assert all(text for _, text in pieces)
        kinds = [kind for kind, _ in pieces]
        assert all(one != next_one for one, next_one in pairwise(kinds))


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("Plan a trip", "Plan a long trip", ["same:Plan a ", "added:long ", "same:trip"]),
        ("in Lisbon, soon", "in Porto, soon",
         ["same:in ", "removed:Lisbon", "added:Porto", "same:, soon"]),
        ("book it now", "book it", ["same:book it", "removed: now"]),
        ("one big red car, sold", "one old blue car, sold",
         ["same:one ", "removed:big red", "added:old blue", "same: car, sold"]),
        ("same", "same", ["same:same"]),
    ],
)  # fmt: skip
def test_text_changes__of_similar_texts__are_words(
    before: str, after: str, pieces: list[str]
) -> None:
    assert [f"{kind}:{text}" for kind, text in text_changes(before, after) or []] == pieces


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Plan a trip", "Call Ann"),
        ("x", ""),
        ("a " * MAX_WORDS, "a " * (MAX_WORDS + 1)),
        ("a" * 40 * MAX_WORDS, "a"),
    ],
)
def test_text_changes__different_or_long_texts__are_shown_whole(before: str, after: str) -> None:
    assert text_changes(before, after) is None
