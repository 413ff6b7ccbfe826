"""What the form of a pending ticket shows; deciding it is in run_actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state_admin.domain import values
from state_admin.domain.values import JSON
from state_admin.models import Ticket
from state_admin.templatetags.json_html import pretty


@dataclass
class Question:
    """A pending ticket with what its form shows: parsed arguments, a draft of the answer, and
    after a mistake what was typed and what is wrong with it."""

    ticket: Ticket
    args: JSON
    schema: JSON
    typed: str
    mistake: str = ""
    errors: Sequence[Mapping[str, str]] = ()


def question_of(ticket: Ticket) -> Question:
    schema = values.load(ticket.response_schema) if ticket.response_schema else None
    typed = pretty(draft(schema)) if schema is not None else ""
    return Question(ticket, values.load(ticket.arguments or "null"), schema, typed)


def draft(schema: JSON) -> JSON:
    """A first answer that a person can change: the shape of the schema with empty leaves."""
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
