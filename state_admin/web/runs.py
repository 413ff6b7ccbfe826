"""Runs: the list, with stuck runs first, and the page of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.db.models import BigIntegerField, Case, F, When
from django.db.models.functions import Cast, Coalesce, Extract
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from state_admin.contract import runs as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import (
    Run,
    RunStatus,
    Thread,
    Ticket,
    TicketStatus,
    ViewPage,
    creation_times,
)
from state_admin.models.runs import ACTIVE, RunQuerySet
from state_admin.services.runs import find_run, parents_of
from state_admin.services.threads import check_id, find_thread

from . import paging, snippets
from .actors import page
from .addresses import run_action_url, run_url, thread_action_url, thread_url, with_query
from .handovers import handover_of
from .htmx import Request, render, render_list, target_id, wants_part
from .id_address import id_page, id_path
from .lists import list_paths
from .paging import BY_AGE, downwards, upwards
from .periods import Period, end_of, start_of
from .run_actions import RUNS, actions_of, describe_listeners, suggest
from .run_costs import prices_of
from .run_timeline import Timeline, read_timeline
from .saved_views import views_of
from .tables import Field, Orders, Table, choices_of, count_rows, matching
from .tickets import question_of

PAGE = 50
STUCK = 50
_QUESTIONS = 100
_AGES = {
    "10m": ("10 minutes", timedelta(minutes=10)),
    "1h": ("an hour", timedelta(hours=1)),
    "1d": ("a day", timedelta(days=1)),
    "7d": ("a week", timedelta(days=7)),
}
_STATUSES = ("active", "stuck", *RunStatus.values)
# What may need a person comes first.
_RANK = Case(
    *(When(status=status, then=rank) for rank, status in enumerate(ACTIVE[::-1])),
    default=len(ACTIVE),
)
# Active runs have none yet: one that grows between two pages would be on both.
_MICROSECONDS = Cast(
    Coalesce(Extract(F("finished_at") - F("created_at"), "epoch") * 1_000_000, 0), BigIntegerField()
)
_TOKENS = F("input_tokens") + F("output_tokens")
_THREAD = Orders("Thread")
_TABLE = Table(
    "web:run-list",
    (
        Orders("Run"),
        Orders("Status", upwards("status", "rank", value=_RANK)),
        _THREAD,
        Orders("Agent", upwards("agent", "agent_id", read=str)),
        Orders("Steps", downwards("steps", "revision_count"), numeric=True),
        Orders("Tokens", downwards("tokens", "tokens", value=_TOKENS), numeric=True),
        Orders(
            "Duration", downwards("duration", "microseconds", value=_MICROSECONDS), numeric=True
        ),
        Orders("Started", BY_AGE),
    ),
    search=Field("agent", "Agent", placeholder="Agent id"),
    menu=(
        Field("status", "Status", choices=choices_of(_STATUSES)),
        Field(
            "age",
            "Older than",
            choices={age: label for age, (label, _) in _AGES.items()},
            unset="any age",
        ),
        Period("Started"),
    ),
)
_TABLE_OF_THREAD = replace(
    _TABLE, columns=[each for each in _TABLE.columns if each is not _THREAD], search=None, menu=()
)

# Texts of the waiting reasons.
WAITS_FOR = {
    "tool_permission": "permission for a tool call",
    "user_input": "user input",
    "background_tasks": "background tasks",
    "external_event": "an external event",
    "rate_limit": "a rate limit to reset",
    "manual_pause": "a manual resume (paused by a user)",
}


@page(replica=True)
def run_list(request: Request) -> HttpResponse:
    views, default = views_of(request, ViewPage.RUNS)
    if default:
        return default
    filters, rows, table = _TABLE.load(request, _find)
    # Stuck runs are first, on the first page of the whole list in its usual order.
    whole = not (table["pager"]["first"] or table["filtered"] or filters["sort"])
    stuck = list(_stuck(request.actor)) if whole else []
    stuck_ids = {run.pk for run in stuck}
    return render_list(
        request,
        "runs/list.html",
        {
            **views,
            **table,
            "clear_url": with_query(views["views_all_url"], **dict(table["kept"])),
            "stuck_runs": stuck,
            "runs": [run for run in rows if run.pk not in stuck_ids],
            "count": count_rows(table, rows, lambda: _filtered(request.actor, filters), "run,runs"),
            "bulk": RUNS.bar(request, table["current_url"]),
            **snippets.both(
                "POST",
                "threads/t1/runs",
                '{"agent_id": "support-bot"}',
                call='runs.start("t1", agent_id="support-bot")',
            ),
        },
        part="run-table",
    )


def _stuck(actor: Actor) -> Any:
    rows = Run.objects.visible_to(actor).stuck().select_related("thread")
    return rows.order_by("-pk")[:STUCK]


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[Run], str]:
    rows = _filtered(request.actor, filters).timed().select_related("thread")
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


def _filtered(actor: Actor, filters: dict[str, str]) -> RunQuerySet:
    rows = Run.objects.visible_to(actor)
    if filters["status"] == "stuck":
        rows = rows.stuck()
    elif filters["status"] == "active":
        rows = rows.active()
    elif filters["status"]:
        rows = rows.filter(status=filters["status"])
    rows = matching(rows, filters, agent="agent_id")
    owner = {"workspace_id": actor.workspace_id}
    ends = [end_of(filters["until"])]
    if filters["age"]:
        ends.append(timezone.now() - _AGES[filters["age"]][1])
    before = min((each for each in ends if each), default=None)
    return creation_times.within(rows, "created_at", start_of(filters["since"]), before, owner)


def _items(request: Request, name: str) -> tuple[list[contract.Run], str]:
    rows, next_url = _find(request, _TABLE.read(request), name)
    return _run_documents(request.actor, rows), next_url


def _run_documents(actor: Actor, rows: Sequence[Run]) -> list[contract.Run]:
    parents = parents_of(actor, rows)
    return [contract.Run.of(run, actor, parents) for run in rows]


def _items_of_thread(request: Request, name: str, thread_id: str) -> tuple[list[contract.Run], str]:
    thread = find_thread(request.actor, check_id(thread_id))
    file = thread_action_url("runs", f"{thread_id}.{name.rpartition('-')[2]}")
    rows, next_url = _page_of_thread(request, thread, file)
    return _run_documents(request.actor, rows), next_url


def _page_of_thread(request: Request, thread: Thread, root: str) -> tuple[Sequence[Run], str]:
    """A page of the runs of a thread, and the URL of the next page of the list at `root`."""
    filters = _TABLE_OF_THREAD.read(request)
    rows = Run.objects.filter(thread=thread).timed().select_related("thread")
    return _TABLE_OF_THREAD.page(request, rows, PAGE, root, filters)


def runs_of_thread(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the Runs tab of a thread."""
    root = thread_url(thread.public_id, tab="runs")
    file = thread_action_url("runs", f"{thread.public_id}.json")
    runs, next_url = _page_of_thread(request, thread, root)
    filters = _TABLE_OF_THREAD.read(request)
    table = _TABLE_OF_THREAD.describe(request, filters, next_url, root=root, file=file)
    return {
        **table,
        "runs": runs,
        "count": count_rows(table, runs, lambda: Run.objects.filter(thread=thread), "run,runs"),
    }


