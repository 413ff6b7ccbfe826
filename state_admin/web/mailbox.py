"""The mailbox page: waiting and claimed dispatches and dead letters, with replay, cancel and
clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, When
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import dispatches as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import Dispatch, DispatchStatus
from state_admin.models.counts import MOST
from state_admin.services.dead_letters import (
    clear_dead_letters,
    replay_dead_letters,
    replay_dispatch,
)
from state_admin.services.dispatches import cancel_dispatch, find_dispatch
from state_admin.templatetags.ui import plural

from . import paging, snippets
from .actors import FORM, POST, page
from .addresses import with_query
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .confirm import PREVIEW, Confirm, ask, reason_of
from .htmx import Request, list_url_of_page, render_list, see_other, toast
from .lists import table_paths
from .paging import BY_AGE, downwards, upwards
from .shell import format_count
from .tables import Field, Orders, Table, choices_of, format_row_count, matching

PAGE = 50
_SHOWN = 2000  # characters of a payload
_REQUEUED = (
    "They are requeued, and their attempts are counted from zero. The first dispatch of each thread is "
    "available at once."
)
# Dead letters first, then in the order of their life.
_RANK = Case(
    When(status=DispatchStatus.DEAD, then=0),
    *(When(status=status, then=rank) for rank, status in enumerate(DispatchStatus, start=1)),
)
_TABLE = Table(
    "web:mailbox",
    (
        Orders("Dispatch"),
        Orders("Status", upwards("status", "rank", value=_RANK)),
        Orders("Thread"),
        Orders("Agent", upwards("agent", "agent_id", read=str)),
        Orders("Priority", upwards("priority", "priority"), numeric=True),
        Orders("Attempts", downwards("attempts", "attempts"), numeric=True),
        Orders("When", BY_AGE),
        Orders("Actions"),
    ),
    search=Field("thread", "Thread", placeholder="Thread id"),
    menu=(
        Field("status", "Status", choices=choices_of(DispatchStatus.values)),
        Field("agent", "Agent"),
    ),
)
# The colours of the statuses.
DISPATCH_STATES = {
    DispatchStatus.QUEUED: "waiting",
    DispatchStatus.CLAIMED: "running",
    DispatchStatus.ACKED: "done",
    DispatchStatus.DEAD: "failed",
}


@dataclass(frozen=True)
class DispatchRow:
    dispatch: Dispatch
    state: str
    payload: Any
    long: int  # number of characters, 0 if it is shown in full
    can_cancel: bool
    can_replay: bool


@page()
def mailbox(request: Request) -> HttpResponse:
    filters, rows, table = _TABLE.load(request, _find)
    address = {name: filters[name] for name in ("thread", "agent")}
    visible = Dispatch.objects.visible_to(request.actor)
    counts = visible.concerning(**_address_arguments(filters)).bounded_counts(MOST)
    status = filters["status"]
    found = counts[status] if status else sum(counts.values())
    context = {
        **table,
        "rows": [_row(request, row) for row in rows],
        "count": format_row_count(found, "dispatch,dispatches", table["most_sorted"]),
        "bulk": DISPATCHES.bar(request, table["current_url"]),
        "chosen": status,
        "tabs": [
            (
                status,
                format_count(number),
                with_query(table["root"], **{**filters, "status": status}),
            )
            for status, number in counts.items()
        ],
        "dead": counts[DispatchStatus.DEAD],
        "replay_url": with_query(reverse("web:mailbox-replay"), **address),
        "delete_url": with_query(reverse("web:mailbox-clear"), **address),
        "may_replay": request.actor.may(Role.EDITOR),
        "may_clear": request.actor.may(Role.ADMIN),
        **snippets.both(
            "POST",
            "threads/t1/dispatches",
            '{"payload": {"task": "check"}}',
            call='dispatches.enqueue("t1", {"task": "check"})',
        ),
    }
    return render_list(request, "mailbox/list.html", context, part="mailbox")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[Dispatch], str]:
    rows = Dispatch.objects.visible_to(request.actor).select_related("thread", "run")
    rows = matching(rows.concerning(**_address_arguments(filters)), filters, status="status")
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


def _row(request: Request, row: Dispatch) -> DispatchRow:
    edits = request.actor.may(Role.EDITOR)
    return DispatchRow(
        row,
        DISPATCH_STATES.get(DispatchStatus(row.status), ""),
        values.load(row.payload or "null"),
        len(row.payload or "") if len(row.payload or "") > _SHOWN else 0,
        can_cancel=edits and row.status == DispatchStatus.QUEUED,
        can_replay=edits and row.status == DispatchStatus.DEAD,
    )


@page()
def payload(request: Request, dispatch_id: str) -> HttpResponse:
    """The payload as it was sent, byte for byte."""
    row = find_dispatch(request.actor, dispatch_id)
    return HttpResponse(row.payload, content_type="application/json; charset=utf-8")


@page(methods=POST, role=Role.EDITOR)
def replay(request: Request, dispatch_id: str) -> HttpResponse:
    row = replay_dispatch(actor=request.actor, dispatch_id=dispatch_id)
    toast(request, "Dispatch requeued")
    return _stay(request, row)


@page(methods=FORM, role=Role.EDITOR)
def cancel(request: Request, dispatch_id: str) -> HttpResponse:
    if request.method == "GET":
        confirm = Confirm(
            title="Cancel this dispatch?",
            verb="Cancel dispatch",
            back=reverse("web:mailbox"),
            lines=["No worker will process it. If a worker claims it first, it is not cancelled."],
        )
        return ask(request, confirm, part="mailbox")
    row = cancel_dispatch(actor=request.actor, dispatch_id=dispatch_id, reason=reason_of(request))
    toast(request, "Dispatch cancelled")
    return _stay(request, row)


@page(methods=FORM, role=Role.EDITOR)
def replay_all(request: Request) -> HttpResponse:
    if request.method == "GET":
        return _confirm_dead_letters(request, "Replay", _REQUEUED, kind="primary")
    address = _address_arguments(_address_filters(request))
    number = replay_dead_letters(actor=request.actor, reason=reason_of(request), **address)
    return _redirect_back(request, f"{plural(number, 'dispatch,dispatches')} requeued")


@page(methods=FORM, role=Role.ADMIN)
def clear(request: Request) -> HttpResponse:
    if request.method == "GET":
        line = (
            "They are deleted permanently, with their payloads. The audit log keeps their number."
        )
        return _confirm_dead_letters(request, "Clear", line)
    address = _address_arguments(_address_filters(request))
    done = clear_dead_letters(actor=request.actor, reason=reason_of(request), **address)
    return _redirect_back(request, f"{done.deleted:,} cleared")


def _address_filters(request: Request) -> dict[str, str]:
    return {name: paging.text(request, name) for name in ("thread", "agent")}


def _address_arguments(filters: dict[str, str]) -> dict[str, Any]:
    return {"thread_id": filters["thread"], "agent_id": filters["agent"]}


def _confirm_dead_letters(
    request: Request, verb: str, line: str, kind: str = "danger"
) -> HttpResponse:
    address = _address_filters(request)
    letters = Dispatch.objects.visible_to(request.actor).dead()
    letters = letters.concerning(**_address_arguments(address))
    number = letters.count()
    first = letters.select_related("thread").order_by("-pk")[:PREVIEW]
    confirm = Confirm(
        title=f"{verb} the dead letters?",
        verb=f"{verb} {number:,}",
        url=with_query(request.path, **address),
        back=with_query(reverse("web:mailbox"), **address, status=DispatchStatus.DEAD),
        lines=[line],
        names=[f"{row.thread.public_id}: {row.last_error or 'no reason given'}" for row in first],
        total=max(number, len(first)),
        kind=kind,
    )
    return ask(request, confirm, part="mailbox")


def _stay(request: Request, row: Dispatch) -> HttpResponse:
    """Redirect to the list with its filters, or without htmx to the thread's mailbox."""
    home = reverse("web:mailbox")
    url = list_url_of_page(request, home, with_query(home, thread=row.thread.public_id))
    return see_other(request, url, part="mailbox")


