"""The inbox: all pending tickets, oldest first; the page of one ticket; the decision about it, and the
same decision about several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import tickets as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import Run, RunStatus, Ticket, TicketStatus
from state_admin.models.tickets import TicketQuerySet
from state_admin.services.actors import require
from state_admin.services.errors import Conflict, Invalid
from state_admin.services.runs import find_run
from state_admin.services.tickets import decide_ticket, find_ticket
from state_admin.templatetags.ui import plural

from . import paging, snippets
from .actors import READ_AND_POST, page
from .addresses import run_url, ticket_url, with_query
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .confirm import PREVIEW, reason_of
from .htmx import Request, render, render_list, see_other, target_id, toast, wants_part
from .id_address import id_page, id_path
from .lists import table_paths
from .paging import OLDEST, read_required_number
from .runs import run_context
from .tables import COUNTED, Field, Orders, Table, count_rows, matching
from .tickets import question_of, read_answer, show_errors

# All tickets of a page can be selected, and a confirmation has to show all of them.
PAGE = PREVIEW
# A ticket with longer arguments cannot be approved together with others: its list would be unreadable.
_MOST_SHOWN = 1_000
_NOTHING = Raw("null", None)
_TABLE = Table(
    "web:inbox",
    (Orders("Ticket", {"": OLDEST}),),
    search=Field("tool", "Tool", placeholder="Tool name"),
    menu=(Field("agent", "Agent"),),
)


@page()
def inbox(request: Request) -> HttpResponse:
    if wants_part(request) and target_id(request) == "inbox-now":
        return render(request, "inbox/list.html", _count_updates(request), part="inbox-now")
    return render_list(request, "inbox/list.html", _context(request), part="inbox")


def _pending(request: Request, filters: dict[str, str]) -> TicketQuerySet:
    rows = Ticket.objects.visible_to(request.actor).pending()
    return matching(rows, filters, tool="tool_name", agent="run__agent_id")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[Ticket], str]:
    rows = _pending(request, filters).select_related("run__thread")
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


def _context(request: Request) -> dict[str, Any]:
    filters, tickets, table = _TABLE.load(request, _find)
    ticket = '{"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "arguments": {}}'
    waiting = f'{{"reason": "tool_permission", "tickets": [{ticket}]}}'
    body = f'{{"status": "waiting", "waiting": {waiting}}}'
    forms = "pending ticket,pending tickets"
    return {
        **table,
        "questions": [question_of(ticket) for ticket in tickets],
        "count": count_rows(table, tickets, lambda: _pending(request, filters).order_by(), forms)
        if tickets
        else "",
        # A decision returns to the same page.
        "filter_query": table["current_url"].removeprefix(table["root"]),
        "can_act": request.actor.may(Role.EDITOR),
        "bulk": TICKETS.bar(request, table["current_url"]) if len(tickets) > 1 else None,
        "poll_url": with_query(
            table["current_url"],
            newest=tickets[-1].pk if tickets else None,
            oldest=tickets[0].pk if tickets else None,
            count=len(tickets),
        ),
        **snippets.both(
            "PATCH",
            "runs/r1",
            body,
            call=f'runs.change("r1", status="waiting", waiting={snippets.literal(waiting)})',
        ),
    }


def _count_updates(request: Request) -> dict[str, Any]:
    """The number of tickets that arrived or were decided since the page was loaded. The page shows
    a notice and is not replaced, because a form may be half filled in."""
    newest, oldest, count = (
        paging.whole_number(request, n) or 0 for n in ("newest", "oldest", "count")
    )
    filters = _TABLE.read(request)
    rows = _pending(request, filters).order_by()
    still = rows.filter(pk__gte=oldest, pk__lte=newest)[: PAGE + 1].count() if count else 0
    return {
        "arrived": rows.filter(pk__gt=newest)[: COUNTED + 1].count() if count < PAGE else 0,
        "gone": max(count - still, 0),
        "current_url": with_query(
            reverse("web:inbox"), **filters, after=paging.whole_number(request, "after")
        ),
        "poll_url": request.get_full_path(),
    }


@id_page(methods=READ_AND_POST)
def ticket_detail(request: Request, ticket_id: str) -> HttpResponse:
    """GET shows a ticket. POST approves it with an answer, or refuses it. After invalid input or a
    lost race, the page that posted (inbox, ticket or run) is rendered again."""
    ticket = find_ticket(request.actor, ticket_id)
    if request.method != "POST":
        context = _ticket_context(request, ticket)
        return render(request, "tickets/detail.html", context, part="ticket")
    require(request.actor, Role.EDITOR)
    action = request.POST.get("action") or "resume"
    try:
        decide_ticket(
            actor=request.actor,
            ticket_id=ticket_id,
            action=action,
            payload=read_answer(request, ticket) if action == "resume" else _NOTHING,
            reason=reason_of(request),
        )
    except Invalid as refused:
        return _render_again(request, ticket, refused)
    except Conflict as late:
        return _render_again(request, find_ticket(request.actor, ticket_id), lost=late)
    done = "Approved" if action == "resume" else "Refused"
    next_step = _describe_next_step(ticket.run)
    toast(request, f"{done}: {ticket.tool_name or ticket_id}. {next_step}".strip())
    origin = request.POST.get("from")
    if origin == "inbox":
        after = paging.whole_number(request, "after")
        address = with_query(reverse("web:inbox"), **_TABLE.read(request), after=after)
        # The other tickets stay selected, and their forms keep what was typed.
        return see_other(request, address, part="inbox", swap="outerMorph")
    if origin == "ticket":
        return see_other(request, ticket_url(ticket_id), part="ticket")
    return see_other(request, run_url(ticket.run.public_id), part="run")


def _describe_next_step(run: Run) -> str:
    """What happens after a decision, as a sentence. `run` is as it was before."""
    if run.status != RunStatus.WAITING:
        return ""
    if left := Ticket.objects.filter(run=run).pending().count():
        return f"Its run waits for {plural(left, 'more decision,more decisions')}."
    if (run.waiting or {}).get("wake") == "dispatch":
        return "A dispatch in the mailbox tells a worker to continue its run."
    return "Its run is running again: a worker has to continue it."


def _ticket_context(request: Request, ticket: Ticket) -> dict[str, Any]:
    pending = ticket.status == TicketStatus.PENDING
    return {
        "ticket": ticket,
        "questions": [question_of(ticket)] if pending else [],
        "args": values.load(ticket.arguments or "null"),
        "payload": values.load(ticket.payload) if ticket.payload else None,
        "can_act": request.actor.may(Role.EDITOR),
    }


def _render_again(
    request: Request, ticket: Ticket, refused: Invalid | None = None, lost: Conflict | None = None
) -> HttpResponse:
    """The page that posted, with the errors at their fields; or, after a lost race, with a notice
    of who decided, and without the form."""
    origin = request.POST.get("from")
    if origin == "inbox":
        template, part, context = "inbox/list.html", "inbox", _context(request)
    elif origin == "ticket":
        template, part, context = "tickets/detail.html", "ticket", _ticket_context(request, ticket)
    else:
        template, part = "runs/detail.html", "run"
        context = run_context(request, find_run(request.actor, ticket.run.public_id))
    if refused is not None:
        questions = context["questions"]
        question = next((each for each in questions if each.ticket.pk == ticket.pk), None)
        if question is None:  # it is on a later page
            questions.insert(0, question := question_of(ticket))
        show_errors(question, request, refused)
    status = 409 if refused is None else 422
    return render(request, template, context | {"lost": lost}, part=part, status=status)


def _look(action: str, line: str) -> Callable[[Actor, Sequence[str]], Outlook]:
    def look(actor: Actor, ids: Sequence[str]) -> Outlook:
        rows = Ticket.objects.visible_to(actor).pending().in_time().select_related("run__thread")
        if action == "resume":
            rows = rows.filter(response_schema=None)
        tickets = [
            ticket
            for ticket in rows.filter(public_id__in=ids).order_by("pk")
            if action == "cancel" or len(ticket.arguments) <= _MOST_SHOWN
        ][:PREVIEW]
        return Outlook(
            {ticket.public_id: _describe(ticket) for ticket in tickets},
            [f"{line} Each decision is recorded separately and is final."],
            seen={ticket.public_id: str(ticket.pk) for ticket in tickets},
        )

    return look


def _describe(ticket: Ticket) -> str:
    """What a decision about several tickets says about each of them."""
    arguments = values.dump(values.load(ticket.arguments))  # with the characters that it escapes
    if len(arguments) > _MOST_SHOWN:
        arguments = f"{arguments[:_MOST_SHOWN]}…"
    tool, run = ticket.tool_name or ticket.public_id, ticket.run
    agent = f"{run.agent_id}, " if run.agent_id else ""
    return f"{tool} {arguments} ({agent}run {run.public_id})"


def _decide(action: str) -> Callable[[Actor, str, str, str], int]:
    def do(actor: Actor, ticket_id: str, reason: str, seen: str) -> int:
        try:
            decide_ticket(
                actor=actor,
                ticket_id=ticket_id,
                action=action,
                payload=_NOTHING,
                reason=reason,
                expected_pk=read_required_number("seen", seen),
            )
        except Conflict as late:  # its hint says who decided what
            raise Conflict(late.hint or late.detail) from late
        return 1

    return do


TICKETS = BulkList(
    name="inbox",
    part="inbox",
    nouns="ticket,tickets",
    actions={
        "resume": BulkAction(
            verb="Approve",
            past="Approved",
            only="Only pending tickets that need no answer and have at most "
            f"{_MOST_SHOWN:,} characters of arguments can be approved together",
            look=_look("resume", "The agents may make these calls."),
            do=_decide("resume"),
            kind="primary",
        ),
        "cancel": BulkAction(
            verb="Refuse",
            past="Refused",
            only="Only pending tickets can be refused",
            look=_look("cancel", "The agents must not make these calls."),
            do=_decide("cancel"),
        ),
    },
    url=ticket_url,
)

urlpatterns = [
    bulk_path("inbox/bulk", TICKETS),
    path("inbox", inbox, name="inbox"),
    *table_paths("inbox", _TABLE, _find, contract.Ticket.of),
    id_path("ticket", ticket_detail, "ticket-detail"),
]
