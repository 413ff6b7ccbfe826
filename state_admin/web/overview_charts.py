"""The charts of the overview: calls, ended runs and queues by hour or minute, compared with a day
earlier; storage and saved tokens by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.urls import reverse
from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.models import DispatchStatus, RunStatus, StorageSample
from state_admin.models.counts import RUNS, ended_runs
from state_admin.models.traffic import read_spans
from state_admin.services.storage import read_series
from state_admin.templatetags.charts import Chart, Series, Tick, span_of_days

from .addresses import with_query
from .usage import TREND_DAYS, saved_chart, storage_chart

# The outcomes of runs in the order of the bars, the lowest first: a label, a colour, and the types of
# the termination reason (domain/lifecycle.py).
_OUTCOMES: Final = (
    ("Completed", "ok", ("natural_end", "behavior_requested")),
    ("Stopped", "2", ("stopped",)),
    ("Cancelled", "other", ("cancelled",)),
    ("Blocked", "3", ("blocked",)),
    ("Failed", "bad", ("error",)),
    ("No reason given", "4", ("",)),
)


@dataclass(frozen=True)
class Period:
    """Intervals of `width` minutes that end now, with a label of the axis each `tick` minutes."""

    hours: int
    width: int
    count: int
    tick: int
    text: str
    unit: str

    def start_of(self, place: int, now: datetime) -> datetime:
        return now - timedelta(minutes=self.width * (self.count - place))

    def labels(self, now: datetime) -> list[str]:
        """The first minute of each interval; of hours also the end."""
        starts = [self.start_of(place, now) for place in range(self.count)]
        if self.width == 1:
            return [f"{start:%H:%M}" for start in starts]
        length = timedelta(minutes=self.width)
        return [f"{start:%-d %b %H:%M} to {start + length:%H:%M}" for start in starts]

    def ticks(self, now: datetime) -> list[Tick]:
        """Labels at round times."""
        first, length = self.start_of(0, now), timedelta(minutes=self.width * self.count)
        midnight = first.replace(hour=0, minute=0)
        step = timedelta(minutes=self.tick)
        moment = midnight + step * (-(-(first - midnight) // step))
        ticks = []
        while moment < now:
            label = f"{moment:%H:%M}" if moment.hour or moment.minute else f"{moment:%-d %b}"
            ticks.append(Tick((moment - first) / length, label))
            moment += step
        return ticks


PERIODS: Final = (
    Period(24, width=60, count=24, tick=360, text="24 hours", unit="per hour"),
    Period(1, width=1, count=60, tick=15, text="hour", unit="per minute"),
)


def recent_charts(actor: Actor, period: Period) -> list[Chart]:
    """Calls, ended runs and queues of the period, compared with a day earlier."""
    now = (timezone.now() + timedelta(minutes=1)).astimezone(UTC).replace(second=0, microsecond=0)
    today, earlier = read_spans(actor, width=period.width, count=period.count)
    changes = reverse("web:change-list")
    # Failed calls are in the server's log only, so their link explains how to find them.
    log = reverse("web:documentation", args=["operations.html"]) + "#commonholdcallsfail"
    calls = (
        ("reads", "Read requests", "1", today.reads, earlier.reads, ""),
        ("writes", "Write requests", "1", today.writes, earlier.writes, changes),
        ("conflicts", "Conflicts", "warn", today.conflicts, earlier.conflicts, changes),
        ("failures", "Server errors", "bad", today.failures, earlier.failures, log),
    )
    charts = []
    for name, title, color, values, before, url in calls:
        empty = f"No {title.lower()} in this period or a day earlier. Calls of the API are counted within ten seconds."
        series = [Series(title, values, color)]
        charts.append(_chart(period, now, name, title, series, before, url, empty))
    return [*charts, _runs(actor, period, now), _queues(period, now, today.queued, earlier.queued)]


def daily_charts(actor: Actor) -> list[Chart]:
    """Bytes stored and tokens saved by day."""
    samples: Sequence[StorageSample] = read_series(actor, days=TREND_DAYS)
    span = span_of_days(timezone.now().date(), TREND_DAYS)
    return [
        storage_chart(samples, span, reverse("web:usage")),
        saved_chart(samples, span, reverse("web:compaction-list")),
    ]


def _chart(
    period: Period,
    now: datetime,
    name: str,
    title: str,
    series: Sequence[Series],
    earlier: Sequence[int],
    url: str,
    empty: str,
    *,
    stacked: bool = False,
    note: str = "",
) -> Chart:
    total = round(sum(value or 0 for each in series for value in each.values))
    before = sum(earlier)
    return Chart(
        name,
        title,
        f"{total:,}",
        f"{_compare(total, before)}{note}" if total or before else "",
        period.unit,
        "Time (UTC)",
        period.labels(now),
        period.ticks(now),
        series,
        whole,
        url,
        Series("A day earlier", earlier, "earlier"),
        stacked,
        "" if total or before else empty,
    )


def _runs(actor: Actor, period: Period, now: datetime) -> Chart:
    ended = ended_runs(actor, width=period.width, count=period.count)
    series = []
    for label, color, kinds in _OUTCOMES:
        lines = [ended.now[kind] for kind in kinds if kind in ended.now]
        if lines:
            series.append(
                Series(label, [sum(values) for values in zip(*lines, strict=True)], color)
            )
    return _chart(
        period,
        now,
        "runs",
        "Ended runs",
        series or [Series("Ended runs", [0] * period.count, "ok")],
        ended.earlier,
        with_query(reverse("web:run-list"), status=RunStatus.DONE.value),
        "No run ended in this period or a day earlier.",
        stacked=True,
        note=f"; of the newest {RUNS:,} runs" if ended.cut else "",
    )


def _queues(period: Period, now: datetime, queued: list[int], earlier: list[int]) -> Chart:
    measured = any(queued) or any(earlier)
    return Chart(
        "queued",
        "Waiting in queues",
        f"{queued[-1]:,}",
        f"at most {max(queued):,}, a day earlier {max(earlier):,}" if measured else "",
        "waiting, at most",
        "Time (UTC)",
        period.labels(now),
        period.ticks(now),
        [Series("Waiting", queued, "1")],
        whole,
        with_query(reverse("web:mailbox"), status=DispatchStatus.QUEUED.value),
        Series("A day earlier", earlier, "earlier"),
        collecting=""
        if measured
        else "Nothing waited in this period or a day earlier. A worker measures the queues every minute.",
    )


def whole(value: float) -> str:
    return f"{value:,.0f}"


def _compare(total: int, before: int) -> str:
    """The change against a day earlier."""
    if not before:
        return "none a day earlier"
    change = round(100 * (total - before) / before)
    return f"{change:+,} % against {before:,} a day earlier" if change else "as a day earlier"
