"""Runs: the list with the stuck ones first, and the page of one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse, JsonResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import Revision, Run, RunStatus, Thread, Ticket, TicketStatus
from state_admin.services.runs import find_run

from . import paging, snippets
from .actors import page
from .addresses import run_url, thread_url, with_query
from .htmx import Request, render, target_id, wants_part
from .id_address import id_page, id_paths
from .thread_states import touched_in_words
from .tickets import question_of

PAGE = 50
STUCK = 50
_TIMELINE = 40
_AGES = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
}
_STATUSES = ("active", "stuck", *RunStatus.values)

# What a run waits for, by the reason of semantics §7.
WAITS_FOR = {
    "tool_permission": "a person's permission for a tool call",
    "user_input": "an answer from the user",
    "background_tasks": "background tasks to finish",
    "external_event": "an event from outside",
    "rate_limit": "a rate limit to pass",
    "manual_pause": "somebody to resume it: it was paused by hand",
}


@dataclass(frozen=True)
class Filters:
    """What the address says. `before` is the place of the last row of the page before."""

    status: str = ""
    agent: str = ""
    age: str = ""
    before: int | None = None

    @property
    def any(self) -> bool:
        return replace(self, before=None) != Filters()

    def url(self, name: str = "web:run-list", **changes: Any) -> str:
        return with_query(reverse(name), **vars(replace(self, **changes)))


def read_filters(request: Request) -> Filters:
    return Filters(
        status=paging.choice(request, "status", _STATUSES),
        agent=paging.text(request, "agent"),
        age=paging.choice(request, "age", tuple(_AGES)),
        before=paging.whole_number(request, "before"),
    )


@require_safe
@page
def run_list(request: Request) -> HttpResponse:
    filters = read_filters(request)
    first_page = filters.before is None and not filters.any
    stuck = list(_stuck(request.actor)) if first_page else []
    rows, next_url = find_runs(request.actor, filters)
    seen = {run.pk for run in stuck}
    body = '{"agent_id": "support-bot"}'
    response = render(
        request,
        "runs/list.html",
        {
            "filters": filters,
            "stuck_runs": stuck,
            "runs": [run for run in rows if run.pk not in seen],
            "here": filters.url(),
            "root": reverse("web:run-list"),
            "pager": {
                "first": filters.url(before=None) if filters.before else "",
                "next": next_url,
            },
            "statuses": _STATUSES,
            "ages": [("10m", "10 minutes"), ("1h", "an hour"), ("1d", "a day"), ("7d", "a week")],
            "json_url": filters.url("web:run-list-json"),
            "with_thread": True,
            "curl": snippets.curl("POST", "threads/t1/runs", body),
            "python": snippets.python("POST", "threads/t1/runs", body),
        },
        part="run-table",
    )
    if (request.htmx.source or "").startswith("form"):
        response["HX-Replace-Url"] = filters.url()
    return response


def _stuck(actor: Actor) -> Any:
    rows = Run.objects.visible_to(actor).stuck().select_related("thread")
    return rows.order_by("-pk")[:STUCK]


def find_runs(actor: Actor, filters: Filters, name: str = "web:run-list") -> tuple[list[Run], str]:
    """A page of runs, newest first, and the address of the next one."""
    rows = Run.objects.visible_to(actor).select_related("thread").order_by("-pk")
    if filters.status == "stuck":
        rows = rows.stuck()
    elif filters.status == "active":
        rows = rows.active()
    elif filters.status:
        rows = rows.filter(status=filters.status)
    if filters.agent:
        rows = rows.filter(agent_id=filters.agent)
    if filters.age:
        rows = rows.filter(created_at__lt=timezone.now() - _AGES[filters.age])
    if filters.before:
        rows = rows.filter(pk__lt=filters.before)
    shown, next_url = paging.cut(
        list(rows[: PAGE + 1]), PAGE, lambda last: filters.url(name, before=last.pk)
    )
    return list(shown), next_url


@require_safe
@page
def run_list_json(request: Request) -> HttpResponse:
    """The same rows for programs and for saving."""
    rows, next_url = find_runs(request.actor, read_filters(request), "web:run-list-json")
    now = timezone.now()
    items = [
        {
            "id": run.public_id,
            "thread_id": run.thread.public_id,
            "agent_id": run.agent_id or None,
            "status": run.status,
            "stuck": run.stuck_reason(now) or None,
            "step_count": run.step_count,
            "input_tokens": run.input_tokens,
            "output_tokens": run.output_tokens,
            "cost_usd": str(run.cost_usd),
            "created_at": run.created_at,
            "finished_at": run.finished_at,
        }
        for run in rows
    ]
    return JsonResponse({"items": items, "next": next_url or None})


def runs_of_thread(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the Runs tab of a thread."""
    before = paging.whole_number(request, "before")
    rows = Run.objects.filter(thread=thread).select_related("thread").order_by("-pk")
    rows = rows.filter(pk__lt=before) if before else rows

    def url(place: int | None) -> str:
        return thread_url(thread.public_id, tab="runs", before=place)

    shown, next_url = paging.cut(list(rows[: PAGE + 1]), PAGE, lambda last: url(last.pk))
    return {
        "runs": shown,
        "here": url(before),
        "pager": {"first": url(None) if before else "", "next": next_url},
    }


