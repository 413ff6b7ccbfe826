"""What needs a person, what runs now, what changed, whether the house is healthy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Sum
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from state_admin.domain.access import Actor
from state_admin.models import (
    Change,
    Compaction,
    CompactionKind,
    CompactionStatus,
    Namespace,
    Run,
    RunStatus,
    Sweep,
    Ticket,
)
from state_admin.models.browsing import estimated_entries, namespace_sizes

from .actors import page
from .addresses import entry_url, namespace_url, run_url, thread_url, with_query
from .health import WORKER_SILENCE
from .htmx import Request, render

_EACH = 6
_CHANGES = 20
_COUNTED = 500
_NAMESPACES = 100
_COMPACTIONS = 2000


@dataclass(frozen=True)
class Need:
    """Something a person should look at: what, why, where."""

    state: str
    label: str
    title: str
    why: str
    url: str
    since: datetime | None = None


@dataclass(frozen=True)
class Holding:
    """A namespace and about how much it holds."""

    name: str
    entries: int
    shown: str
    url: str


@require_safe
@page
def overview(request: Request) -> HttpResponse:
    actor = request.actor
    holdings, stale = _holdings(actor)
    sweeps = list(Sweep.objects.order_by("name"))
    context = {
        "needs": [*_stuck(actor), *_tickets(actor), *_failed(actor), *stale],
        "runs": _runs(actor),
        "changes": [_told(change) for change in _newest(actor)],
        "holdings": holdings,
        "largest": max((each.entries for each in holdings), default=1) or 1,
        "saved": _saved(actor),
        "compactions": f"{_COMPACTIONS:,}",
        "sweeps": sweeps,
        "worker": _worker(sweeps),
        "curl": "",
    }
    return render(request, "overview.html", context, part="overview")


def _stuck(actor: Actor) -> list[Need]:
    now = timezone.now()
    runs = Run.objects.visible_to(actor).stuck().select_related("thread").order_by("id")
    return [
        Need("stuck", "stuck run", run.public_id, run.stuck_reason(now), run_url(run.public_id))
        for run in runs[:_EACH]
    ]


def _tickets(actor: Actor) -> list[Need]:
    tickets = Ticket.objects.visible_to(actor).pending().select_related("run").order_by("id")
    return [
        Need(
            "waiting",
            "waits for a decision",
            ticket.tool_name or ticket.public_id,
            ticket.reason or f"run {ticket.run.public_id} goes on when it is decided",
            run_url(ticket.run.public_id),
            ticket.created_at,
        )
        for ticket in tickets[:_EACH]
    ]


def _failed(actor: Actor) -> list[Need]:
    """Failed compactions that no later one of the thread has made good, among the newest."""
    newest = Compaction.objects.visible_to(actor).select_related("thread").order_by("-id")[:200]
    settled: set[int | None] = set()
    found = []
    for job in newest:
        if job.kind == CompactionKind.CONTEXT and job.thread_id not in settled:
            settled.add(job.thread_id)
            if job.status == CompactionStatus.FAILED:
                found.append(job)
    return [
        Need(
            "failed",
            "failed compaction",
            job.thread.public_id if job.thread else job.public_id,
            job.detail,
            reverse("web:compaction-detail", args=[job.public_id]),
            job.finished_at,
        )
        for job in found[:_EACH]
    ]


def _holdings(actor: Actor) -> tuple[list[Holding], list[Need]]:
    """The biggest namespaces, and those with entries that may not fit their schema any more."""
    names = dict(
        Namespace.objects.visible_to(actor)
        .registered()
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
        if pk in large:
            shown = f"≈ {about:,}" if about > _COUNTED else f"{_COUNTED:,}+"
        else:
            shown = f"{size.entries:,}"
        if size.entries:
            number = max(size.entries, about) if pk in large else size.entries
            holdings.append(Holding(names[pk], number, shown, namespace_url(names[pk])))
    holdings.sort(key=lambda each: (-each.entries, each.name))
    stale = [
        Need(
            "",
            "older schema",
            names[pk],
            f"{min(size.stale, _COUNTED):,}{'+' if pk in large else ''} entries were written under"
            " another schema; some may not fit the present one",
            with_query(browser, namespace=names[pk], show="invalid"),
        )
        for pk, size in sizes.items()
        if size.stale
    ]
    return holdings[:_EACH], sorted(stale, key=lambda need: need.title)[:_EACH]


def _runs(actor: Actor) -> list[tuple[str, str, int]]:
    """How many runs are in each status that is not done."""
    counts: dict[str, int] = {}
    for (status,) in Run.objects.visible_to(actor).active().values_list("status")[:10_000]:
        counts[status] = counts.get(status, 0) + 1
    shown = (
        ("running", RunStatus.RUNNING),
        ("waiting", RunStatus.WAITING),
        ("", RunStatus.CREATED),
    )
    return [(state, str(status.value), counts.get(status, 0)) for state, status in shown]


def _newest(actor: Actor) -> list[Change]:
    return list(Change.objects.visible_to(actor).order_by("-xid", "-id")[:_CHANGES])


_SAID = {
    "entry.put": "wrote",
    "entry.patch": "patched",
    "entry.delete": "deleted",
    "entry.restore": "restored",
    "entry.expire": "let expire",
    "entry.import": "imported",
    "namespace.register": "registered namespace",
    "namespace.change": "changed namespace",
    "namespace.unregister": "unregistered namespace",
    "thread.create": "made thread",
    "thread.delete": "deleted thread",
    "run.start": "started run",
    "run.commit": "committed a step of run",
    "run.done": "ended run",
    "run.stuck": "found stuck run",
    "token.create": "made token",
    "token.revoke": "revoked token",
}


def _told(change: Change) -> dict[str, Any]:
    """A change as a sentence: who did what to which, with the address of that."""
    noun = change.kind.partition(".")[0]
    if change.namespace and change.key:
        place = f"{change.namespace}/{change.key}"
        url = entry_url(change.namespace, change.key, version=change.version)
    elif change.namespace:
        place, url = change.namespace, namespace_url(change.namespace)
    elif change.run:
        place, url = change.run, run_url(change.run)
    elif change.thread:
        place, url = change.thread, thread_url(change.thread)
    else:
        place, url = change.key, ""
    said = _SAID.get(change.kind) or change.kind.replace(".", " ")
    return {
        "who": change.actor_name,
        "said": said,
        "place": place,
        "url": url if not change.kind.endswith("delete") or noun == "entry" else "",
        "version": change.version,
        "at": change.at,
    }


def _saved(actor: Actor) -> int:
    """Tokens that the newest compactions took out of contexts and that nobody put back."""
    newest = Compaction.objects.visible_to(actor).order_by("-id").values("pk")[:_COMPACTIONS]
    done = Compaction.objects.filter(
        pk__in=newest, kind=CompactionKind.CONTEXT, status=CompactionStatus.DONE
    )
    total = done.aggregate(saved=Sum(F("tokens_before") - F("tokens_after")))["saved"]
    return int(total or 0)


def _worker(sweeps: list[Sweep]) -> dict[str, Any]:
    """When a worker was last seen at work, and whether that is recent enough."""
    seen = max((sweep.started_at for sweep in sweeps if sweep.started_at), default=None)
    return {"seen": seen, "ok": seen is not None and timezone.now() - seen < WORKER_SILENCE}


urlpatterns = [path("", overview, name="overview")]
