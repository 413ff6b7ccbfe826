"""The Compactions tab of a thread: what a compaction would do now, and the previous ones."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from state_admin.domain.access import Role
from state_admin.models import Compaction, Thread
from state_admin.models.compactions import UNFINISHED
from state_admin.services.compactions import preview_compaction, request_compaction
from state_admin.services.effective_views import active_summary

from .actors import POST
from .addresses import thread_action_url, thread_url
from .compactions import jobs_of_thread, replaced
from .confirm import reason_of
from .htmx import Request, see_other, target_id, toast
from .id_address import id_page, id_path
from .policies import policy_url

# For more messages than this, the plan is fetched after the page has loaded.
_PLANNED_AT_ONCE = 5_000


def show(request: Request, thread: Thread) -> dict[str, Any]:
    """The context of the tab. While a job is unfinished, a live update contains the jobs only.
    Afterwards it contains the whole tab, because the summary and the plan have changed too."""
    jobs = Compaction.objects.filter(thread=thread)
    context = jobs_of_thread(request, thread)
    if target_id(request) == "thread-jobs":
        context["whole"] = not jobs.filter(status__in=UNFINISHED).exists()
        if not context["whole"]:
            return context
    summary = active_summary(thread)
    standing = jobs.select_related("summary").filter(summary=summary).first() if summary else None
    length = thread.message_count - (summary.folds_to or 0 if summary else 0)
    at_once = length <= _PLANNED_AT_ONCE or "plan" in request.GET
    return {
        **context,
        "preview": preview_compaction(actor=request.actor, thread_id=thread.public_id)
        if at_once
        else None,
        "plan_url": thread_url(thread.public_id, tab="compactions", plan="now"),
        "policy_url": policy_url("thread", thread.public_id),
        "compact_url": thread_action_url("compact", thread.public_id),
        "snapshots_url": thread_action_url("compact-snapshots", thread.public_id)
        if request.actor.may(Role.ADMIN)
        else "",
        "job": standing,
        **(replaced(request, standing) if standing else {}),
    }


@id_page(methods=POST, role=Role.EDITOR)
def compact(request: Request, thread_id: str) -> HttpResponse:
    """Request a compaction, which a worker performs."""
    request_compaction(actor=request.actor, thread_id=thread_id, reason=reason_of(request))
    toast(request, "Compaction requested")
    return see_other(request, thread_url(thread_id, tab="compactions"), part="thread")


urlpatterns = [id_path("thread/compact", compact, "thread-compact")]
