"""What the benchmarks compute from measurements. `make bench` does the measuring."""

from __future__ import annotations

import pytest

from benchmarks.comparison import System, report, run_rounds
from benchmarks.load import render_request
from benchmarks.own_server import MOST_CONNECTIONS, READ, WRITE, pick_key, vary
from benchmarks.tables import (
    Measurement,
    compute_ratio,
    find_medians,
    format_rate,
    format_ratio,
    format_table,
    pick_percentile,
    summarize,
)


def test_summarize__latencies_of_a_round__rate_and_percentiles() -> None:
    found = summarize([0.004, 0.001, 0.003, 0.002], 2.0)
    assert found == Measurement(2.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (1.0, 100)]
)
def test_pick_percentile__hundred_values__smallest_that_covers_the_share(
    share: float, value: int
) -> None:
    assert pick_percentile(range(1, 101), share) == value


def test_pick_percentile__no_values__fails() -> None:
    with pytest.raises(ValueError, match="no values"):
        pick_percentile([], 0.5)


def test_find_medians__each_number__has_a_median_of_its_own() -> None:
    rounds = [Measurement(10, 3, 9), Measurement(30, 1, 7), Measurement(20, 2, 80)]
    assert find_medians(rounds) == Measurement(20, 2, 9)


def test_compute_ratio__no_base__is_none() -> None:
    assert compute_ratio(3, 2) == 1.5
    assert compute_ratio(3, 0) is None


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "-"), (0.034, "0.03 x"), (0.5, "0.50 x"), (1.44, "1.4 x"), (12.3, "12 x"), (1234.0, "1,230 x")],
)  # fmt: skip
def test_format_ratio__any_size__has_two_significant_digits(ratio: float | None, text: str) -> None:
    assert format_ratio(ratio) == text


def test_format_rate__small__has_a_decimal() -> None:
    assert [format_rate(rate) for rate in (1234.5, 9.87)] == ["1,234", "9.9"]


def test_format_table__cells__are_markdown_aligned_to_the_right() -> None:
    assert format_table(["", "calls/s"], [["read", "1,234"], ["a write", "5"]]) == (
        "|         | calls/s |\n| ------- | ------: |\n| read    |   1,234 |\n| a write |       5 |"
    )


def test_report__rounds_of_two_systems__contain_the_ratio_of_rates() -> None:
    ours = System("Commonhold", [READ, WRITE], lambda *_: Measurement(300, 2, 3))
    peer = System("a peer", [READ], lambda *_: Measurement(200, 4, 5))
    run_rounds([ours, peer], 3, 0.1, {})
    reads, writes = report([ours, peer]).split("### ")[1:]
    assert "| a peer     |     200 |     200 |      200 |        4.00 |         5.0 |" in reads
    assert reads.count("1.5 x") == 3
    assert "a peer" not in writes


def test_vary__turns_of_connections__differ_and_have_the_same_length() -> None:
    request = render_request("PUT", "/k", {"A": "b"}, b'{"value": {"n": 0, "text": "x"}}')
    make_request = vary(request)
    sent = {make_request(connection, turn) for connection in (0, 1) for turn in (0, 1)}
    assert len(sent) == 4
    for each in sent:
        head, _, body = each.partition(b"\r\n\r\n")
        assert head.endswith(b"Content-Length: %d" % len(body))


def test_pick_key__connections__never_share_an_entry() -> None:
    keys = [{pick_key(c, turn) for turn in range(1000)} for c in range(MOST_CONNECTIONS)]
    assert sum(len(each) for each in keys) == len(set().union(*keys))
