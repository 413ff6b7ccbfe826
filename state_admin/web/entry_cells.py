"""Editing a member of a value in its cell of the state browser.

Every response is a row of the table: unchanged, with the form in one cell, or with the new version.
Without JavaScript, the value is edited on the entry's page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse, QueryDict

from state_admin.domain import schema_forms, values
from state_admin.domain.access import Role
from state_admin.domain.schema_forms import Field
from state_admin.domain.values import JSON, same
from state_admin.models import Namespace
from state_admin.models.browsing import EntryFilter
from state_admin.models.browsing import entry_page as find_entries
from state_admin.services.entries import Precondition, patch_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.services.errors import BadRequest, Invalid, NotFound, TooLarge, VersionConflict
from state_admin.services.namespaces import find_definition

from .actors import FORM
from .addresses import entry_action_url
from .entry_address import entry_page, entry_paths
from .entry_columns import kinds_of
from .entry_list import EntryListFilters, EntryListRow, is_valid, list_columns, read_values
from .entry_undo import undo_of
from .errors import sentences_of
from .htmx import Request, Undo, render, toast
from .paging import number_in
from .tables import member_of, read_columns

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


@dataclass(frozen=True)
class CellForm:
    """The form in a cell. `column` is the id of its column, `version` the version that saving
    replaces. After a conflict, `conflict` has the author of the other write and the member's
    current value."""

    column: str
    field: Field
    typed: str
    version: int
    url: str
    list_fields: list[tuple[str, str]]
    error: str = ""
    conflict: str = ""

    @property
    def long(self) -> bool:
        """Whether the text needs several lines. Enter saves in a single line only."""
        return self.field.kind == "lines" or "\n" in self.typed


@entry_page(methods=FORM, role=Role.EDITOR)
def entry_cell(request: Request, namespace: str, key: str) -> HttpResponse:
    parameters = request.POST if request.method == "POST" else request.GET
    name = member_of(parameters.get("member", ""))
    if name is None:
        if request.method == "POST":
            raise BadRequest("member must name a member of the value, such as /goal")
        return _row(request, parameters, namespace, key)
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    value = values.load(now.value)
    if not isinstance(value, dict):
        raise BadRequest("the value is not an object; edit it on the page of the entry")
    field = _field(request, namespace, name, value)
    typed = schema_forms.typed_of([field], value)[field.name]
    if request.method == "GET":
        return _row(request, parameters, namespace, key, _form(parameters, now, field, typed))
    return _save(request, now, value, field, typed)


def _save(
    request: Request, now: EntryView, value: dict[str, Any], field: Field, held: str
) -> HttpResponse:
    post, namespace, key = request.POST, now.namespace, now.key
    typed = post.get("typed", "").replace("\r\n", "\n")
    version = number_in(post, "version")

    def again(now: EntryView, **more: str) -> HttpResponse:
        form = _form(post, now, field, typed, **more)
        status = 409 if "conflict" in more else 422
        return _row(request, post, namespace, key, form, status=status)

    name = member_of(post.get("member", ""))
    text, faults = schema_forms.compose([field], {field.name: typed}, value)
    if faults:
        return again(now, error="; ".join(fault.message for fault in faults))
    if now.version != version:
        return again(now, conflict=_conflict(now, held))
    changed = values.load(text)
    if same(changed, value):
        return _row(request, post, namespace, key)
    operation: dict[str, JSON] = {"op": "remove", "path": field.name}
    if name in changed:
        operation = {"op": "add", "path": field.name, "value": changed[name]}
    try:
        saved = patch_entry(
            actor=request.actor,
            namespace=namespace,
            key=key,
            kind="json",
            operations=[operation],
            precondition=Precondition(version),
        ).entry
    except VersionConflict:
        now = read_entry(actor=request.actor, namespace=namespace, key=key)
        held = schema_forms.typed_of([field], values.load(now.value))[field.name]
        return again(now, conflict=_conflict(now, held))
    except (Invalid, TooLarge) as problem:
        errors = problem.data.get("errors", [])
        messages = [
            f"{each['pointer']}: {each['message']}".removeprefix(f"{field.name}: ")
            for each in errors
        ]
        return again(now, error="; ".join(messages) or sentences_of(problem))
    undo = undo_of(request.actor, namespace, key, written=saved.version, before=version)
    if undo:
        undo = Undo(undo.url, {**undo.fields, "back": post.get("back", "")})
    toast(request, f"Saved version {saved.version} of {key}", undo=undo)
    return _row(request, post, namespace, key)


def _conflict(now: EntryView, held: str) -> str:
    return f"{now.actor} wrote version {now.version} in the meantime. It has: {held or 'no value'}"


def _field(request: Request, namespace: str, name: str, value: dict[str, Any]) -> Field:
    """The field for a member: from the schema, or from the value if the schema does not describe
    it."""
    definition = find_definition(request.actor, namespace, fresh=True)
    schema = values.load(definition.schema)
    parts = schema.get("properties", {}) if isinstance(schema, dict) else {}
    part = parts.get(name, {}) if isinstance(parts, dict) else {}
    if not part and type(value.get(name)) in _TYPES:
        part = {"type": _TYPES[type(value[name])]}
    if "object" in kinds_of(part):
        part = {}  # edited as JSON, not as a field for each of its members
    needed = schema.get("required", []) if isinstance(schema, dict) else []
    whole: JSON = {
        "type": "object",
        "properties": {name: part},
        "required": [name] if name in needed else [],
    }
    (field,) = schema_forms.fields_over(whole, value, blank=True)
    return field


def _form(parameters: QueryDict, now: EntryView, field: Field, typed: str, **more: str) -> CellForm:
    kept = ("columns", "list_namespace", "back")
    return CellForm(
        column=parameters.get("member", ""),
        field=field,
        typed=typed,
        version=now.version,
        url=entry_action_url("cell", now.namespace, now.key),
        list_fields=[(name, parameters.get(name, "")) for name in kept],
        **more,
    )


def _row(
    request: Request,
    parameters: QueryDict,
    namespace: str,
    key: str,
    form: CellForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """The row of an entry in a table with the columns that the request names."""
    actor = request.actor
    lines = find_entries(actor, EntryFilter(namespace, prefix=key), limit=1)
    if not lines or lines[0].key != key:
        raise NotFound(f"entry not found: {namespace}/{key}. It may have been deleted.")
    rows = read_values([EntryListRow(lines[0], is_valid(actor, lines[0]))])
    filters = EntryListFilters(
        namespace=parameters.get("list_namespace", ""), columns=read_columns(parameters)
    )
    node = Namespace.objects.visible_to(actor).filter(name=namespace).first()
    context = {
        "row": rows[0],
        "columns": list_columns(actor, filters, node, rows),
        "filters": filters,
        "can_edit": True,
        "form": form,
    }
    return render(request, "entries/list.html#entry-row", context, status=status)


urlpatterns = entry_paths("entry/cell", entry_cell, "entry-cell")
