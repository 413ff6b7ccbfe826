"""Medians, ratios and Markdown tables of measurements. No input or output."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

# A cell of a table for which there is no measurement.
NOTHING = "-"


class Measurement(NamedTuple):
    per_second: float
    p50_ms: float
    p99_ms: float


def summarize(latencies: Sequence[float], seconds: float) -> Measurement:
    """The measurement of a round, from the latencies (seconds) of its calls."""
    ordered = sorted(latencies)
    return Measurement(
        len(ordered) / seconds,
        1000 * pick_percentile(ordered, 0.5),
        1000 * pick_percentile(ordered, 0.99),
    )


def pick_percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the sorted values does not exceed."""
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, min(len(ordered), -int(-len(ordered) * share // 1)) - 1)]


def find_medians(rounds: Sequence[Measurement]) -> Measurement:
    """The median of each number on its own."""
    return Measurement(*(statistics.median(each) for each in zip(*rounds, strict=True)))


def compute_ratio(value: float, base: float) -> float | None:
    """value / base, or None without a base."""
    return value / base if base else None


def format_ratio(ratio: float | None) -> str:
    """Two significant digits: a third would be noise."""
    if ratio is None:
        return NOTHING
    if ratio >= 100:
        return f"{round(ratio, -1):,.0f} x"
    places = 0 if ratio >= 10 else 1 if ratio >= 1 else 2
    return f"{ratio:.{places}f} x"


def format_rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. All columns but the first are aligned to the right, in the source too."""
    columns = zip(head, *rows, strict=True)
    widths = [max(3, *(len(cell) for cell in column)) for column in columns]

    def join(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([join(head), f"| {' | '.join(rule)} |", *(join(row) for row in rows)])
