"""Charts as SVG from templates, with colours from CSS. They need no script: static/js/charts.js adds
the values on hover, from the table beside each chart, which is also its text alternative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape
from itertools import accumulate
from typing import Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

# Sparklines keep their aspect ratio; charts are stretched to the available width.
_WIDTH, _HEIGHT, _MARGIN = 120, 24, 3
_STEP, _BAR, _TALL = 10, 8, 100
# The number of intervals of the vertical axis is at most this.
_INTERVALS = 4
# Labels of the horizontal axis after this fraction end at their place and not centred on it.
_END = 0.94

Number = float | None  # None: not measured


@dataclass(frozen=True)
class Series:
    """The values of one line or of one part of the bars. `color` is its `data-series`, to which
    app.css assigns a colour."""

    name: str
    values: Sequence[Number]
    color: str


@dataclass(frozen=True)
class Tick:
    """A label of an axis; `place` is a fraction of its length."""

    place: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Values over time: a line, or with `stacked` bars of all series. `name` is the prefix of its
    ids; `unit` and `period` describe the axes; `total` is the number of which `url` has the rows.

    `earlier` is a lighter line with the values of a day earlier. `collecting` says when values
    arrive; it is shown if there is nothing to draw.
    """

    name: str
    title: str
    total: str
    summary: str
    unit: str
    period: str
    labels: Sequence[str]
    ticks: Sequence[Tick]
    series: Sequence[Series]
    text: Callable[[float], str]
    url: str = ""
    earlier: Series | None = None
    stacked: bool = False
    collecting: str = ""

    @property
    def columns(self) -> list[Series]:
        return [*self.series, *([self.earlier] if self.earlier else [])]

    @property
    def legend(self) -> list[Series]:
        """The columns, without the only series: its name is the title."""
        return self.columns if len(self.series) > 1 else self.columns[1:]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The rows of the table, newest first."""
        rows = [
            (label, ["—" if value is None else self.text(value) for value in values])
            for label, *values in zip(
                self.labels, *(series.values for series in self.columns), strict=True
            )
        ]
        return rows[::-1]

    @property
    def scale(self) -> list[float]:
        """The values of the grid lines, the lowest first."""
        heights = map(sum, _filled(self.series))  # of each bar, or the values of the line
        earlier = self.earlier.values if self.earlier else []
        return nice_scale(max([*heights, *(value or 0 for value in earlier)], default=0))

    @property
    def scale_texts(self) -> list[str]:
        """The labels of the grid lines, the highest first."""
        return [self.text(value) for value in reversed(self.scale)]


@dataclass(frozen=True)
class Trend:
    """A number with a line of previous values; `description`: the line as text."""

    label: str
    text: str
    values: Sequence[float]
    description: str
    url: str = ""


def nice_scale(highest: float) -> list[float]:
    """Round numbers from 0 to at least `highest`, at equal distances: 1, 2 or 5 times a power of
    ten. Of whole numbers if `highest` is 1 or more."""
    if highest <= 0:
        return [0, 1]
    step = 10.0**-6
    while step * _INTERVALS < highest:
        step *= 10
    for smaller in (step / 5, step / 2):
        if smaller * _INTERVALS >= highest and not (highest >= 1 > smaller):
            step = smaller
            break
    count = max(1, -int(-highest // step))
    return [round(step * number, 6) for number in range(count + 1)]


def span_of_days(last: date, days: int) -> list[date]:
    """The `days` up to `last`, oldest first."""
    return [last - timedelta(days=ago) for ago in reversed(range(days))]


def day_ticks(span: Sequence[date]) -> list[Tick]:
    """About four labels, at equal distances, the last one for the last day."""
    every = max(1, len(span) // 3)
    return [
        Tick((place + 0.5) / len(span), f"{day:%-d %b}")
        for place, day in enumerate(span)
        if (len(span) - 1 - place) % every == 0
    ]


_SVG: Final = (
    '<svg class="plot" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
    ' aria-labelledby="{}-title {}-text">{}{}{}</svg>'
)


@register.simple_tag
def plot(chart: Chart) -> SafeString:
    """The grid and the series of a chart as SVG. Its labels are beside it, because its content is
    stretched."""
    most = chart.scale[-1]
    width = _STEP * len(chart.labels)
    grid = format_html_join(
        "",
        '<line class="grid" x1="0" x2="{}" y1="{}" y2="{}"></line>',
        ((width, y, y) for y in (_height(value, most) for value in chart.scale)),
    )
    series = _bars(chart, most) if chart.stacked else _lines(chart.series, most, area=True)
    earlier = _lines([chart.earlier], most) if chart.earlier else ""
    layers = (grid, series, earlier) if chart.stacked else (grid, earlier, series)
    return format_html(_SVG, width, _TALL, *(chart.name,) * 2, *layers)


@register.simple_tag
def table_rows(chart: Chart) -> SafeString:
    """The rows of the table: in Python and without format_html, because a page has hundreds of cells."""
    rows = []
    for label, texts in chart.rows:
        cells = "".join(f'<td class="num">{escape(text)}</td>' for text in texts)
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    return SafeString("".join(rows))


@register.simple_tag
def time_axis(chart: Chart) -> SafeString:
    """The labels of the horizontal axis."""
    labels = format_html_join(
        "",
        '<text x="{}%" y="12" data-end="{}">{}</text>',
        (
            (round(100 * tick.place, 1), "end" if tick.place > _END else "", tick.label)
            for tick in chart.ticks
        ),
    )
    return format_html('<svg class="time-axis" aria-hidden="true">{}</svg>', labels)


def _height(value: float, most: float) -> float:
    """The vertical coordinate of a value."""
    return round(_TALL - _TALL * value / most, 1)


def _bars(chart: Chart, most: float) -> SafeString:
    stacks = [list(accumulate(values)) for values in _filled(chart.series)]
    paths = []
    for number, series in enumerate(chart.series):
        path = ""
        for place, stack in enumerate(stacks):
            top = _height(stack[number], most)
            bottom = _height(stack[number - 1], most) if number else _TALL
            if stack[number] and not number:
                top = min(top, _TALL - 1)  # visible, however small
            if bottom > top:
                x = place * _STEP + (_STEP - _BAR) // 2
                path += f"M{x} {bottom:g}V{top:g}h{_BAR}V{bottom:g}z"
        paths.append((series.color, path))
    return format_html_join("", '<path class="bars-of" data-series="{}" d="{}"></path>', paths)


def _filled(series: Sequence[Series]) -> list[list[float]]:
    """The values of each place, 0 if not measured."""
    return [
        [value or 0 for value in values]
        for values in zip(*(each.values for each in series), strict=True)
    ]


def _lines(series: Sequence[Series], most: float, *, area: bool = False) -> SafeString:
    """A line through the values of each series, with gaps where nothing was measured."""
    drawn = []
    for each in series:
        pieces: list[list[str]] = [[]]
        for place, value in enumerate(each.values):
            if value is None:
                pieces.append([])
            else:
                pieces[-1].append(f"{place * _STEP + _STEP / 2:g} {_height(value, most):g}")
        lines = [
            f"M{'L'.join(points)}{'h0' if len(points) == 1 else ''}" for points in pieces if points
        ]
        if area:
            areas = [
                f"M{points[0].split()[0]} {_TALL}L{'L'.join(points)}V{_TALL}z"
                for points in pieces
                if points
            ]
            drawn.append(("area", each.color, "".join(areas)))
        drawn.append(("line", each.color, "".join(lines)))
    return format_html_join("", '<path class="{}" data-series="{}" d="{}"></path>', drawn)


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
