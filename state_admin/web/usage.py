"""Usage: storage and its growth, tokens saved by compaction, the cost of models, the quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.models import ModelSpending, StorageSample
from state_admin.services.quotas import Usage, read_usage
from state_admin.services.storage import (
    THREADS,
    Group,
    Level,
    list_levels,
    next_measurement,
    read_groups,
    read_workspace,
)
from state_admin.templatetags.charts import Chart, Series, Trend, day_ticks, span_of_days
from state_admin.templatetags.ui import number, size, tokens

from . import snippets
from .actors import page
from .addresses import namespace_url, thread_url
from .htmx import Request, render

PERIODS: Final = (30, 90)
TREND_DAYS: Final = PERIODS[0]
# How the chart of storage may be divided: `by` and its label.
GROUPS: Final = (
    ("namespace", "Namespace"), ("agent", "Agent"), ("resource", "Resource"), ("kind", "Kind"),
)  # fmt: skip
_EACH = 10
# The groups of a chart that have a part of their own, the largest ones.
_STACKED = 5
_ENTRY_BYTES = ("entry_bytes", "history_bytes")
_THREAD_BYTES = ("message_bytes", "state_bytes")


@dataclass(frozen=True)
class UsageLine:
    """A namespace or thread in a table: its level, and the text of its sparkline."""

    level: Level
    url: str

    @property
    def growth(self) -> str:
        return growth(self.level)

    @property
    def sizes(self) -> list[int]:
        return [sample.total_bytes for sample in self.level.days]

    @property
    def sizes_text(self) -> str:
        return describe_sizes(self.level.days)


@page()
def usage(request: Request) -> HttpResponse:
    actor = request.actor
    days = next((each for each in PERIODS if request.GET.get("days") == str(each)), PERIODS[0])
    whole = read_workspace(actor, days=days)
    usage_now = read_usage(actor)
    spending = _spending(actor, days)
    span = span_of_days(timezone.now().date(), days)
    spent = spending.get(span[-1], 0.0)
    by = next((each for each, _ in GROUPS if request.GET.get("by") == each), GROUPS[0][0])
    namespaces = _lines(actor, "namespace", days)
    context: dict[str, Any] = {
        "days": days,
        "periods": PERIODS,
        "whole": whole,
        "by": by,
        "groups": GROUPS,
        "measured_threads": THREADS,
        "namespaces": namespaces,
        "threads": _lines(actor, "thread", days),
        "spending_chart": _spending_chart(spending, span),
        "saved_chart": saved_chart(
            whole.days if whole else (), span, reverse("web:compaction-list")
        ),
        "collecting": describe_collection(whole.days if whole else (), span[-1]),
        "spent": spent,
        "spent_text": _dollars(spent),
        "cap": float(settings.SUMMARY_DAILY_USD),
        "cap_text": _dollars(float(settings.SUMMARY_DAILY_USD)),
        "quotas": _quotas(usage_now),
        "quotas_at": usage_now.usage.measured_at,
        **snippets.both(
            "GET",
            "usage/storage/namespaces/team_context",
            call='request("GET", "/usage/storage/namespaces/team_context")',
        ),
    }
    if whole is not None:
        newest = whole.newest
        context |= {
            "growth": growth(whole),
            "has_growth": whole.growth is not None,
            "parts": [
                ("Entries", newest.entries, newest.entry_bytes),
                ("Versions kept", newest.history_rows, newest.history_bytes),
                ("Messages", newest.messages, newest.message_bytes),
                ("Thread state", newest.state_rows, newest.state_bytes),
            ],
            "storage_chart": _grouped_chart(actor, by, whole, namespaces, span),
            "tokens_chart": _tokens_chart(whole, span),
        }
    return render(request, "usage.html", context)


def growth(level: Level) -> str:
    """The growth per day as text with a sign; a dash if there is only one day."""
    if level.growth is None:
        return "—"
    rounded = round(level.growth)
    return ("-" if rounded < 0 else "+") + size(abs(rounded))


def describe_sizes(samples: Sequence[StorageSample]) -> str:
    """The text alternative of a sparkline of sizes."""
    first, last = samples[0], samples[-1]
    if first is last:
        return f"{size(last.total_bytes)} on {last.day:%-d %b}"
    return (
        f"from {size(first.total_bytes)} on {first.day:%-d %b}"
        f" to {size(last.total_bytes)} on {last.day:%-d %b}"
    )


def saved_trend(samples: Sequence[StorageSample]) -> Trend:
    """Tokens saved by compaction in TREND_DAYS, for pages that link to this one."""
    saved = [sample.tokens_saved for sample in samples]
    return Trend(
        f"Tokens saved in {TREND_DAYS} days",
        tokens(sum(saved)),
        saved,
        f"{tokens(max(saved, default=0))} on the best day",
        reverse("web:usage"),
    )


def saved_chart(samples: Sequence[StorageSample], span: Sequence[date], url: str) -> Chart:
    """Tokens saved by compaction per day."""
    total = sum(sample.tokens_saved for sample in samples)
    removed = sum(sample.rows_removed for sample in samples)
    summary = f"tokens less in contexts in {len(span)} days"
    if removed:
        summary += f", {number(removed)} rows removed"
    values = {sample.day: sample.tokens_saved for sample in samples}
    series = [Series("Tokens saved", _by_day(values, span), "ok")]
    empty = f"No compaction saved tokens in the last {len(span)} days."
    return _daily(
        "saved", "Saved by compaction", tokens(total), summary, "tokens per day", series, _tokens,
        span, url, "" if total else empty,
    )  # fmt: skip


def storage_chart(
    samples: Sequence[StorageSample],
    span: Sequence[date],
    url: str = "",
    series: Sequence[Series] = (),
) -> Chart:
    """Bytes stored per day, of the workspace or of `series`."""
    values = {sample.day: sample.total_bytes for sample in samples}
    return _daily(
        "storage",
        "Storage",
        size(samples[-1].total_bytes if samples else None),
        describe_sizes(samples) if len(samples) > 1 else "",
        "at the end of the day",
        series or [Series("Stored", _by_day(values, span), "1")],
        _bytes,
        span,
        url,
        describe_collection(samples, span[-1]),
    )


def describe_collection(samples: Sequence[StorageSample], today: date) -> str:
    """When the next sample arrives, while there are too few for a chart; "" if there are enough."""
    if len(samples) > 1:
        return ""
    if samples:
        tomorrow = f"{today + timedelta(days=1):%-d %b}"
        return f"Collecting: one sample per day. The second arrives on {tomorrow} after 00:00 UTC."
    expected = next_measurement()
    when = f"at about {expected:%H:%M} UTC" if expected else "within a minute of a worker's start"
    return f"Collecting: the first sample arrives {when}."


def _tokens_chart(whole: Level, span: Sequence[date]) -> Chart | None:
    """Estimated tokens stored per day; None if there are none."""
    first, last = whole.days[0], whole.days[-1]
    if not any(sample.estimated_tokens for sample in whole.days):
        return None
    values = {sample.day: sample.estimated_tokens for sample in whole.days}
    summary = "estimated, in entries and messages"
    if first is not last:
        summary += f"; {tokens(first.estimated_tokens)} on {first.day:%-d %b}"
    series = [Series("Tokens", _by_day(values, span), "1")]
    return _daily(
        "tokens", "Tokens stored", tokens(last.estimated_tokens), summary, "at the end of the day",
        series, _tokens, span, "", describe_collection(whole.days, span[-1]),
    )  # fmt: skip


def _daily(
    name: str,
    title: str,
    total: str,
    summary: str,
    unit: str,
    series: Sequence[Series],
    text: Callable[[float], str],
    span: Sequence[date],
    url: str,
    collecting: str,
) -> Chart:
    return Chart(
        name,
        title,
        total,
        summary,
        unit,
        "Day (UTC)",
        [f"{day:%-d %b}" for day in span],
        day_ticks(span),
        series,
        text,
        url,
        stacked=True,
        collecting=collecting,
    )


def _by_day(values: Mapping[date, float], span: Sequence[date]) -> list[float | None]:
    return [values.get(day) for day in span]


def _bytes(value: float) -> str:
    return size(round(value))


def _tokens(value: float) -> str:
    return tokens(round(value))


# Storage by group --------------------------------------------------------------------------------


def _grouped_chart(
    actor: Actor, by: str, whole: Level, namespaces: Sequence[UsageLine], span: Sequence[date]
) -> Chart:
    """The bytes stored per day as parts that add up to a part of the samples of the workspace."""
    if by == "kind":
        names = ("Entries", "Versions", "Messages", "Thread state")
        groups = {
            name: _sizes(whole.days, kind)
            for name, kind in zip(names, _ENTRY_BYTES + _THREAD_BYTES, strict=True)
        }
        return storage_chart(whole.days, span, series=_stack(groups, {}, "", span))
    if by == "namespace":
        groups = {
            line.level.name: _sizes(line.level.days, *_ENTRY_BYTES)
            for line in namespaces[:_STACKED]
        }
        totals = _sizes(whole.days, *_ENTRY_BYTES)
        series = _stack(groups, totals, "Other namespaces, state history", span)
        summary = "entries and versions"
    else:
        found = read_groups(actor, group="agent" if by == "agent" else "resource", days=len(span))
        largest = sorted(found, key=lambda name: (-found[name].get(whole.newest.day, 0), name))
        groups = {name or f"No {by}": found[name] for name in largest[:_STACKED]}
        totals = _sizes(whole.days, *_THREAD_BYTES)
        series = _stack(groups, totals, "Other threads", span)
        summary = "messages and state of threads"
    return replace(
        storage_chart(whole.days, span, series=series),
        total=size(totals[whole.newest.day]),
        summary=summary,
    )


def _sizes(samples: Sequence[StorageSample], *kinds: str) -> dict[date, int]:
    return {sample.day: sum(getattr(sample, kind) for kind in kinds) for sample in samples}


def _stack(
    groups: Mapping[str, Mapping[date, int]],
    totals: Mapping[date, int],
    remainder: str,
    span: Sequence[date],
) -> list[Series]:
    """A part for each group, and one for the remainder of the totals."""
    stack = [
        Series(name, _by_day(values, span), str(place))
        for place, (name, values) in enumerate(groups.items(), start=1)
    ]
    if totals:
        rest = {
            day: max(0, total - sum(values.get(day, 0) for values in groups.values()))
            for day, total in totals.items()
        }
        if any(rest.values()):
            stack.append(Series(remainder, _by_day(rest, span), "other"))
    return stack


def _lines(actor: Actor, group: Group, days: int) -> list[UsageLine]:
    address = namespace_url if group == "namespace" else thread_url
    levels = list_levels(actor, group=group, days=days, limit=_EACH)
    return [UsageLine(level, address(level.name)) for level in levels]


def _spending(actor: Actor, days: int) -> dict[date, float]:
    since = timezone.now().date() - timedelta(days=days)
    rows = ModelSpending.objects.filter(workspace_id=actor.workspace_id, day__gt=since)
    return {row.day: float(row.cost_usd) for row in rows.filter(cost_usd__gt=0)}


def _spending_chart(spending: Mapping[date, float], span: Sequence[date]) -> Chart:
    total = sum(spending.values())
    series = [Series("Spent", _by_day(spending, span), "1")]
    empty = f"No model costs in the last {len(span)} days."
    return _daily(
        "spending", "Spent on models", _dollars(total), f"for summaries in {len(span)} days",
        "USD per day", series, _dollars, span, reverse("web:policy-list"), "" if total else empty,
    )  # fmt: skip


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def _quotas(usage: Usage) -> list[tuple[str, int, int | None, str]]:
    """The label, what is used, the limit, and both as text."""
    kinds = (
        ("Entries", "entries", number),
        ("Bytes of entries", "bytes", size),
        ("Threads", "threads", number),
    )
    quotas = []
    for label, what, words in kinds:
        used, limit = getattr(usage.usage, what), usage.limits[what]
        of = ", no limit" if limit is None else f" of {words(limit)}"
        quotas.append((label, used, limit, words(used) + of))
    return quotas


urlpatterns = [path("usage", usage, name="usage")]
