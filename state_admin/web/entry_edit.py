"""Creating and editing one entry, and resolving a conflict with a concurrent write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

from state_admin.contract.types import MAX_TTL
from state_admin.domain import schema_forms, values
from state_admin.domain.access import Role
from state_admin.domain.numbers import read_whole
from state_admin.domain.schema_forms import Field
from state_admin.domain.values import JSON
from state_admin.models import Namespace
from state_admin.services.conflicts import ConflictSides
from state_admin.services.entries import Precondition, check_address, check_entry, put_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.services.errors import BadRequest, Invalid, Problem, TooLarge, VersionConflict
from state_admin.services.namespaces import Definition, find_definition
from state_admin.services.presence import announce_editing
from state_admin.templatetags.json_html import pretty

from .actors import FORM, POST, page
from .addresses import entry_action_url, entry_url, with_query
from .confirm import reason_of
from .drafts import (
    answer_check,
    conflict_context,
    read_value,
    refusal_of,
    resolve_clashes,
    seen_version,
    typed_text,
)
from .entry_address import entry_page, entry_paths
from .entry_detail import BIG
from .entry_undo import checked_tags, seconds_left, undo_of
from .htmx import Request, render, see_other, toast
from .schema_fields import Draft, answer_form_check, form_beside, held_value


@dataclass
class EntryDraft(Draft):
    """The value and the other properties of an entry."""

    tags: str = ""
    pinned: bool = False
    lifetime: str = "keep"
    ttl: str = ""


@entry_page(methods=FORM, role=Role.EDITOR)
def entry_edit(request: Request, namespace: str, key: str) -> HttpResponse:
    definition = find_definition(request.actor, namespace, fresh=True)
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    if request.method == "GET":
        if len(now.value) > BIG and "whole" not in request.GET:
            return render(request, "entries/edit_big.html", {"entry": now}, part="entry")
        draft = EntryDraft(
            pretty(values.load(now.value)), now.version, tags=", ".join(now.tags), pinned=now.pinned
        )
        if request.GET.get("as") == "form":
            _show_form(definition, draft)
        if not now.valid and (problem := refusal_of(definition, now.value)):
            draft.refuse(request.GET, problem)
        return _form(request, definition, now, draft)
    draft = _draft(request)
    view = request.POST.get("as", "")
    try:
        if "held" in request.POST:
            _read_form(request, definition, draft, complete=not view)
        if view:
            return _switch(request, definition, now, draft, view)
        choices = resolve_clashes(request.POST, draft.text)
        draft.text = choices.text
        choices.require()
        return _save(request, now, draft, choices.describe())
    except VersionConflict as conflict:
        if conflict.collision is None:
            raise
        return _conflict(request, definition, conflict.collision, draft)
    except (Invalid, TooLarge, BadRequest) as problem:
        draft.refuse(request.POST, problem)
        return _form(request, definition, now, draft, status=422)


def _switch(
    request: Request, definition: Definition, now: EntryView, draft: EntryDraft, view: str
) -> HttpResponse:
    """Edit the same value as text, or in the form. Nothing is saved."""
    draft.fields = None
    if view == "form" and not _show_form(definition, draft):
        raise BadRequest("this value cannot be edited in a form")
    response = _form(request, definition, now, draft)
    url = entry_action_url("edit", now.namespace, now.key)
    response["HX-Replace-Url"] = with_query(url, **{"as": "form" if view == "form" else ""})
    return response


def _show_form(definition: Definition, draft: EntryDraft) -> bool:
    """Edit the value in a form, if the schema and the value have one."""
    value = values.load(read_value(draft.text).text)
    fields = _fields(definition, value)
    if fields is None:
        return False
    draft.show_fields(fields, value)
    return True


def _read_form(
    request: Request, definition: Definition, draft: EntryDraft, *, complete: bool
) -> None:
    draft.held, value = held_value(request.POST)
    fields = _fields(definition, value)
    if fields is None:
        raise BadRequest("the schema has changed, and the value can no longer be edited in a form")
    draft.read_fields(request.POST, fields, complete=complete)


def _fields(definition: Definition, value: JSON) -> list[Field] | None:
    return schema_forms.find_fields(values.load(definition.schema), value)


@entry_page(methods=POST, role=Role.EDITOR)
def entry_check(request: Request, namespace: str, key: str) -> HttpResponse:
    """The errors that saving the typed value would return, as JSON. Writes nothing."""

    def check(text: str) -> None:
        check_entry(actor=request.actor, namespace=namespace, value=read_value(text))

    if "held" not in request.POST and "beside" not in request.POST:
        return answer_check(request.POST, check)
    definition, draft = find_definition(request.actor, namespace, fresh=True), _draft(request)
    if "held" not in request.POST:
        form = form_beside(request.POST, draft, lambda: _show_form(definition, draft))
        return answer_check(request.POST, check, form)
    return answer_form_check(
        draft, lambda: _read_form(request, definition, draft, complete=True), check
    )


@entry_page(methods=POST, role=Role.EDITOR)
def entry_presence(request: Request, namespace: str, key: str) -> HttpResponse:
    """The heartbeat of an open editor, every 20 s: it announces this editor and returns the others.
    A heartbeat is stored for a minute in an unlogged table, so closing the page sends nothing."""
    others = announce_editing(actor=request.actor, namespace=namespace, key=key)
    context = {
        "others": others,
        "beating": True,
        "presence_url": entry_action_url("presence", namespace, key),
    }
    return render(request, "entries/_presence.html", context)


def _save(request: Request, now: EntryView, draft: EntryDraft, kept: str) -> HttpResponse:
    value = read_value(draft.text)
    tags = _tags(draft.tags)
    page_url = entry_url(now.namespace, now.key)
    same_value = now.exists and values.dump(values.load(now.value)) == value.text
    same_rest = tags == list(now.tags) and draft.pinned == now.pinned
    if draft.base == now.version and same_value and same_rest and draft.lifetime == "keep":
        toast(request, "No changes", kind="note")
        return see_other(request, page_url, part="entry")
    saved = put_entry(
        actor=request.actor,
        namespace=now.namespace,
        key=now.key,
        value=value,
        precondition=Precondition(draft.base),
        ttl_seconds=_ttl(draft, now),
        tags=tags,
        pinned=draft.pinned,
        reason=draft.reason,
    ).entry
    undo = undo_of(
        request.actor,
        now.namespace,
        now.key,
        written=saved.version,
        before=draft.base,
        tags=now.tags,
        pinned=now.pinned,
    )
    toast(request, f"Saved version {saved.version}{kept}", undo=undo)
    return see_other(request, page_url, part="entry")


def _draft(request: Request) -> EntryDraft:
    post = request.POST
    return EntryDraft(
        text=typed_text(post),
        base=seen_version(post),
        tags=post.get("tags", ""),
        pinned="pinned" in post,
        lifetime=post.get("lifetime", "keep"),
        ttl=post.get("ttl", ""),
        reason=reason_of(request),
    )


def _tags(text: str) -> list[str]:
    return checked_tags(list(dict.fromkeys(tag.strip() for tag in text.split(",") if tag.strip())))


def _ttl(draft: EntryDraft, now: EntryView) -> int | None:
    """Seconds until expiry: "keep" keeps the current expiry, "default" (None) is the
    namespace's."""
    if draft.lifetime == "keep":
        return seconds_left(now.expires_at) if now.exists else None
    if draft.lifetime != "seconds":
        return None
    ttl = read_whole(draft.ttl.strip(), least=1, most=MAX_TTL)
    if ttl is None:
        raise Invalid("the lifetime must be a whole number of seconds, at least 1")
    return ttl


