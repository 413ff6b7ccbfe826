"""Compactions: the list of jobs, the page of one job, and the actions on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.db.models import Case, F, Value, When
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import compactions as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import Compaction, CompactionKind, CompactionStatus, Message, Thread
from state_admin.models.compactions import UNFINISHED, CompactionQuerySet
from state_admin.services.compaction_jobs import MAX_ATTEMPTS
from state_admin.services.compactions import (
    built_upon,
    cancel_compaction,
    find_compaction,
    folded_messages,
    replaced_summary,
    retry_compaction,
    undo_compaction,
)
from state_admin.services.effective_views import active_summary
from state_admin.services.storage import read_series
from state_admin.templatetags.charts import Trend
from state_admin.templatetags.ui import number, tokens

from . import paging, snippets
from .actors import FORM, POST, page
from .addresses import thread_url, with_query
from .confirm import Confirm, ask, reason_of
from .htmx import Request, render, render_list, see_other, toast, wants_part
from .lists import table_paths
from .paging import BY_AGE, downwards, upwards
from .tables import Field, Orders, Table, choices_of, count_rows, matching
from .thread_contexts import line_of
from .usage import TREND_DAYS, saved_trend

PAGE = 50
REPLACED = 60
# Failed jobs first, then unfinished ones.
_FIRST = (CompactionStatus.FAILED, CompactionStatus.RUNNING, CompactionStatus.QUEUED)
_RANK = Case(
    *(When(status=status, then=rank) for rank, status in enumerate(_FIRST)), default=len(_FIRST)
)
_BEFORE, _AFTER = Coalesce("tokens_before", 0), Coalesce("tokens_after", 0)
# In thousandths of the tokens before.
_SAVED = Coalesce(
    (F("tokens_before") - F("tokens_after")) * 1000 / NullIf("tokens_before", Value(0)), 0
)
_TABLE = Table(
    "web:compaction-list",
    (
        Orders("Compaction"),
        Orders("Status", upwards("status", "rank", value=_RANK)),
        Orders("Kind", upwards("kind", "kind", read=str)),
        Orders("Target"),
        Orders("Before", downwards("before", "before", value=_BEFORE), numeric=True),
        Orders("After", downwards("after", "after", value=_AFTER), numeric=True),
        Orders("Saved", downwards("saved", "saved", value=_SAVED), numeric=True),
        Orders("Requested by", upwards("requested-by", "requested_by", read=str)),
        Orders("When", BY_AGE),
    ),
    search=Field("thread", "Thread", placeholder="Thread id"),
    menu=(
        Field("status", "Status", choices=choices_of(CompactionStatus.values)),
        Field("kind", "Kind", choices=choices_of(CompactionKind.values)),
    ),
)
_TABLE_OF_THREAD = replace(
    _TABLE,
    columns=[
        *(
            Orders("Messages", numeric=True) if each.label == "Target" else each
            for each in _TABLE.columns
        ),
        Orders("Actions"),
    ],
    search=None,
    menu=(),
)


@page(replica=True)
def compaction_list(request: Request) -> HttpResponse:
    find = partial(_find, jobs=Compaction.objects.defer("summary_text"))
    filters, rows, table = _TABLE.load(request, find)
    visible = Compaction.objects.visible_to(request.actor)
    context = {
        **table,
        "rows": rows,
        "count": count_rows(
            table, rows, lambda: _filtered(visible, filters), "compaction,compactions"
        ),
        **snippets.both("POST", "threads/t1/compactions", "{}", call='threads.compact("t1")'),
    }
    if not wants_part(request):
        context["trends"] = _trends(request.actor)
    return render_list(request, "compactions/list.html", context, part="compaction-table")


def _trends(actor: Actor) -> list[Trend]:
    samples = read_series(actor, days=TREND_DAYS)
    removed = [sample.rows_removed for sample in samples]
    label = f"Rows removed in {TREND_DAYS} days"
    note = f"{number(max(removed, default=0))} on the busiest day"
    return [saved_trend(samples), Trend(label, number(sum(removed)), removed, note)]


def _find(
    request: Request, filters: dict[str, str], name: str, jobs: CompactionQuerySet
) -> tuple[Sequence[Compaction], str]:
    rows = _filtered(jobs.visible_to(request.actor), filters).select_related("thread", "namespace")
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


def jobs_of_thread(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the table in the Compactions tab of a thread."""
    filters, jobs = _TABLE_OF_THREAD.read(request), Compaction.objects.filter(thread=thread)
    root = thread_url(thread.public_id, tab="compactions")
    rows, next_url = _TABLE_OF_THREAD.page(request, jobs.defer("summary_text"), PAGE, root, filters)
    file = with_query(reverse("web:compaction-list-json"), thread=thread.public_id)
    table = _TABLE_OF_THREAD.describe(request, filters, next_url, root=root, file=file)
    standing = active_summary(thread)
    for job in rows:
        job.can = can_do(request, job, standing)
    count = count_rows(table, rows, lambda: jobs, "compaction,compactions")
    return {**table, "rows": rows, "count": count}


def _filtered(rows: CompactionQuerySet, filters: dict[str, str]) -> CompactionQuerySet:
    return matching(rows, filters, status="status", kind="kind", thread="thread__public_id")


