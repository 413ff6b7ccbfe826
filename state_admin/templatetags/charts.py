"""Charts as SVG from templates: no script, no library, colours from CSS. The same information is
beside them as text or in a table, for users who cannot see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

# Sparklines keep their aspect ratio; bars are stretched to the available width.
_WIDTH, _HEIGHT, _MARGIN = 120, 24, 3
_STEP, _BAR, _TALL = 10, 8, 100


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its height, and its value as text."""

    label: str
    value: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Bars over time with a heading and a summary as text. `name` is the prefix of its ids."""

    name: str
    title: str
    summary: str
    unit: str
    bars: Sequence[Bar]

    @property
    def bars_with_text(self) -> list[Bar]:
        """The bars with a text, newest first."""
        return [bar for bar in reversed(self.bars) if bar.text]

    @property
    def highest(self) -> str:
        return max(self.bars, key=lambda bar: bar.value).text if self.bars else ""


@dataclass(frozen=True)
class Trend:
    """A number with a line of previous values; `description`: the line as text."""

    label: str
    text: str
    values: Sequence[float]
    description: str
    url: str = ""


def daily(values: dict[date, tuple[float, str]], *, last: date, days: int) -> list[Bar]:
    """A bar for each of the `days` up to `last`; days without a value are gaps."""
    span = [last - timedelta(days=ago) for ago in reversed(range(days))]
    return [Bar(f"{day:%-d %b}", *values.get(day, (0.0, ""))) for day in span]


@register.simple_tag
def bars(chart: Chart) -> SafeString:
    """The bars of a chart as SVG. Each bar shows its value on hover; the last one is the current
    one."""
    if not chart.bars:
        return SafeString("")
    most = max(bar.value for bar in chart.bars) or 1
    drawn = [
        (
            "now" if place == len(chart.bars) - 1 else "",
            place * _STEP,
            _TALL - height,
            _BAR,
            height,
            f"{bar.label}: {bar.text}",
        )
        for place, bar in enumerate(chart.bars)
        if bar.value > 0 and (height := max(2.0, round(_TALL * bar.value / most, 1)))
    ]
    return format_html(
        '<svg class="plot" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
        ' aria-labelledby="{}-title {}-desc"><title id="{}-title">{}</title>'
        '<desc id="{}-desc">{}</desc>{}</svg>',
        _STEP * len(chart.bars) - (_STEP - _BAR),
        _TALL,
        *(chart.name,) * 3,
        chart.title,
        chart.name,
        chart.summary,
        format_html_join(
            "",
            '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
            drawn,
        ),
    )


@register.simple_tag
def sparkline(values: Sequence[float], label: str) -> SafeString:
    """A small line through `values`, oldest first, with a dot at the last one. `label` is its text
    alternative. "" for fewer than two values."""
    if len(values) < 2:
        return SafeString("")
    low, high = min(values), max(values)
    room, tall = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    step = room / (len(values) - 1)
    points = [
        (
            round(_MARGIN + step * place, 1),
            round(_HEIGHT - _MARGIN - tall * (value - low) / ((high - low) or 1), 1),
        )
        for place, value in enumerate(values)
    ]
    path = " ".join(f"{x},{y}" for x, y in points)
    x, y = points[-1]
    return format_html(
        '<svg class="sparkline" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<polyline points="{}"></polyline><circle cx="{}" cy="{}" r="2"></circle></svg>',
        _WIDTH, _HEIGHT, label, path, x, y,
    )  # fmt: skip
