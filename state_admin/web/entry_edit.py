"""Creating and editing one entry, and resolving a conflict with a concurrent write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.numbers import read_whole
from state_admin.models import Namespace
from state_admin.services.conflicts import ConflictSides
from state_admin.services.entries import Precondition, check_address, check_entry, put_entry
from state_admin.services.entry_views import EntryView, read_entry
from state_admin.services.errors import (
    BadRequest,
    Invalid,
    Problem,
    TooLarge,
    VersionConflict,
)
from state_admin.services.namespaces import Definition, find_definition
from state_admin.services.presence import announce_editing
from state_admin.templatetags.json_html import pretty

from .actors import page
from .addresses import entry_action_url, entry_url, with_query
from .drafts import (
    Mark,
    answer_check,
    conflict_context,
    describe_kept,
    marks_of,
    read_value,
    refusal_of,
    require_choices,
    resolve_clashes,
    seen_version,
    typed_text,
)
from .entry_address import entry_page, entry_paths
from .entry_detail import BIG
from .entry_undo import checked_tags, seconds_left, undo_of
from .errors import heading_of
from .htmx import Request, render, see_other, toast

_MOST_TTL = 10 * 365 * 86400


@dataclass
class Draft:
    """The typed text and its errors. `base` is the version that was edited."""

    text: str
    base: int
    tags: str = ""
    pinned: bool = False
    lifetime: str = "keep"
    ttl: str = ""
    reason: str = ""
    message: str = ""
    errors: list[Mark] = field(default_factory=list)


@require_http_methods(["GET", "POST"])
@entry_page(role=Role.EDITOR)
def entry_edit(request: Request, namespace: str, key: str) -> HttpResponse:
    definition = find_definition(request.actor, namespace, fresh=True)
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    if request.method == "GET":
        if len(now.value) > BIG and "whole" not in request.GET:
            return render(request, "entries/edit_big.html", {"entry": now}, part="entry")
        draft = Draft(pretty(values.load(now.value)), now.version, ", ".join(now.tags), now.pinned)
        if not now.valid and (problem := refusal_of(definition, now.value)):
            draft.message, draft.errors = heading_of(problem), marks_of(draft.text, problem)
        return _form(request, definition, now, draft)
    draft = _draft(request.POST)
    try:
        draft.text, kept = resolve_clashes(request.POST, draft.text)
        require_choices(kept)
        return _save(request, now, draft, describe_kept(kept))
    except VersionConflict as conflict:
        if conflict.collision is None:
            raise
        return _conflict(request, definition, conflict.collision, draft)
    except (Invalid, TooLarge, BadRequest) as problem:
        draft.message, draft.errors = heading_of(problem), marks_of(draft.text, problem)
        return _form(request, definition, now, draft, status=422)


@require_POST
@entry_page(role=Role.EDITOR)
def entry_check(request: Request, namespace: str, key: str) -> HttpResponse:
    """The errors that saving the typed value would return, as JSON. Writes nothing."""
    return answer_check(
        request.POST,
        lambda text: check_entry(actor=request.actor, namespace=namespace, value=read_value(text)),
    )


@require_POST
@entry_page(role=Role.EDITOR)
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


def _save(request: Request, now: EntryView, draft: Draft, kept: str) -> HttpResponse:
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


def _draft(post: QueryDict) -> Draft:
    return Draft(
        text=typed_text(post),
        base=seen_version(post),
        tags=post.get("tags", ""),
        pinned="pinned" in post,
        lifetime=post.get("lifetime", "keep"),
        ttl=post.get("ttl", ""),
        reason=post.get("reason", "").strip()[:500],
    )


def _tags(text: str) -> list[str]:
    return checked_tags(list(dict.fromkeys(tag.strip() for tag in text.split(",") if tag.strip())))


def _ttl(draft: Draft, now: EntryView) -> int | None:
    """Seconds until expiry: "keep" keeps the current expiry, "default" (None) is the
    namespace's."""
    if draft.lifetime == "keep":
        return seconds_left(now.expires_at) if now.exists else None
    if draft.lifetime != "seconds":
        return None
    ttl = read_whole(draft.ttl.strip(), least=1, most=_MOST_TTL)
    if ttl is None:
        raise Invalid("the lifetime must be a whole number of seconds, at least 1")
    return ttl


def _form(
    request: Request, definition: Definition, now: EntryView, draft: Draft, *, status: int = 200
) -> HttpResponse:
    context = _frame(definition, now) | {"draft": draft, "unsaved": status != 200}
    return render(request, "entries/edit.html", context, part="entry", status=status)


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
    request: Request, definition: Definition, collision: ConflictSides, draft: Draft
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


@require_safe
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