@page(replica=True)
def compaction_detail(request: Request, compaction_id: str) -> HttpResponse:
    job = find_compaction(request.actor, compaction_id)
    standing = active_summary(job.thread) if job.thread else None
    can = can_do(request, job, standing)
    context = {
        "job": job,
        "unfinished": job.status in UNFINISHED,
        "most_attempts": MAX_ATTEMPTS,
        "later": None if can["can_undo"] else built_upon(job),
        "earlier": replaced_summary(job),
        "policy": values.load(job.policy or "{}"),
        "current_url": reverse("web:compaction-detail", args=[compaction_id]),
        **can,
        **replaced(request, job),
    }
    return render(request, "compactions/detail.html", context, part="compaction")


def can_do(request: Request, job: Compaction, standing: Message | None) -> dict[str, bool]:
    """Which buttons the page shows. Only the summary in use can be undone: it contains the earlier
    ones."""
    edits = request.actor.may(Role.EDITOR)
    retryable = job.status not in (*UNFINISHED, CompactionStatus.DONE)
    return {
        "can_undo": edits and standing is not None and job.summary_id == standing.pk,
        "can_cancel": edits and job.status in UNFINISHED,
        "can_retry": edits and retryable and job.kind == CompactionKind.CONTEXT,
    }


def replaced(request: Request, job: Compaction) -> dict[str, Any]:
    """The messages that a job's summary replaces, one line each, one page at a time."""
    if job.thread is None or job.boundary_seq is None:
        return {}
    thread = job.thread
    after = paging.whole_number(request, "after") or 0
    rows = folded_messages(job).lines().filter(seq__gt=after)
    url = reverse("web:compaction-detail", args=[job.public_id])
    messages, next_url = paging.cut(rows, REPLACED, lambda last: with_query(url, after=last.seq))
    return {
        "replaced": [line_of(thread, row, ()) for row in messages],
        "replaced_pager": {"first": url if after else "", "next": next_url},
    }


def _act(
    request: Request,
    compaction_id: str,
    verb: str,
    lines_of: Callable[[Compaction], list[str]],
    act: Callable[..., Compaction],
    message: str,
) -> HttpResponse:
    """GET shows the confirmation with the lines about the job; POST performs the action and redirects to
    the page it came from."""
    job = find_compaction(request.actor, compaction_id)
    detail_url = reverse("web:compaction-detail", args=[compaction_id])
    from_thread = request.POST.get("from") or request.GET.get("from")
    if request.method == "GET":
        confirm = Confirm(
            title=f"{verb} this compaction?",
            verb=f"{verb} compaction",
            back=detail_url,
            lines=lines_of(job),
            fields=[("from", "thread")] if from_thread == "thread" else [],
        )
        return ask(request, confirm, part="thread" if from_thread else "compaction")
    act(actor=request.actor, compaction_id=compaction_id, reason=reason_of(request))
    toast(request, message)
    if from_thread and job.thread:
        back = thread_url(job.thread.public_id, tab="compactions")
        return see_other(request, back, part="thread")
    return see_other(request, detail_url, part="compaction")


@page(methods=FORM, role=Role.EDITOR)
def undo(request: Request, compaction_id: str) -> HttpResponse:
    def lines_of(job: Compaction) -> list[str]:
        below = _summary_below(job)
        again = (
            f"the summary of messages 1 to {below} and those behind it" if below else "messages 1"
        )
        return [
            f"The model will see {again} to {job.boundary_seq} again instead of this summary: "
            f"about {tokens(job.tokens_before)} tokens instead of {tokens(job.tokens_after)}.",
            "Nothing is deleted. The summary stays in the thread, and you can compact again.",
        ]

    return _act(request, compaction_id, "Undo", lines_of, undo_compaction, "Compaction undone")


@page(methods=FORM, role=Role.EDITOR)
def cancel(request: Request, compaction_id: str) -> HttpResponse:
    def lines_of(job: Compaction) -> list[str]:
        return [f"It is {job.status}. The conversation stays as it is."]

    message = "Compaction cancelled"
    return _act(request, compaction_id, "Cancel", lines_of, cancel_compaction, message)


def _summary_below(job: Compaction) -> int | None:
    """The last message of the next smaller summary, which an undo puts into use again. None without
    one."""
    if job.thread is None or job.boundary_seq is None:
        return None
    standing = Message.objects.filter(thread=job.thread).active_summaries()
    below = standing.filter(folds_to__lt=job.boundary_seq).order_by("-folds_to").first()
    return below.folds_to if below else None


@page(methods=POST, role=Role.EDITOR)
def retry(request: Request, compaction_id: str) -> HttpResponse:
    job = retry_compaction(actor=request.actor, compaction_id=compaction_id)
    toast(request, "Compaction requested again")
    return see_other(
        request, reverse("web:compaction-detail", args=[job.public_id]), part="compaction"
    )


urlpatterns = [
    path("compactions", compaction_list, name="compaction-list"),
    *table_paths(
        "compactions",
        _TABLE,
        partial(_find, jobs=Compaction.objects.select_related("summary")),
        contract.Compaction.of,
    ),
    path("compactions/<str:compaction_id>", compaction_detail, name="compaction-detail"),
    path("compactions/<str:compaction_id>/undo", undo, name="compaction-undo"),
    path("compactions/<str:compaction_id>/cancel", cancel, name="compaction-cancel"),
    path("compactions/<str:compaction_id>/retry", retry, name="compaction-retry"),
]
