"""People in the loop: /tickets, /tickets/{id}, …/decision, /runs/{id}/tickets."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain.values import Raw
from state_admin.models import Ticket, TicketStatus
from state_admin.models.feed_sql import FeedFilter
from state_admin.services import runs, tickets

from . import pagination, waiting
from .bodies import Body, RawField, Text, answer, verbatim
from .endpoint import Endpoint


class DecisionBody(Body):
    action = Text()
    payload = RawField(required=False)


def show_ticket(row: Ticket) -> dict[str, Any]:
    schema, payload = row.response_schema, row.payload
    return {
        "id": row.public_id,
        "run_id": row.run.public_id,
        "thread_id": row.run.thread.public_id,
        "tool_call_id": row.tool_call_id,
        "tool_name": row.tool_name,
        "arguments": verbatim(row.arguments or "null"),
        "resume_mode": row.resume_mode,
        "reason": row.reason,
        "response_schema": verbatim(schema) if schema else None,
        "expires_at": row.expires_at,
        "on_expiry": row.on_expiry,
        "status": row.status,
        "payload": verbatim(payload) if payload else None,
        "decided_by": row.decided_by or None,
        "decided_at": row.decided_at,
        "created_at": row.created_at,
    }


class TicketList(Endpoint):
    @extend_schema(operation_id="list_tickets")
    def get(self, request: Request) -> HttpResponse:
        """Tickets, newest first; `status=pending` is the inbox."""
        rows = Ticket.objects.visible_to(self.actor)
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        page = pagination.read_page(self)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        found = list(rows.select_related("run__thread").order_by("-id")[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: row.pk)
        return answer({"items": [show_ticket(row) for row in shown], "next_cursor": cursor})


class RunTickets(Endpoint):
    @extend_schema(operation_id="list_run_tickets")
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """The tickets of a run, in the order they were opened."""
        page = pagination.read_page(self)
        rows = Ticket.objects.filter(run=runs.find_run(self.actor, run_id))
        if page.after is not None:
            rows = rows.filter(id__gt=page.after)
        found = list(rows.select_related("run__thread").order_by("id")[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: row.pk)
        return answer({"items": [show_ticket(row) for row in shown], "next_cursor": cursor})


class TicketDetail(Endpoint):
    @extend_schema(operation_id="get_ticket")
    def get(self, request: Request, ticket_id: str) -> HttpResponse:
        """A ticket. `wait=30` answers when it is no longer pending."""
        ticket = tickets.find_ticket(self.actor, ticket_id)
        return waiting.answer_news(
            self,
            FeedFilter(run=ticket.run.public_id),
            look=lambda: tickets.find_ticket(self.actor, ticket_id),
            is_news=lambda ticket: ticket.status != TicketStatus.PENDING,
            show=lambda ticket: answer(show_ticket(ticket)),
        )


class TicketDecision(Endpoint):
    @extend_schema(operation_id="decide_ticket", request=DecisionBody)
    def post(self, request: Request, ticket_id: str) -> HttpResponse:
        """Resume with a payload, or cancel. The first decision wins."""
        body = DecisionBody.take(request.data)
        ticket = tickets.decide_ticket(
            actor=self.actor,
            ticket_id=ticket_id,
            action=body["action"],
            payload=body.get("payload", Raw("null", None)),
            reason=self.reason,
        )
        return answer(show_ticket(ticket))
