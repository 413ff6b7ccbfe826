"""The config registry: pages for providers, models and agents. Secrets are never shown.

The history and the differences of a record are on the page of its entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import re_path, reverse

from state_admin.contract.config import RecordRow
from state_admin.domain import config as rules
from state_admin.domain import schema_forms, values
from state_admin.domain.access import Role
from state_admin.domain.config import Kind
from state_admin.domain.values import JSON, Raw
from state_admin.models import Entry
from state_admin.services.config import (
    check_id,
    check_record,
    delete_record,
    find_dependents,
    put_record,
    read_record,
)
from state_admin.services.conflicts import ConflictSides, compare
from state_admin.services.entries import Precondition
from state_admin.services.entry_views import EntryView, is_valid, read_entry
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    TooLarge,
    VersionConflict,
)
from state_admin.templatetags.json_html import pretty
from state_admin.templatetags.ui import plural

from . import snippets
from .actors import FORM, POST, page
from .addresses import entry_action_url, entry_url
from .confirm import Confirm, ask, reason_of
from .drafts import (
    answer_check,
    conflict_context,
    read_value,
    resolve_clashes,
    seen_version,
    typed_text,
)
from .entry_undo import undo_of
from .htmx import Request, render, render_list, see_other, toast
from .lists import list_paths
from .paging import BY_CHANGE, Order
from .schema_fields import Draft, answer_form_check, form_beside, held_value
from .tables import Field, Orders, Table, matching

MOST = 200
_TEMPLATES: dict[Kind, JSON] = {
    Kind.PROVIDERS: {"adapter": "", "base_url": None, "timeout_secs": 300},
    Kind.MODELS: {"provider_id": "", "upstream_model": "", "context_window": None},
    Kind.AGENTS: {"model_id": "", "description": "", "system_prompt": ""},
}
# Examples for an empty list. Each is valid as it is once the one before it exists.
EXAMPLES: dict[Kind, JSON] = {
    Kind.PROVIDERS: {"adapter": "anthropic", "timeout_secs": 300},
    Kind.MODELS: {"provider_id": "main", "upstream_model": "example-large"},
    Kind.AGENTS: {"model_id": "main", "system_prompt": "You plan trips."},
}


@dataclass(frozen=True)
class Slot:
    """A secret of a record: its JSON pointer, its form field, and whether it is set."""

    pointer: str
    name: str
    is_set: bool
    hint: str


@page(replica=True)
def record_list(request: Request, kind: str = Kind.PROVIDERS) -> HttpResponse:
    record_kind = Kind(kind)
    find = partial(_find, record_kind)
    _, rows, table = _table_of(record_kind).load(request, find, args=[record_kind])
    body = values.dump({"value": EXAMPLES[record_kind]})
    context = {
        **table,
        "kinds": [(each, reverse("web:config-list", args=[each])) for each in Kind],
        "kind": record_kind,
        "records": [_line(record_kind, row) for row in rows],
        "count": ""
        if any(table["pager"].values())
        else plural(len(rows), f"{record_kind.noun},{record_kind}"),
        "new_url": reverse("web:config-new", args=[record_kind])
        if request.actor.may(Role.ADMIN)
        else "",
        "new_label": record_kind.noun,
        "empty_title": f"No {record_kind} yet",
        **snippets.both(
            "PUT",
            f"config/{record_kind}/main",
            body,
            call=f'request("PUT", "/config/{record_kind}/main", {snippets.literal(body)})',
        ),
    }
    return render_list(request, "config/list.html", context, part="config")


def _table_of(kind: Kind) -> Table:
    return Table(
        "web:config-list",
        (
            Orders("Id", {"": Order("key"), "-id": Order("key", descending=True)}),
            Orders("Secret" if kind is Kind.PROVIDERS else "Refers to"),
            Orders("Version", numeric=True),
            Orders("Changed", BY_CHANGE),
        ),
        search=Field("prefix", "Id begins with", placeholder="Id begins with"),
    )


def _find(
    kind: Kind, request: Request, filters: dict[str, str], name: str
) -> tuple[Sequence[Entry], str]:
    rows = Entry.objects.visible_to(request.actor).live().filter(namespace__name=kind.namespace)
    rows = matching(rows, filters, prefix="key__startswith").select_related("namespace")
    return _table_of(kind).page(request, rows, MOST, reverse(name, args=[kind]), filters)


def _items(request: Request, name: str, kind: str) -> tuple[list[RecordRow], str]:
    if kind not in set(Kind):
        raise NotFound(f"unknown kind: {kind}")
    record_kind = Kind(kind)
    rows, next_url = _find(record_kind, request, _table_of(record_kind).read(request), name)
    items = [RecordRow.of(row, valid=is_valid(row), kind=kind, id=row.key) for row in rows]
    return items, next_url


def _line(kind: Kind, row: Entry) -> dict[str, Any]:
    value = values.load(row.value or "null")
    markers = rules.markers(kind, value)
    return {
        "id": row.key,
        "url": reverse("web:config-detail", args=[kind, row.key]),
        "names": [each.id for each in rules.references(kind, value)],
        "secrets": [each.get("hint", "set") for each in markers.values() if rules.is_marker(each)],
        "version": row.version,
        "updated_at": row.updated_at,
        "actor": row.actor_name,
    }


@page(replica=True)
def record_detail(request: Request, kind: str, record_id: str) -> HttpResponse:
    record_kind = Kind(kind)
    record = read_record(actor=request.actor, kind=record_kind, identity=record_id)
    context = _frame(record_kind, record) | {
        "record": record,
        "value": _without_secrets(record_kind, values.load(record.value)),
        "slots": _slots(record_kind, record),
        "dependents": [
            (each, reverse("web:config-detail", args=[each.kind, each.id]))
            for each in find_dependents(actor=request.actor, kind=record_kind, identity=record_id)
        ],
        "can_edit": request.actor.may(Role.ADMIN),
        "delete_url": reverse("web:config-delete", args=[record_kind, record_id]),
        "history_url": entry_url(record_kind.namespace, record_id, tab="history"),
    }
    return render(request, "config/detail.html", context, part="record")


@page(role=Role.ADMIN)
def record_new(request: Request, kind: str) -> HttpResponse:
    """Ask for an id, then redirect to its editor, which shows whether the record exists."""
    record_kind, identity, error = Kind(kind), request.GET.get("id", "").strip(), ""
    if identity:
        try:
            check_id(identity)
        except BadRequest as bad:
            error = bad.detail
        else:
            return redirect("web:config-edit", record_kind, identity)
    context = {"kind": record_kind, "id": identity, "error": error}
    return render(request, "config/new.html", context, status=422 if error else 200)


@page(methods=FORM, role=Role.ADMIN)
def record_edit(request: Request, kind: str, record_id: str) -> HttpResponse:
    """Edit the value without its secrets, as a form or as JSON. Each secret is kept, replaced or
    cleared in a field of its own."""
    record_kind = Kind(kind)
    check_id(record_id)
    now = read_entry(actor=request.actor, namespace=record_kind.namespace, key=record_id)
    if request.method == "GET":
        draft = _fresh_draft(record_kind, now, as_json=request.GET.get("as") == "json")
        return _form(request, record_kind, now, draft)
    draft = _draft(request)
    view = request.POST.get("as", "")
    try:
        if "held" in request.POST:
            _read_form(request, record_kind, draft, complete=not view)
        if view:
            _switch(record_kind, draft, as_json=view == "json")
            return _form(request, record_kind, now, draft)
        choices = resolve_clashes(request.POST, draft.text)
        draft.text = choices.text
        choices.require()
        if draft.base == now.version and _is_unchanged(request, record_kind, now, draft.text):
            toast(request, "No changes", kind="note")
            return _redirect_to_record(request, record_kind, record_id)
        saved = put_record(
            actor=request.actor,
            kind=record_kind,
            identity=record_id,
            value=_value(request, record_kind, now, draft.text),
            precondition=Precondition(draft.base),
            reason=draft.reason,
        ).entry
    except VersionConflict as conflict:
        if conflict.collision is None:
            raise
        return _conflict(request, record_kind, conflict.collision, draft)
    except (Invalid, TooLarge, BadRequest) as problem:
        draft.refuse(request.POST, problem)
        return _form(request, record_kind, now, draft, status=422)
    undo = undo_of(
        request.actor, record_kind.namespace, record_id, written=saved.version, before=draft.base
    )
    # A replaced secret is destroyed, so that the previous version cannot be restored completely.
    restorable = rules.markers(record_kind, values.load(saved.value)) == _read_markers(
        record_kind, now
    )
    message = f"Saved version {saved.version}{choices.describe()}"
    toast(request, message, undo=undo if restorable or not draft.base else None)
    return _redirect_to_record(request, record_kind, record_id)


def _redirect_to_record(request: Request, kind: Kind, record_id: str) -> HttpResponse:
    return see_other(request, reverse("web:config-detail", args=[kind, record_id]), part="record")


def _is_unchanged(request: Request, kind: Kind, now: EntryView, text: str) -> bool:
    """Whether the typed value is the stored one, and every secret is kept."""
    if not now.exists or any(
        request.POST.get(slot.name, "keep") != "keep" for slot in _slots(kind, now)
    ):
        return False
    value, stored = values.load(read_value(text).text), values.load(now.value)
    if isinstance(value, dict):
        value = {"id": now.key, **value}
    return values.same(value, _without_secrets(kind, stored))


@page(methods=POST, role=Role.ADMIN)
def record_check(request: Request, kind: str, record_id: str) -> HttpResponse:
    """The errors that saving the typed value would return, as JSON. Writes nothing."""
    record_kind = Kind(kind)
    check_id(record_id)
    now = read_entry(actor=request.actor, namespace=record_kind.namespace, key=record_id)

    def check(text: str) -> None:
        value = _value(request, record_kind, now, text)
        check_record(actor=request.actor, kind=record_kind, identity=record_id, value=value)

    draft = _draft(request)
    if "held" not in request.POST:
        form = form_beside(
            request.POST, draft, lambda: _switch(record_kind, draft, as_json=False), wire=True
        )
        return answer_check(request.POST, check, form)
    return answer_form_check(
        draft, lambda: _read_form(request, record_kind, draft, complete=True), check
    )


@page(methods=FORM, role=Role.ADMIN)
def record_delete(request: Request, kind: str, record_id: str) -> HttpResponse:
    """Delete a record. The confirmation lists the records that refer to it; their broken references
    must be accepted."""
    record_kind = Kind(kind)
    record = read_record(actor=request.actor, kind=record_kind, identity=record_id)
    address: Any = {"actor": request.actor, "kind": record_kind, "identity": record_id}
    if request.method == "POST":
        try:
            delete_record(
                **address,
                precondition=Precondition(seen_version(request.POST)),
                force=request.POST.get("force") == "true",
                reason=reason_of(request),
            )
        except (Conflict, VersionConflict) as problem:
            toast(request, problem.detail, kind="failed")
            return see_other(request, reverse("web:config-detail", args=[record_kind, record_id]))
        toast(request, f"Deleted {record_id}")
        return see_other(request, reverse("web:config-list", args=[record_kind]))
    dependents = find_dependents(**address)
    lines = [
        "Its secrets are deleted permanently. Its history is kept and can be restored without them."
    ]
    if dependents:
        lines.insert(
            0,
            f"{plural(len(dependents), 'record refers,records refer')} to it and will have a broken reference:",
        )
    confirm = Confirm(
        title=f"Delete {record_kind}/{record_id}?",
        verb="Delete anyway" if dependents else "Delete",
        back=reverse("web:config-detail", args=[record_kind, record_id]),
        lines=lines,
        names=[f"{each.kind}/{each.id} {each.pointer}" for each in dependents],
        fields=[("base", record.version), *([("force", "true")] if dependents else [])],
    )
    return ask(request, confirm)


def _read_markers(kind: Kind, now: EntryView) -> dict[str, JSON]:
    return rules.markers(kind, values.load(now.value)) if now.exists else {}


def _slots(kind: Kind, now: EntryView) -> list[Slot]:
    markers = _read_markers(kind, now)
    return [
        Slot(
            pointer=pointer,
            name=f"secret{number}",
            is_set=rules.is_marker(markers.get(pointer)),
            hint=(markers.get(pointer) or {}).get("hint", ""),
        )
        for number, pointer in enumerate(rules.SECRET_PLACES[kind])
    ]


def _without_secrets(kind: Kind, value: JSON) -> JSON:
    return rules.reseal(kind, value, {})


def _has_secret(kind: Kind, value: JSON) -> bool:
    """Whether a secret was typed into the JSON text, so that the browser must not store the form."""
    return not values.same(value, _without_secrets(kind, value))


def _value(request: Request, kind: Kind, now: EntryView, text: str) -> Raw:
    """The typed value with each secret replaced as its form field says."""
    value = values.load(read_value(text).text)
    if isinstance(value, dict):
        for slot in _slots(kind, now):
            name = slot.pointer.removeprefix("/")
            choice = request.POST.get(slot.name, "keep")
            if choice == "replace":
                value[name] = request.POST.get(f"{slot.name}_value", "").strip()
            elif choice == "keep" and slot.is_set and name not in value:
                value[name] = {"$secret": "keep"}
    return values.stored(values.dump(value))


def _draft(request: Request) -> Draft:
    return Draft(
        text=typed_text(request.POST), base=seen_version(request.POST), reason=reason_of(request)
    )


def _fresh_draft(kind: Kind, now: EntryView, *, as_json: bool) -> Draft:
    value = _without_secrets(kind, values.load(now.value)) if now.exists else {}
    draft = Draft(pretty(value), now.version)
    if as_json and not now.exists:
        draft.text = pretty(_TEMPLATES[kind])
    elif not as_json and isinstance(value, dict):
        _show_form(kind, draft, value)
    return draft


def _switch(kind: Kind, draft: Draft, *, as_json: bool) -> None:
    """Edit the same value as text, or in the form."""
    if as_json:
        draft.fields = None
        return
    _show_form(kind, draft, _members(values.load(read_value(draft.text).text)))


def _show_form(kind: Kind, draft: Draft, value: JSON) -> None:
    draft.show_fields(schema_forms.fields_over(rules.form_schema(kind), value), value)


def _read_form(request: Request, kind: Kind, draft: Draft, *, complete: bool) -> None:
    text, value = held_value(request.POST)
    fields = schema_forms.fields_over(rules.form_schema(kind), _members(value))
    draft.held = text
    draft.read_fields(request.POST, fields, complete=complete)


def _members(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise BadRequest("only an object can be edited in the form")
    return value


def _conflict(request: Request, kind: Kind, collision: ConflictSides, draft: Draft) -> HttpResponse:
    """The conflict page: the versions without secrets. The choices for secrets are shown again; a
    typed secret is never sent back to the browser."""

    def bare(text: str) -> str:
        return values.dump(_without_secrets(kind, values.load(text)))

    now = collision.current
    sides = compare(
        None if collision.base is None else bare(collision.base),
        now._replace(value=bare(now.value)),
        read_value(draft.text).text,
    )
    frame = _frame(kind, now)
    context = frame | conflict_context(sides, draft.base, draft.text)
    context |= {
        "draft": draft,
        "part": "record",
        "slots": _slots(kind, now),
        "rest_template": "config/_draft_rest.html",
        "save_url": frame["edit_url"],
        "done_url": frame["leave_url"],
        "crumbs": [("Config", reverse("web:config")), (str(kind), frame["list_url"])],
    }
    return render(request, "entries/conflict.html", context, part="conflict", status=409)


def _form(
    request: Request, kind: Kind, now: EntryView, draft: Draft, *, status: int = 200
) -> HttpResponse:
    context = _frame(kind, now) | {
        "record": now,
        "draft": draft,
        "unsaved": request.method == "POST",
        "storable": draft.fields is not None and not _has_secret(kind, values.load(draft.held)),
        "slots": _slots(kind, now),
        "schema": pretty(rules.SCHEMAS[kind]),
    }
    return render(request, "config/edit.html", context, part="record", status=status)


def _frame(kind: Kind, now: EntryView) -> dict[str, Any]:
    record_id, list_url = now.key, reverse("web:config-list", args=[kind])
    detail_url = reverse("web:config-detail", args=[kind, record_id])
    return {
        "kind": kind,
        "id": record_id,
        "list_url": list_url,
        "leave_url": detail_url if now.exists else list_url,
        "edit_url": reverse("web:config-edit", args=[kind, record_id]),
        "check_url": reverse("web:config-check", args=[kind, record_id]),
        "presence_url": entry_action_url("presence", kind.namespace, record_id),
    }


_KIND = f"(?P<kind>{'|'.join(Kind)})"
_RECORD = rf"{_KIND}/(?P<record_id>[^/+][^/]*)"

urlpatterns = [
    re_path(r"^config\Z", record_list, name="config"),
    re_path(rf"^config/{_KIND}\Z", record_list, name="config-list"),
    *list_paths("config/<str:kind>", "config-list", _items, without=("value",)),
    # No id begins with "+", so that this path cannot be that of a record.
    re_path(rf"^config/{_KIND}/\+new\Z", record_new, name="config-new"),
    re_path(rf"^config/{_RECORD}/edit\Z", record_edit, name="config-edit"),
    re_path(rf"^config/{_RECORD}/check\Z", record_check, name="config-check"),
    re_path(rf"^config/{_RECORD}/delete\Z", record_delete, name="config-delete"),
    re_path(rf"^config/{_RECORD}\Z", record_detail, name="config-detail"),
]
