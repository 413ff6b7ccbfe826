"""Pauses before retries: they grow within bounds and honour Retry-After."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import retries


@given(st.integers(1, 10**9), st.floats(0.001, 60), st.floats(60, 10_000))
def test_exponential_pause__each_failure__doubles_up_to_the_longest(
    failures: int, first: float, longest: float
) -> None:
    pause = retries.exponential_pause(failures, first=first, longest=longest)
    assert retries.exponential_pause(1, first=first, longest=longest) == first
    assert retries.exponential_pause(failures + 1, first=first, longest=longest) == min(
        2 * pause, longest
    )


def test_pause__no_jitter_given__is_random_within_its_bounds() -> None:
    pauses = {retries.pause_before_retry(3, base=5) for _ in range(50)}
    assert len(pauses) > 1
    assert 20 <= min(pauses) <= max(pauses) <= 30


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pause__any_attempt__grows_within_its_bounds(attempt: int, jitter: float) -> None:
    pause = retries.pause_before_retry(attempt, base=5, jitter=jitter)
    least = min(5 * 2.0 ** min(attempt - 1, 40), 3600)
    assert least <= pause <= least * 1.5


@pytest.mark.parametrize(
    ("retry_after", "pause"), [(None, 5.0), (1.0, 5.0), (60.0, 60.0), (1e9, 5400.0), (-5.0, 5.0)]
)
def test_pause__retry_after__is_honoured_within_bounds(
    retry_after: float | None, pause: float
) -> None:
    assert retries.pause_before_retry(1, base=5, jitter=0, retry_after=retry_after) == pause


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("9" * 40, 999999999.0),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50.0),
        ("Thu, 99 Jan 1970 00:01:00 GMT", None),
    ],
)
def test_retry_after__any_text__is_read_or_ignored(retry_after: str, seconds: float | None) -> None:
    assert retries.requested_seconds(retry_after, 10) == seconds