@dataclass(frozen=True)
class Moment:
    """A revision that the run made: what it touched, and which messages came with it."""

    revision: Revision
    url: str
    messages: tuple[int, int] | None
    messages_url: str

    @property
    def touched(self) -> str:
        return touched_in_words(self.revision)


@require_safe
@id_page()
def run_detail(request: Request, run_id: str) -> HttpResponse:
    context = run_context(request, find_run(request.actor, run_id))
    target = target_id(request)
    part = target if wants_part(request) and target == "run-now" else "run"
    return render(request, "runs/detail.html", context, part=part)


def run_context(request: Request, run: Run) -> dict[str, Any]:
    """Everything the page of a run shows; also for showing it again with a form's mistakes."""
    run_id = run.public_id
    api_path = f"runs/{quote(run_id, safe='')}"
    tickets = list(Ticket.objects.filter(run=run).order_by("pk")[:200])
    pending = [question_of(ticket) for ticket in tickets if ticket.status == TicketStatus.PENDING]
    waiting = run.waiting or {}
    before = paging.whole_number(request, "before")
    timeline, older_url = _timeline(run, before)
    done = run.status == RunStatus.DONE
    edits = request.actor.may(Role.EDITOR) and not done
    return {
        "run": run,
        "thread": run.thread,
        "done": done,
        "waits_for": WAITS_FOR.get(str(waiting.get("reason")), str(waiting.get("reason") or "")),
        "waiting_message": waiting.get("message") or "",
        "ended": run.termination_reason or {},
        "questions": pending,
        "decided": [ticket for ticket in tickets if ticket.status != TicketStatus.PENDING],
        "timeline": timeline,
        "pager": {"first": run_url(run_id) if before else "", "next": older_url},
        "metadata": values.load(run.metadata or "{}"),
        "here": run_url(run_id, before=before),
        "thread_state_url": thread_url(
            run.thread.public_id, tab="state", at=max(run.start_revision - 1, 0)
        ),
        "can_act": edits,
        "can_renew": edits and run.status in (RunStatus.CREATED, RunStatus.RUNNING),
        "can_resume": edits and run.status == RunStatus.WAITING and not pending,
        "curl": snippets.curl("GET", api_path),
        "python": snippets.python("GET", api_path),
    }


def _timeline(run: Run, before: int | None) -> tuple[list[Moment], str]:
    """The run's revisions, newest first. All of them lie between its first and its last, so this
    reads one range of the primary key."""
    rows = Revision.objects.filter(
        thread=run.thread, number__gte=run.start_revision - 1, number__lte=run.last_revision
    ).order_by("-number")
    if before:
        rows = rows.filter(number__lt=before)
    found = list(rows[: _TIMELINE + 1])
    thread_id = run.thread.public_id
    moments = []
    for row, earlier in zip(found, [*found[1:], None], strict=True):
        if row.run_id != run.pk:
            continue
        count = earlier.message_count if earlier else row.message_count
        first, last = count + 1, row.message_count
        moments.append(
            Moment(
                row,
                thread_url(thread_id, tab="state", at=row.number),
                (first, last) if last >= first else None,
                thread_url(thread_id, message=first),
            )
        )
    more = len(found) > _TIMELINE
    older = run_url(run.public_id, before=found[_TIMELINE - 1].number) if more else ""
    return moments[:_TIMELINE], older


urlpatterns = [
    path("runs", run_list, name="run-list"),
    path("runs.json", run_list_json, name="run-list-json"),
    *id_paths("runs", run_detail, "run-detail"),
]
