"""Drafts of JSON values, which a user edits as text or in a form generated from a JSON Schema: its
fields, with their values and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from django.http import JsonResponse, QueryDict
from django.template.loader import render_to_string

from state_admin.domain import schema_forms, values
from state_admin.domain.schema_forms import Field
from state_admin.domain.values import JSON, pointer_of
from state_admin.services.errors import BadRequest, Invalid, Problem, TooLarge
from state_admin.templatetags.json_html import pretty

from .drafts import Mark, marks_of, read_value
from .errors import heading_of

_MOST_ROWS = 16


@dataclass(frozen=True)
class BoundField:
    """A field with its value and its error."""

    field: Field
    typed: str
    error: str = ""

    @property
    def chosen(self) -> list[str]:
        """The selected options of a field with several."""
        return self.typed.split("\n")

    @property
    def rows(self) -> int:
        """The height of a textarea in lines, by its content."""
        least = 3 if self.field.kind == "lines" else 2
        return max(least, min(_MOST_ROWS, self.typed.count("\n") + 1 + len(self.typed) // 100))


@dataclass
class Draft:
    """A value that is being edited, and its errors. `base` is the version that was edited. `fields`
    are those of the form, made from the value `held`; None if the JSON text is edited."""

    text: str
    base: int
    reason: str = ""
    message: str = ""
    errors: list[Mark] = field(default_factory=list)
    fields: list[BoundField] | None = None
    held: str = ""

    @property
    def groups(self) -> list[tuple[str, list[BoundField]]]:
        """The fields grouped by the object that contains them; "" is the value itself."""
        groups = groupby(self.fields or [], lambda each: each.field.group)
        return [(group, list(fields)) for group, fields in groups]

    @property
    def undescribed(self) -> list[str]:
        """The members of the value that are in no field."""
        held = values.load(self.held) if self.held else {}
        described = {bound.field.name.split("/")[1] for bound in self.fields or []}
        return [name for name in held if pointer_of(name)[1:] not in described]

    def show_fields(self, fields: Sequence[Field], value: JSON) -> None:
        """Edit `value` in a form."""
        typed = schema_forms.typed_of(fields, value)
        for each in fields:
            if each.kind == "json" and typed[each.name]:
                typed[each.name] = pretty(values.load(typed[each.name]))
        self.held, self.fields = pretty(value), bind_fields(fields, typed)

    def read_fields(
        self, post: QueryDict, fields: Sequence[Field], *, complete: bool = True
    ) -> None:
        """Apply the typed fields to the value that they were made from. Raises Invalid with the
        errors."""
        typed = read_typed(post, fields)
        self.fields = bind_fields(fields, typed)
        text, faults = schema_forms.compose(
            fields, typed, values.load(self.held), complete=complete
        )
        self.text = pretty(values.load(text))
        if faults:
            raise Invalid("this is not a valid value", faults)

    def refuse(self, post: QueryDict, problem: Problem) -> None:
        """Show a problem with the value: at its fields, or at its places in the text."""
        self.message, self.errors = heading_of(problem), marks_of(self.text, problem)
        if self.fields is not None:
            fields = [bound.field for bound in self.fields]
            at, rest = schema_forms.faults_by_field(fields, self.errors)
            self.errors = [dict(error) for error in rest]
            self.fields = bind_fields(fields, read_typed(post, fields), at)


def answer_form_check(
    draft: Draft, read_form: Callable[[], None], check: Callable[[str], object]
) -> JsonResponse:
    """The errors of a form while a user types, and its value as JSON text: drafts.answer_check for
    forms. `read_form` reads the form into the draft."""
    message, errors = "", list[Mark]()
    try:
        read_form()
        check(draft.text)
    except (Invalid, TooLarge, BadRequest) as problem:
        message = heading_of(problem)
        errors = [{**error, "line": 0} for error in marks_of(draft.text, problem)]
    return JsonResponse({"message": message, "errors": errors, "value": draft.text})


def form_beside(
    post: QueryDict, draft: Draft, show_form: Callable[[], object], *, wire: bool = False
) -> str | None:
    """The form of the JSON text that is typed beside it, as HTML; "" if it has none, None if the text is
    typed without a form. `show_form` makes the form of the draft."""
    if "beside" not in post:
        return None
    try:
        show_form()
    except (Invalid, TooLarge, BadRequest):
        return ""
    if draft.fields is None:
        return ""
    return render_to_string("components/_draft_form.html", {"draft": draft, "wire": wire})


def held_value(post: QueryDict) -> tuple[str, JSON]:
    """The value that a submitted form was made from: its text, and the value."""
    text = post.get("held", "").replace("\r\n", "\n")
    return text, values.load(read_value(text).text)


def read_typed(post: QueryDict, fields: Sequence[Field]) -> dict[str, str]:
    """The typed values by field name; several selected options are separated by newlines."""
    return {field.name: "\n".join(post.getlist(f"answer{field.name}")) for field in fields}


def bind_fields(
    fields: Sequence[Field], typed: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> list[BoundField]:
    at = errors or {}
    return [BoundField(field, typed[field.name], at.get(field.name, "")) for field in fields]
