"""Tickets: /tickets, /tickets/{id}, …/decision, /runs/{id}/tickets."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import tickets as contract
from state_admin.models import Ticket, TicketStatus
from state_admin.models.feed_sql import FeedFilter
from state_admin.rest import long_polling
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import runs, tickets


@handles(contract.LIST_TICKETS)
def list_tickets(call: Endpoint) -> HttpResponse:
    rows = Ticket.objects.visible_to(call.actor).select_related("run__thread")
    rows = rows.filter(
        **call.given(status="status", thread_id="run__thread__public_id", run_id="run__public_id")
    )
    return answer_rows(call, rows, contract.Ticket.of)


@handles(contract.LIST_RUN_TICKETS)
def list_run_tickets(call: Endpoint, run_id: str) -> HttpResponse:
    rows = Ticket.objects.filter(run=runs.find_run(call.actor, run_id))
    rows = rows.select_related("run__thread")
    return answer_rows(call, rows, contract.Ticket.of)


@handles(contract.GET_TICKET)
def get_ticket(call: Endpoint, ticket_id: str) -> HttpResponse:
    ticket = tickets.find_ticket(call.actor, ticket_id)
    return long_polling.answer_news(
        call,
        FeedFilter(run=ticket.run.public_id),
        look=lambda: tickets.find_ticket(call.actor, ticket_id),
        is_news=lambda ticket: ticket.status != TicketStatus.PENDING,
        show=lambda ticket: answer(contract.Ticket.of(ticket)),
    )


@handles(contract.DECIDE_TICKET)
def decide_ticket(call: Endpoint, ticket_id: str) -> HttpResponse:
    body = call.body(contract.Decision)
    ticket = tickets.decide_ticket(
        **call.author, ticket_id=ticket_id, action=body.action, payload=body.payload
    )
    return answer(contract.Ticket.of(ticket))
