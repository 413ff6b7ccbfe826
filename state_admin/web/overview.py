"""The overview: what requires a decision, active runs, recent changes, health and trends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.domain.access import Actor
from state_admin.models import (
    Change,
    Compaction,
    CompactionKind,
    CompactionStatus,
    Dispatch,
    DispatchStatus,
    Namespace,
    Run,
    RunStatus,
    Sweep,
    Ticket,
    Webhook,
    WebhookStatus,
)
from state_admin.models.browsing import estimated_entries, namespace_sizes
from state_admin.models.counts import MOST, Counts, NamespaceWrites, namespace_writes

from .actors import page
from .addresses import namespace_url, run_url, ticket_url, with_query
from .changes import describe_changes
from .first_steps import list_first_steps
from .health import broker_health, database_health, worker_state
from .htmx import Request, render, target_id, wants_part
from .invalid_entries import find_invalid
from .namespace_list import format_entry_count
from .overview_charts import PERIODS, Period, daily_charts, recent_charts
from .shell import counts_of, format_count
from .usage import TREND_DAYS

_EACH = 6
_CHANGES = 20
_COUNTED = 50
# Entries of an older schema version that are validated.
_EXAMINED = 50
_NAMESPACES = 100


@dataclass(frozen=True)
class AttentionItem:
    """Something that requires attention: what, why, and its URL."""

    state: str
    label: str
    title: str
    why: str
    url: str
    since: datetime | None = None


@dataclass(frozen=True)
class AttentionTotal:
    """The number of things that require attention, the age of the oldest, and the URL of their
    list."""

    label: str
    state: str
    count: int
    url: str
    oldest: datetime | None = None
    bounded: bool = False  # there may be more
    note: str = ""

    @property
    def text(self) -> str:
        return f"{format_count(self.count)}{'+' if self.bounded and self.count else ''}"


@dataclass(frozen=True)
class StatusItem:
    """The number of runs in a status, how many of them are stuck, and the URL of their list."""

    state: str
    label: str
    count: int
    stuck: int
    url: str
    bounded: bool  # there may be more

    @property
    def stuck_text(self) -> str:
        return f"{format_count(self.stuck)} stuck" if self.stuck else ""

    @property
    def text(self) -> str:
        return f"{self.count:,}{'+' if self.bounded else ''}"


@dataclass(frozen=True)
class NamespaceTotal:
    """A namespace and its approximate size."""

    name: str
    entries: int
    text: str
    url: str

    @property
    def entries_url(self) -> str:
        return with_query(reverse("web:entry-list"), namespace=self.name)


@dataclass(frozen=True)
class BusyNamespace:
    """A namespace and its number of writes in a day."""

    name: str
    writes: int
    text: str
    hour: str
    url: str

    @property
    def changes_url(self) -> str:
        return with_query(reverse("web:change-list"), namespace=self.name, kind="entry")


@page(replica=True)
def overview(request: Request) -> HttpResponse:
    """The page loads its charts afterwards. With `charts` in the URL, for browsers without
    JavaScript, it contains them."""
    part = target_id(request) if wants_part(request) else ""
    if part == "overview-charts":
        return render(request, "overview.html", _charts(request), part=part)
    counts = counts_of(request)
    if part == "overview-now":
        return render(request, "overview.html", _status(counts), part=part)
    if part == "overview-sums":
        _, _, namespaces, invalid = _list_largest_namespaces(request.actor)
        sums = _attention(request.actor, counts, namespaces, invalid)
        return render(request, "overview.html", sums, part=part)
    context = {**_status(counts), **_details(request.actor, counts), "period": _period(request)}
    if wants_part(request) or "charts" in request.GET:
        context |= _charts(request)
    return render(request, "overview.html", context, part="overview")


def _status(counts: Counts) -> dict[str, Any]:
    """The status strip."""
    return {
        "runs": _runs(counts),
        "worker": {"last_sweep": counts.worker_seen, "state": worker_state(counts.worker_seen)},
        "components": [database_health(), broker_health()],
    }


def _period(request: Request) -> Period:
    """The period that the URL names, or the first."""
    hours = request.GET.get("hours")
    return next((each for each in PERIODS if hours == str(each.hours)), PERIODS[0])


def _charts(request: Request) -> dict[str, Any]:
    """The charts, and the busiest namespaces."""
    period = _period(request)
    writes = namespace_writes(request.actor)
    busy = _busy(writes)
    return {
        "period": period,
        "periods": PERIODS,
        "recent_charts": recent_charts(request.actor, period),
        "daily_charts": daily_charts(request.actor),
        "trend_days": TREND_DAYS,
        "busy": busy,
        "busiest": max((each.writes for each in busy), default=1) or 1,
        "no_writes": f"No entry writes among the newest {MOST:,} changes."
        if writes.cut
        else "No entries written in the last 24 hours.",
    }


def _details(actor: Actor, counts: Counts) -> dict[str, Any]:
    """What needs attention, recent changes, and the largest namespaces."""
    names, holdings, invalid_by_namespace, invalid = _list_largest_namespaces(actor)
    return {
        "first_steps": list_first_steps(
            actor, counts, names, sum(each.entries for each in holdings)
        ),
        **_attention(actor, counts, invalid_by_namespace, invalid),
        "changes": describe_changes(actor, _newest(actor)),
        "holdings": holdings,
        "largest": max((each.entries for each in holdings), default=1) or 1,
    }


def _attention(
    actor: Actor, counts: Counts, invalid_by_namespace: list[AttentionItem], invalid: AttentionTotal
) -> dict[str, Any]:
    """What needs attention: the numbers, and the oldest of each kind."""
    stuck = _list_stuck(actor) if counts.stuck_runs else []
    tickets = _list_tickets(actor) if counts.pending_tickets else []
    failed = _list_failed(actor) if counts.failed_compactions else []
    dead = _list_dead(actor) if counts.dead_dispatches else []
    hooks = _failing_webhooks(actor)
    inbox, hooks_url = reverse("web:inbox"), reverse("web:webhook-list")
    mailbox = with_query(reverse("web:mailbox"), status=DispatchStatus.DEAD.value)
    jobs_url = with_query(reverse("web:compaction-list"), status=CompactionStatus.FAILED.value)
    stuck_url = with_query(reverse("web:run-list"), status="stuck")
    sums = [
        _sum("tickets", "waiting", counts.pending_tickets, inbox, (t.created_at for t in tickets)),
        _sum(
            "stuck runs", "stuck", counts.stuck_runs, stuck_url, (run.created_at for run in stuck)
        ),
        _sum(
            "dead letters", "failed", counts.dead_dispatches, mailbox, (d.created_at for d in dead)
        ),
        _sum("failed jobs", "failed", len(failed), jobs_url, (job.finished_at for job in failed)),
        _sum("failing webhooks", "failed", len(hooks), hooks_url, (h.failing_since for h in hooks)),
        invalid,
    ]
    in_tickets, in_runs, in_dispatches, in_jobs, in_hooks, _ = sums
    sweeps = _list_failed_sweeps() if counts.failed_sweeps else []
    return {
        "sums": sums,
        "needs": [
            *(_describe_run(run) for run in stuck),
            *_describe_more(in_runs, stuck),
            *(_describe_ticket(ticket) for ticket in tickets),
            *_describe_more(in_tickets, tickets),
            *(_describe_failed_job(job) for job in failed[:_EACH]),
            *_describe_more(in_jobs, failed[:_EACH]),
            *(_describe_dispatch(row) for row in dead),
            *_describe_more(in_dispatches, dead),
            *(_describe_webhook(hook) for hook in hooks[:_EACH]),
            *_describe_more(in_hooks, hooks[:_EACH]),
            *invalid_by_namespace,
            *sweeps,
        ],
        "needs_count": _add_up(sums, len(sweeps)),
    }


def _sum(
    label: str, state: str, count: int, url: str, times: Iterable[datetime | None]
) -> AttentionTotal:
    return AttentionTotal(label, state, count, url, min(filter(None, times), default=None))


def _add_up(sums: Sequence[AttentionTotal], others: int) -> str:
    """The number of all things that require attention. "+": there may be more."""
    number = sum(each.count for each in sums) + others
    return f"{number:,}{'+' if any(each.text.endswith('+') for each in sums) else ''}"


def _describe_more(total: AttentionTotal, rows: Sequence[object]) -> list[AttentionItem]:
    """A line for those that the list does not show: `rows` are the shown ones."""
    more = total.count - len(rows)
    if more <= 0 or not rows:
        return []
    title = f"{format_count(more)} more {total.label if more > 1 else total.label[:-1]}"
    return [AttentionItem(total.state, total.label, title, "", total.url)]


def _list_dead(actor: Actor) -> list[Dispatch]:
    rows = Dispatch.objects.visible_to(actor).dead().select_related("thread")
    return list(rows.order_by("id")[:_EACH])


def _describe_dispatch(row: Dispatch) -> AttentionItem:
    return AttentionItem(
        "failed",
        "dead letter",
        row.thread.public_id,
        row.last_error or "no attempts left",
        with_query(reverse("web:mailbox"), status=DispatchStatus.DEAD.value),
        row.created_at,
    )


def _failing_webhooks(actor: Actor) -> list[Webhook]:
    """Webhooks whose deliveries fail, and those that the server disabled, longest first."""
    rows = Webhook.objects.visible_to(actor).failing()
    return list(rows.order_by("failing_since", "pk")[: MOST + 1])


def _describe_webhook(hook: Webhook) -> AttentionItem:
    disabled = hook.status == WebhookStatus.DISABLED
    return AttentionItem(
        "failed",
        "disabled webhook" if disabled else "failing webhook",
        hook.name,
        (disabled and hook.status_reason) or hook.last_error,
        reverse("web:webhook-detail", args=[hook.public_id]),
        hook.failing_since,
    )


def _list_stuck(actor: Actor) -> list[Run]:
    return list(Run.objects.visible_to(actor).stuck().timed().order_by("id")[:_EACH])


def _describe_run(run: Run) -> AttentionItem:
    reason = run.stuck_reason(run.read_at)
    return AttentionItem("stuck", "stuck run", run.public_id, reason, run_url(run.public_id))


def _list_tickets(actor: Actor) -> list[Ticket]:
    tickets = Ticket.objects.visible_to(actor).pending().select_related("run")
    return list(tickets.order_by("id")[:_EACH])


def _describe_ticket(ticket: Ticket) -> AttentionItem:
    return AttentionItem(
        "waiting",
        "waits for a decision",
        ticket.tool_name or ticket.public_id,
        ticket.reason or f"run {ticket.run.public_id} waits for it",
        ticket_url(ticket.public_id),
        ticket.created_at,
    )


def _list_failed(actor: Actor) -> list[Compaction]:
    """Failed compactions, among the newest, without a later successful one of the same thread."""
    newest = Compaction.objects.visible_to(actor).order_by("-id")[:200]
    last = (
        Compaction.objects.filter(pk__in=newest.values("pk"), kind=CompactionKind.CONTEXT)
        .order_by("thread_id", "-id")
        .distinct("thread_id")
    )
    failed = Compaction.objects.filter(pk__in=last.values("pk"), status=CompactionStatus.FAILED)
    return list(failed.select_related("thread").order_by("-id"))


def _describe_failed_job(job: Compaction) -> AttentionItem:
    return AttentionItem(
        "failed",
        "failed compaction",
        job.thread.public_id if job.thread else job.public_id,
        job.detail,
        reverse("web:compaction-detail", args=[job.public_id]),
        job.finished_at,
    )


def _list_largest_namespaces(
    actor: Actor,
) -> tuple[list[str], list[NamespaceTotal], list[AttentionItem], AttentionTotal]:
    """The names of namespaces; the largest ones; those with entries that do not match their schema; and the number of
    those entries."""
    names = dict(
        Namespace.objects.visible_to(actor)
        .registered()
        .open()
        .order_by("name")
        .values_list("pk", "name")[:_NAMESPACES]
    )
    sizes = namespace_sizes(list(names), _COUNTED + 1)
    large = [pk for pk, size in sizes.items() if size.entries > _COUNTED]
    estimates = estimated_entries(large) if large else {}
    browser = reverse("web:entry-list")
    holdings = []
    for pk, size in sizes.items():
        about = estimates.get(pk, 0)
        text = format_entry_count(size.entries, _COUNTED, about)
        if size.entries:
            number = max(size.entries, about) if pk in large else size.entries
            holdings.append(NamespaceTotal(names[pk], number, text, namespace_url(names[pk])))
    holdings.sort(key=lambda each: (-each.entries, each.name))
    found = find_invalid(actor, {names[pk]: size for pk, size in sizes.items()}, _EXAMINED)
    needs = [
        AttentionItem(
            "failed",
            "invalid entries",
            name,
            f"{each.count} {'entry does' if each.count == '1' else 'entries do'} not match the schema",
            with_query(browser, namespace=name, show="invalid"),
        )
        for name, each in sorted(found.items())
        if each.errors
    ]
    count = sum(len(each.errors) for each in found.values())
    complete = all(each.complete for each in found.values())
    examined = sum(each.examined for each in found.values())
    invalid = AttentionTotal(
        "invalid entries",
        "failed",
        count,
        with_query(browser, show="invalid"),
        bounded=not complete,
        note=("by the current schema" if count else "")
        if complete
        else f"{examined:,} of an older schema version checked",
    )
    return list(names.values()), holdings[:_EACH], needs[:_EACH], invalid


def _busy(writes: NamespaceWrites) -> list[BusyNamespace]:
    return [
        BusyNamespace(
            each.namespace,
            each.day,
            f"{each.day:,}{'+' if writes.cut else ''}",
            f"{each.hour:,}{'+' if writes.hour_cut else ''}" if each.hour else "",
            namespace_url(each.namespace),
        )
        for each in writes.rows[:_EACH]
    ]


def _runs(counts: Counts) -> list[StatusItem]:
    """The number of runs in each status except done."""
    statuses = (
        ("running", RunStatus.RUNNING, counts.running_runs, counts.stuck_running_runs),
        ("waiting", RunStatus.WAITING, counts.waiting_runs, counts.stuck_waiting_runs),
        ("", RunStatus.CREATED, counts.created_runs, counts.stuck_created_runs),
    )
    url = reverse("web:run-list")
    bounded = counts.active_runs > MOST
    return [
        StatusItem(state, status.value, count, stuck, with_query(url, status=status.value), bounded)
        for state, status, count, stuck in statuses
    ]


def _newest(actor: Actor) -> list[Change]:
    return list(Change.objects.visible_to(actor).order_by("-xid", "-id")[:_CHANGES])


def _list_failed_sweeps() -> list[AttentionItem]:
    """Periodic jobs whose last run ended with an error."""
    return [
        AttentionItem(
            "failed",
            "failed sweep",
            sweep.name,
            sweep.error,
            reverse("web:system"),
            sweep.finished_at,
        )
        for sweep in Sweep.objects.exclude(error="").order_by("name")[:_EACH]
    ]


urlpatterns = [path("", overview, name="overview")]
