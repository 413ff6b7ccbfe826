"""Deleting threads, one or the selected ones of the list, after a confirmation of what and how much is
deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from django.http import HttpResponse
from django.urls import reverse

from state_admin.contract.threads import ThreadContents
from state_admin.domain.access import Actor, Role
from state_admin.models import Thread, Ticket
from state_admin.services.errors import BadRequest, NotFound
from state_admin.services.threads import Children, count_contents, delete_thread, find_thread
from state_admin.templatetags.ui import plural

from .actors import FORM
from .addresses import thread_action_url, thread_url
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .confirm import Choice, Confirm, ask, reason_of
from .htmx import Request, see_other, toast
from .id_address import id_page, id_path

_CHOICES = ("reject", "detach", "cascade")


@id_page(methods=FORM, role=Role.ADMIN)
def delete(request: Request, thread_id: str) -> HttpResponse:
    if request.method == "GET":
        return _ask(request, thread_id)
    number = _delete(
        request.actor, thread_id, reason_of(request), request.POST.get("children", "reject")
    )
    toast(request, f"Deleted {plural(number, 'thread,threads')}")
    return see_other(request, reverse("web:thread-list"))


def _delete(actor: Actor, thread_id: str, reason: str, children: str) -> int:
    """Returns the number of deleted threads."""
    if children not in _CHOICES:
        raise BadRequest("children must be detach, reject or cascade")
    return delete_thread(
        actor=actor, thread_id=thread_id, children=cast(Children, children), reason=reason
    ).threads


def _delete_selected(actor: Actor, thread_id: str, reason: str, children: str) -> int:
    try:
        return _delete(actor, thread_id, reason, children or "reject")
    except NotFound:  # for example deleted with its parent
        return 0


def _look(actor: Actor, ids: Sequence[str]) -> Outlook:
    """Newest threads first, which deletes most children before their parents."""
    found = Thread.objects.visible_to(actor).filter(public_id__in=ids).order_by("-pk")
    threads = list(found.only("public_id", "title", "active_run_id"))
    lines = [f"This removes {_counted(count_contents(actor, threads))}. It cannot be undone."]
    lines += _of_active_runs(threads)
    parents = Thread.objects.filter(children__isnull=False, pk__in=found.values("pk"))
    outside = parents.exclude(children__in=found.values("pk")).distinct().count()
    choices: tuple[Choice, ...] = ()
    if outside:
        lines.append(
            f"{plural(outside, 'thread has,threads have')} child threads that are not selected."
        )
        choices = (
            Choice("reject", "Skip threads with children", checked=True),
            Choice("detach", "Keep them as threads without a parent"),
            Choice("cascade", "Delete them too, with all their descendants"),
        )
    names = {
        thread.public_id: f"{thread.public_id}{thread.title and f': {thread.title}'}"
        for thread in threads
    }
    return Outlook(names, lines, "Child threads", choices)


def _ask(request: Request, thread_id: str) -> HttpResponse:
    thread = find_thread(request.actor, thread_id)
    actor = request.actor
    alone = delete_thread(actor=actor, thread_id=thread_id, children="detach", dry_run=True)
    all_of_them = delete_thread(actor=actor, thread_id=thread_id, children="cascade", dry_run=True)
    below = all_of_them.threads - 1
    lines = [f"This removes {_counted(alone)}. It cannot be undone."]
    lines += _of_active_runs([thread])
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


def _of_active_runs(threads: Sequence[Thread]) -> Iterator[str]:
    """What the deletion of threads means for agents that work, and for people who decide."""
    if active := sum(thread.active_run_id is not None for thread in threads):
        yield f"{plural(active, 'thread has,threads have')} an active run, whose next commit will fail."
    pending = Ticket.objects.pending().filter(run__thread__in=threads).count()
    if pending:
        yield f"{plural(pending, 'pending ticket is,pending tickets are')} deleted without a decision."


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


THREADS = BulkList(
    name="thread-list",
    part="thread-table",
    nouns="thread,threads",
    actions={
        "delete": BulkAction(
            verb="Delete",
            past="Deleted",
            only="Only existing threads can be deleted",
            look=_look,
            do=_delete_selected,
        )
    },
    url=thread_url,
    role=Role.ADMIN,
)

urlpatterns = [
    bulk_path("thread/bulk", THREADS),
    id_path("thread/delete", delete, "thread-delete"),
]
