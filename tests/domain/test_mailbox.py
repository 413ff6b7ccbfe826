"""The pauses of a failed dispatch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.mailbox import pause_after


def test_pause__each_failure__doubles_from_250_ms_to_30_s() -> None:
    pauses = [pause_after(n).total_seconds() for n in range(1, 10)]
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30]


@given(st.integers(min_value=1, max_value=10**9))
def test_pause__any_number_of_failures__never_shrinks_and_stays_below_30_s(failures: int) -> None:
    assert pause_after(failures) <= pause_after(failures + 1)
    assert pause_after(failures).total_seconds() <= 30
