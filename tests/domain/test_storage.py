from __future__ import annotations

from dataclasses import fields
from datetime import date

import pytest

from state_admin.domain.storage import Counts, growth_per_day

NAMES = [field.name for field in fields(Counts)]


def test_counts__added__sum_each_field() -> None:
    total = Counts(*range(10))
    total.add(Counts(*range(100, 110)))
    assert total.to_json() == {name: 100 + 2 * index for index, name in enumerate(NAMES)}


def test_counts__rows_and_bytes__are_those_stored() -> None:
    counts = Counts(*(10**index for index in range(10)))
    assert counts.rows == 10**0 + 10**2 + 10**5 + 10**7
    assert counts.bytes == 10**1 + 10**3 + 10**6 + 10**8


@pytest.mark.parametrize(
    ("levels", "growth"),
    [
        ([], None),
        ([(date(2026, 1, 1), 7)], None),
        ([(date(2026, 1, 1), 7), (date(2026, 1, 3), 2)], -2.5),
        ([(date(2026, 1, 1), 1), (date(2026, 1, 2), 99), (date(2026, 1, 5), 9)], 2.0),
    ],
)
def test_growth__first_to_last_day__is_per_day(
    levels: list[tuple[date, int]], growth: float | None
) -> None:
    assert growth_per_day(levels) == growth
