"""The form of a pending ticket and the typed answer; and the list of all tickets as a file.
Decisions are made in web/inbox.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone

from state_admin.contract import tickets as contract
from state_admin.domain import schema_forms, values
from state_admin.domain.values import JSON, Raw
from state_admin.models import Ticket, TicketStatus
from state_admin.services.errors import Invalid
from state_admin.services.finding import refuse
from state_admin.templatetags.json_html import pretty

from . import paging
from .addresses import with_query
from .confirm import reason_of
from .errors import sentences_of
from .htmx import Request
from .lists import list_paths
from .schema_fields import BoundField, bind_fields, read_typed

PAGE = 50


@dataclass
class Question:
    """A pending ticket and its form: parsed arguments, and the fields of its response schema, or a
    draft of the answer as JSON if the schema cannot be shown as a form (`fields` is None). After an
    error, also the typed values, the reason and the errors."""

    ticket: Ticket
    args: JSON
    schema: JSON
    fields: list[BoundField] | None
    typed: str
    expired: bool
    reason: str = ""
    mistake: str = ""
    errors: Sequence[Mapping[str, str]] = ()


def question_of(ticket: Ticket) -> Question:
    schema = _schema(ticket)
    fields = schema_forms.fields_of(schema)
    return Question(
        ticket,
        values.load(ticket.arguments or "null"),
        schema,
        None if fields is None else bind_fields(fields, {f.name: f.typed for f in fields}),
        typed=pretty(draft(schema)) if schema is not None else "",
        expired=ticket.expires_at is not None and ticket.expires_at <= timezone.now(),
    )


def read_answer(request: Request, ticket: Ticket) -> Raw:
    """The typed answer, from the fields or as JSON. Invalid with the errors."""
    fields = schema_forms.fields_of(_schema(ticket))
    if fields is None or "payload" in request.POST:
        return paging.parse_typed_json(
            request.POST.get("payload", "").strip() or "null", "the answer"
        )
    text, faults = schema_forms.compose(fields, read_typed(request.POST, fields))
    refuse(faults, "the answer is not complete")
    return paging.parse_typed_json(text, "the answer")


def show_errors(question: Question, request: Request, refused: Invalid) -> None:
    """Show the form again with the typed values and each error at its field."""
    question.mistake, question.errors = sentences_of(refused), refused.data.get("errors", [])
    question.typed, question.reason = request.POST.get("payload", ""), reason_of(request)
    if question.fields is None or "payload" in request.POST:
        question.fields = None
        return
    fields = [each.field for each in question.fields]
    at, question.errors = schema_forms.faults_by_field(fields, question.errors)
    question.fields = bind_fields(fields, read_typed(request.POST, fields), at)


def _schema(ticket: Ticket) -> JSON:
    return values.load(ticket.response_schema) if ticket.response_schema else None


def draft(schema: JSON) -> JSON:
    """A first answer to edit: the structure of the schema with empty leaves."""
    if not isinstance(schema, dict):
        return None
    if "default" in schema:
        return schema["default"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        parts = schema.get("properties")
        return {name: draft(part) for name, part in parts.items()} if parts else {}
    return {"string": "", "boolean": True, "integer": 0, "number": 0, "array": []}.get(str(kind))


def _items(request: Request, name: str) -> tuple[list[contract.Ticket], str]:
    """Tickets, newest first, as JSON or CSV. Users decide tickets in the inbox."""
    status = paging.choice(request, "status", TicketStatus.values)
    rows = Ticket.objects.visible_to(request.actor).select_related("run__thread")
    if status:
        rows = rows.filter(status=status)
    tickets, next_url = paging.NEWEST.page(
        rows,
        paging.cursor(request),
        PAGE,
        lambda after: with_query(reverse(name), status=status, after=after),
    )
    return [contract.Ticket.of(row) for row in tickets], next_url


urlpatterns = list_paths("tickets", "ticket-list", _items)