@id_page(replica=True)
def run_detail(request: Request, run_id: str) -> HttpResponse:
    run = find_run(request.actor, run_id)
    if wants_part(request) and target_id(request) == "run-now":
        return render(request, "runs/detail.html", header_of(request, run), part="run-now")
    return render(request, "runs/detail.html", run_context(request, run), part="run")


def run_tabs(run_id: str) -> list[tuple[str, str, str]]:
    return [
        ("timeline", "Timeline", run_url(run_id)),
        ("knowledge", "Context by step", run_action_url("knowledge", run_id)),
        ("lineage", "Lineage", run_action_url("lineage", run_id)),
    ]


def run_context(request: Request, run: Run) -> dict[str, Any]:
    """The context of a run's page; also used to show it again with the errors of a form."""
    timeline = read_timeline(request, run)
    return {
        **header_of(request, run, timeline),
        "timeline": timeline,
        "pager": {"first": timeline.first_url, "next": timeline.next_url},
    }


def header_of(request: Request, run: Run, timeline: Timeline | None = None) -> dict[str, Any]:
    """The context above the timeline. `timeline`: if the page shows it."""
    run_id = run.public_id
    api_path = f"runs/{quote(run_id, safe='')}"
    tickets = Ticket.objects.filter(run=run, status=TicketStatus.PENDING).order_by("pk")
    pending = [question_of(ticket) for ticket in tickets[:_QUESTIONS]]
    # The run continues only when all are decided, and an expired one cannot be decided any more.
    can_decide = bool(pending) and not any(question.expired for question in pending)
    waiting = run.waiting or {}
    seen = paging.whole_number(request, "seen") or run.last_revision
    done = run.status == RunStatus.DONE
    edits = request.actor.may(Role.EDITOR) and not done
    prices = None
    if not run.cost_usd and (run.input_tokens or run.output_tokens):
        prices = timeline.prices if timeline else prices_of(request.actor, run.agent_id)
    handover = handover_of(request.actor, run)
    suggestion = suggest(run, can_decide=can_decide, handover=handover) if edits else None
    awaited = handover.kind if handover else suggestion.kind if suggestion else ""
    return {
        "run": run,
        "thread": run.thread,
        "tabs": run_tabs(run_id),
        "tab": "timeline",
        "done": done,
        "waits_for": WAITS_FOR.get(str(waiting.get("reason")), str(waiting.get("reason") or "")),
        "waiting_message": waiting.get("message") or "",
        "ended": run.termination_reason or {},
        "questions": pending,
        "unseen": max(run.last_revision - seen, 0),
        "poll_url": run_url(run_id, seen=seen),
        "metadata": values.load(run.metadata or "{}"),
        "thread_state_url": thread_url(
            run.thread.public_id, tab="state", at=max(run.start_revision - 1, 0)
        ),
        "audit_url": with_query(reverse("web:audit-list"), subject=run_id)
        if request.actor.may(Role.ADMIN)
        else "",
        "can_act": edits,
        "actions": actions_of(run) if edits else [],
        "prices": prices,
        "priced": prices and prices.cost(run.input_tokens, run.output_tokens),
        "handover": handover,
        "suggestion": suggestion,
        "listeners": describe_listeners(request, run, awaited) if edits and awaited else "",
        **snippets.both("GET", api_path, call=f"runs.get({run_id!r})"),
        "typescript": snippets.typescript(f"runs.get({json.dumps(run_id)})"),
    }


urlpatterns = [
    path("runs", run_list, name="run-list"),
    *list_paths("runs", "run-list", _items),
    *list_paths("thread/runs/<path:thread_id>", "thread-runs", _items_of_thread),
    id_path("runs", run_detail, "run-detail"),
]