def _form(
    request: Request,
    definition: Definition,
    now: EntryView,
    draft: EntryDraft,
    *,
    status: int = 200,
) -> HttpResponse:
    context = _frame(definition, now) | {
        "draft": draft,
        "unsaved": request.method == "POST",
        "stored": pretty(values.load(now.value)),
        "has_form": draft.fields is not None or _has_form(definition, now),
    }
    return render(request, "entries/edit.html", context, part="entry", status=status)


def _has_form(definition: Definition, now: EntryView) -> bool:
    if len(now.value) > BIG:
        return False
    return _fields(definition, values.load(now.value)) is not None


def _frame(definition: Definition, now: EntryView) -> dict[str, Any]:
    return {
        "entry": now,
        "schema": pretty(values.load(definition.schema)),
        "default": pretty(values.load(definition.default)),
        "schema_version": definition.schema_version,
        "ttl_seconds": definition.ttl_seconds,
        "limit": definition.max_value_bytes,
        "list_url": reverse("web:entry-list"),
        "save_url": entry_action_url("edit", now.namespace, now.key),
        "check_url": entry_action_url("check", now.namespace, now.key),
        "presence_url": entry_action_url("presence", now.namespace, now.key),
    }


def _conflict(
    request: Request, definition: Definition, collision: ConflictSides, draft: EntryDraft
) -> HttpResponse:
    """The conflict page: both sides, merged where only one of them changed a value."""
    now = collision.current
    page_url = entry_url(now.namespace, now.key)
    context = _frame(definition, now) | conflict_context(collision, draft.base, draft.text)
    context |= {
        "draft": draft,
        "part": "entry",
        "rest_template": "entries/_draft_rest.html",
        "done_url": page_url,
        "crumbs": [
            (now.namespace, with_query(reverse("web:entry-list"), namespace=now.namespace)),
            (now.key, page_url),
        ],
    }
    return render(request, "entries/conflict.html", context, part="conflict", status=409)


@page(role=Role.EDITOR)
def entry_new(request: Request) -> HttpResponse:
    """Ask for namespace and key, then redirect to that entry's editor, which says whether it
    exists."""
    namespace, key = request.GET.get("namespace", ""), request.GET.get("at", "")
    error = ""
    if namespace and key:
        try:
            check_address(namespace, key)
            find_definition(request.actor, namespace, fresh=True)
        except Problem as problem:
            error = problem.detail
        else:
            return redirect(entry_action_url("edit", namespace, key))
    names = (
        Namespace.objects.visible_to(request.actor)
        .registered()
        .open()
        .order_by("name")
        .values_list("name", flat=True)[:500]
    )
    context = {"namespace": namespace, "at": key, "error": error, "names": names}
    return render(request, "entries/new.html", context, status=422 if error else 200)


urlpatterns = [
    path("entries/new", entry_new, name="entry-new"),
    *entry_paths("entry/edit", entry_edit, "entry-edit"),
    *entry_paths("entry/check", entry_check, "entry-check"),
    *entry_paths("entry/presence", entry_presence, "entry-presence"),
]
