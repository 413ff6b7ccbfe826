from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import moments

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", "2026-02-01T05:08:00.0+17:08"]
)
def test_read__with_an_offset__is_converted_to_utc(text: str) -> None:
    found = moments.read(text)
    assert found == NOON
    assert found.tzinfo is UTC


def test_read__without_an_offset__is_utc_only_if_assumed() -> None:
    assert moments.read("2026-01-31T12:00") is None
    assert moments.read("2026-01-31T12:00", assume_utc=True) == NOON


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("0001-01-01T00:00:02+03:00", moments.FIRST),
        ("9999-12-31T23:59:59-03:00", moments.LAST),
    ],
)
def test_read__years_that_do_not_exist_in_utc__is_the_nearest_time(
    text: str, nearest: datetime
) -> None:
    assert moments.read(text) == nearest


@pytest.mark.parametrize("text", [None, 7, "", "noon", "2026-01-31", "2026-02-30T12:00:00Z"])
def test_read__not_a_timestamp__is_none(text: object) -> None:
    assert moments.read(text, assume_utc=True) is None


def test_milliseconds__of_a_moment__count_from_1970() -> None:
    assert moments.milliseconds(NOON.replace(microsecond=123_999)) == 1_769_860_800_123


def test_timestamp__any_offset__is_utc_with_microseconds() -> None:
    assert moments.timestamp(NOON) == "2026-01-31T12:00:00.000000Z"
    east = NOON.replace(microsecond=5).astimezone(timezone(timedelta(hours=2)))
    assert moments.timestamp(east) == "2026-01-31T12:00:00.000005Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamp__any_moment__is_spelled_as_by_isoformat(moment: datetime) -> None:
    spelled = moment.isoformat("T", "microseconds").replace("+00:00", "Z")
    assert moments.timestamp(moment) == spelled
    whole = moment.replace(microsecond=0)
    assert moments.timestamp(whole) == spelled[:-8] + ".000000Z"
