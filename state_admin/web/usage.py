"""Usage: storage and its growth, tokens saved by compaction, the cost of models, the quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from state_admin.domain.access import Actor
from state_admin.models import ModelSpending, StorageSample
from state_admin.services.quotas import Usage, read_usage
from state_admin.services.storage import Group, Level, list_levels, read_workspace
from state_admin.templatetags.charts import Chart, Trend, daily
from state_admin.templatetags.ui import number, size, tokens

from . import snippets
from .actors import page
from .addresses import namespace_url, thread_url
from .htmx import Request, render

PERIODS: Final = (30, 90)
TREND_DAYS: Final = PERIODS[0]
_EACH = 10


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


@dataclass(frozen=True)
class Quota:
    label: str
    used: int
    limit: int | None
    text: str


@require_safe
@page
def usage(request: Request) -> HttpResponse:
    actor = request.actor
    days = next((each for each in PERIODS if request.GET.get("days") == str(each)), PERIODS[0])
    whole = read_workspace(actor, days=days)
    usage_now = read_usage(actor)
    spending = _spending(actor, days)
    today = timezone.now().date()
    spent = spending.get(today, (0.0, ""))[0]
    context: dict[str, Any] = {
        "days": days,
        "periods": PERIODS,
        "whole": whole,
        "namespaces": _lines(actor, "namespace", days),
        "threads": _lines(actor, "thread", days),
        "spending_chart": spending and _spending_chart(spending, today, days),
        "spent": spent,
        "spent_text": _dollars(spent),
        "cap": float(settings.SUMMARY_DAILY_USD),
        "cap_text": _dollars(float(settings.SUMMARY_DAILY_USD)),
        "quotas": _quotas(usage_now),
        "quotas_at": usage_now.usage.measured_at,
        "curl": snippets.curl("GET", "usage/storage/namespaces/team_context"),
        "python": snippets.python("GET", "usage/storage/namespaces/team_context"),
    }
    if whole is not None:
        newest = whole.newest
        context |= {
            "growth": growth(whole),
            "parts": [
                ("Entries", newest.entries, newest.entry_bytes),
                ("Versions kept", newest.history_rows, newest.history_bytes),
                ("Messages", newest.messages, newest.message_bytes),
                ("Thread state", newest.state_rows, newest.state_bytes),
            ],
            "storage_chart": _storage_chart(whole, today, days),
            "tokens_chart": _tokens_chart(whole, today, days),
            "saved_chart": _saved_chart(whole.days, today, days),
            "rows_removed": sum(sample.rows_removed for sample in whole.days),
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


def _saved_chart(samples: Sequence[StorageSample], today: date, days: int) -> Chart | None:
    """Tokens saved by compaction per day; None if there are none."""
    total = sum(sample.tokens_saved for sample in samples)
    if not total:
        return None
    values: dict[date, tuple[float, str]] = {
        sample.day: (sample.tokens_saved, tokens(sample.tokens_saved))
        for sample in samples
        if sample.tokens_saved
    }
    removed = sum(sample.rows_removed for sample in samples)
    summary = f"{tokens(total)} tokens less in contexts in {days} days"
    if removed:
        summary += f", {number(removed)} rows removed"
    bars = daily(values, last=today, days=days)
    return Chart("saved", "Tokens saved by compaction", summary, "Tokens saved", bars)


def _storage_chart(whole: Level, today: date, days: int) -> Chart:
    values: dict[date, tuple[float, str]] = {
        sample.day: (sample.total_bytes, size(sample.total_bytes)) for sample in whole.days
    }
    bars = daily(values, last=today, days=days)
    return Chart("storage", "Bytes stored", f"Stored {describe_sizes(whole.days)}", "Bytes", bars)


def _tokens_chart(whole: Level, today: date, days: int) -> Chart | None:
    """Estimated tokens stored per day; None if there are none."""
    first, last = whole.days[0], whole.days[-1]
    if not any(sample.estimated_tokens for sample in whole.days):
        return None
    values: dict[date, tuple[float, str]] = {
        sample.day: (sample.estimated_tokens, tokens(sample.estimated_tokens))
        for sample in whole.days
    }
    summary = f"{tokens(last.estimated_tokens)} tokens in entries and messages"
    if first is not last:
        summary += f", {tokens(first.estimated_tokens)} on {first.day:%-d %b}"
    bars = daily(values, last=today, days=days)
    return Chart("tokens", "Tokens over time", summary, "Tokens", bars)


def _lines(actor: Actor, group: Group, days: int) -> list[UsageLine]:
    address = namespace_url if group == "namespace" else thread_url
    levels = list_levels(actor, group=group, days=days, limit=_EACH)
    return [UsageLine(level, address(level.name)) for level in levels]


def _spending(actor: Actor, days: int) -> dict[date, tuple[float, str]]:
    since = timezone.now().date() - timedelta(days=days)
    rows = ModelSpending.objects.filter(workspace_id=actor.workspace_id, day__gt=since)
    paid = rows.filter(cost_usd__gt=0)
    return {row.day: (float(row.cost_usd), _dollars(float(row.cost_usd))) for row in paid}


def _spending_chart(spending: dict[date, tuple[float, str]], today: date, days: int) -> Chart:
    total = sum(cost for cost, _ in spending.values())
    summary = f"{_dollars(total)} for summaries in {days} days"
    bars = daily(spending, last=today, days=days)
    return Chart("spending", "Spent on models", summary, "USD", bars)


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def _quotas(usage: Usage) -> list[Quota]:
    kinds = (
        ("Entries", "entries", number),
        ("Bytes of entries", "bytes", size),
        ("Threads", "threads", number),
    )
    quotas = []
    for label, what, words in kinds:
        used, limit = getattr(usage.usage, what), usage.limits[what]
        of = ", no limit" if limit is None else f" of {words(limit)}"
        quotas.append(Quota(label, used, limit, words(used) + of))
    return quotas


urlpatterns = [path("usage", usage, name="usage")]