def _redirect_back(request: Request, message: str) -> HttpResponse:
    toast(request, message)
    url = with_query(reverse("web:mailbox"), **_address_filters(request))
    return see_other(request, url, part="mailbox")


def _look(status: DispatchStatus, line: str) -> Callable[[Actor, Sequence[str]], Outlook]:
    def look(actor: Actor, ids: Sequence[str]) -> Outlook:
        rows = Dispatch.objects.visible_to(actor).filter(public_id__in=ids, status=status)
        # The order of a queue: priority, then age.
        rows = rows.select_related("thread").order_by("priority", "pk")
        names = {
            row.public_id: f"…{row.public_id[-8:]}, thread {row.thread.public_id}" for row in rows
        }
        return Outlook(names, [line])

    return look


def _replay_selected(actor: Actor, dispatch_id: str, reason: str, _: str) -> int:
    replay_dispatch(actor=actor, dispatch_id=dispatch_id, reason=reason)
    return 1


def _cancel_selected(actor: Actor, dispatch_id: str, reason: str, _: str) -> int:
    cancel_dispatch(actor=actor, dispatch_id=dispatch_id, reason=reason)
    return 1


DISPATCHES = BulkList(
    name="mailbox",
    part="mailbox",
    nouns="dispatch,dispatches",
    actions={
        "replay": BulkAction(
            verb="Replay",
            past="Requeued",
            only="Only dead letters can be replayed",
            look=_look(DispatchStatus.DEAD, _REQUEUED),
            do=_replay_selected,
            kind="primary",
        ),
        "cancel": BulkAction(
            verb="Cancel",
            past="Cancelled",
            only="Only queued dispatches can be cancelled",
            look=_look(
                DispatchStatus.QUEUED,
                "No worker will process them. Those that a worker claims first are not cancelled. "
                "This cannot be undone.",
            ),
            do=_cancel_selected,
        ),
    },
    url=lambda _: "",  # a dispatch has no page
)

urlpatterns = [
    bulk_path("mailbox/bulk", DISPATCHES),
    path("mailbox", mailbox, name="mailbox"),
    *table_paths("mailbox", _TABLE, _find, contract.Dispatch.of),
    path("mailbox/replay", replay_all, name="mailbox-replay"),
    path("mailbox/clear", clear, name="mailbox-clear"),
    path("mailbox/<str:dispatch_id>/payload", payload, name="dispatch-payload"),
    path("mailbox/<str:dispatch_id>/replay", replay, name="dispatch-replay"),
    path("mailbox/<str:dispatch_id>/cancel", cancel, name="dispatch-cancel"),
]
