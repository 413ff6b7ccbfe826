"""Forking a thread at a revision, after a preview of what is copied."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract.threads import MAX_TITLE
from state_admin.domain.access import Role
from state_admin.domain.ids import uuid7
from state_admin.models import Revision, Thread
from state_admin.services.forks import fork_thread
from state_admin.services.snapshots import check_kept
from state_admin.services.threads import find_thread
from state_admin.templatetags.ui import plural

from .actors import FORM
from .addresses import thread_action_url, thread_url
from .confirm import Confirm, Input, ask, reason_of
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path
from .thread_states import read_requested_revision


@id_page(methods=FORM, role=Role.EDITOR)
def fork(request: Request, thread_id: str) -> HttpResponse:
    """Fork a thread. The confirmation contains the id of the copy, so that a form that is sent
    twice creates one copy."""
    at = read_requested_revision(request)
    if request.method == "GET":
        return _ask(request, find_thread(request.actor, thread_id), at)
    title = request.POST.get("title")
    copy, _ = fork_thread(
        actor=request.actor,
        thread_id=thread_id,
        fork_id=request.POST.get("fork") or None,
        revision=at,
        title=title.strip()[:MAX_TITLE] if title is not None else None,
        reason=reason_of(request),
    )
    toast(request, f"Forked at revision {at}")
    return see_other(request, thread_url(copy.public_id, tab="state"), part="thread")


def _ask(request: Request, thread: Thread, at: int) -> HttpResponse:
    check_kept(thread, at)
    counts = Revision.objects.filter(thread=thread, number=at)
    messages = counts.values_list("message_count", flat=True).first() or 0
    confirm = Confirm(
        title=f"Fork at revision {at}?",
        verb="Fork",
        url=thread_action_url("fork", thread.public_id, at=at),
        back=thread_url(thread.public_id, tab="state", at=at),
        lines=[
            f"A new thread starts with the state of revision {at} and the first "
            f"{plural(messages, 'message,messages')}. This thread does not change.",
            "Runs, tickets and values of state keys that are not persistent are not copied.",
        ],
        fields=[("fork", uuid7())],
        inputs=[
            Input(
                "title",
                "Title of the new thread",
                value=f"Fork of {thread.title}"[:MAX_TITLE] if thread.title else "",
                longest=MAX_TITLE,
                required=False,
            )
        ],
        kind="primary",
    )
    return ask(request, confirm, part="thread")


urlpatterns = [id_path("thread/fork", fork, "thread-fork")]
