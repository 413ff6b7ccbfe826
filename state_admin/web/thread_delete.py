"""Deleting a thread, after a confirmation of what and how much is deleted."""

from __future__ import annotations

from typing import cast

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from state_admin.contract.threads import ThreadContents
from state_admin.domain.access import Role
from state_admin.services.errors import BadRequest
from state_admin.services.threads import Children, delete_thread, find_thread
from state_admin.templatetags.ui import plural

from .addresses import thread_action_url, thread_url
from .confirm import Choice, Confirm, ask
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path

_CHOICES = ("reject", "detach", "cascade")


@require_http_methods(["GET", "POST"])
@id_page(role=Role.ADMIN)
def delete(request: Request, thread_id: str) -> HttpResponse:
    if request.method == "GET":
        return _ask(request, thread_id)
    children = request.POST.get("children", "reject")
    if children not in _CHOICES:
        raise BadRequest("children must be detach, reject or cascade")
    done = delete_thread(
        actor=request.actor,
        thread_id=thread_id,
        children=cast(Children, children),
        reason=request.POST.get("reason", ""),
    )
    toast(request, f"Deleted {plural(done.threads, 'thread,threads')}")
    return see_other(request, reverse("web:thread-list"))


def _ask(request: Request, thread_id: str) -> HttpResponse:
    thread = find_thread(request.actor, thread_id)
    actor = request.actor
    alone = delete_thread(actor=actor, thread_id=thread_id, children="detach", dry_run=True)
    all_of_them = delete_thread(actor=actor, thread_id=thread_id, children="cascade", dry_run=True)
    below = all_of_them.threads - 1
    lines = [f"This removes {_counted(alone)}. It cannot be undone."]
    if thread.active_run_id:
        lines.append("A run is active on it; the agent's next commit will fail.")
    choices: tuple[Choice, ...] = ()
    if below:
        lines.append(f"It has {plural(below, 'descendant thread,descendant threads')}.")
        choices = (
            Choice("reject", "Refuse if it has children", checked=True),
            Choice("detach", "Keep them as threads without a parent"),
            Choice("cascade", f"Delete them too: {_counted(all_of_them)} in all"),
        )
    confirm = Confirm(
        title=f"Delete thread {thread_id}?",
        verb="Delete thread",
        url=thread_action_url("delete", thread_id),
        back=thread_url(thread_id),
        lines=lines,
        fields=() if below else [("children", "reject")],
        choices_name="children",
        choices_label="Child threads",
        choices=choices,
    )
    return ask(request, confirm)


def _counted(report: ThreadContents) -> str:
    """ "1 thread, 60 messages, 4 runs, 120 state values and 3 entries"."""
    parts = [
        plural(count, forms)
        for count, forms in (
            (report.threads, "thread,threads"),
            (report.messages, "message,messages"),
            (report.runs, "run,runs"),
            (report.state_values, "state value,state values"),
            (report.entries, "entry,entries"),
        )
        if count
    ]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


urlpatterns = [id_path("thread/delete", delete, "thread-delete")]
