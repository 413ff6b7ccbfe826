"""One entry: its value now or in the past, its history, the difference of two versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from state_admin.domain import diffs, places, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.scopes import scope_kind
from state_admin.models import Entry, EntryRevision
from state_admin.services.entries import EntryView, read_entry, read_past
from state_admin.services.errors import BadRequest, NotFound, NotRegistered
from state_admin.templatetags.json_html import tree_piece

from . import snippets
from .addresses import entry_action_url, entry_url
from .entry_address import entry_page, entry_paths
from .htmx import Request, render

HISTORY_PAGE = 50
RECENT = 8
_TABS = ("value", "text", "history", "code")


@dataclass(frozen=True)
class Bar:
    """One version in the picture of sizes: SVG attributes."""

    x: int
    y: float
    height: float
    now: bool


@require_safe
@entry_page
def entry_detail(request: Request, namespace: str, key: str) -> HttpResponse:
    address: dict[str, Any] = {"actor": request.actor, "namespace": namespace, "key": key}
    registered = True
    try:
        now = read_entry(**address)
    except NotRegistered:
        registered = False
        now = _orphan(request.actor, namespace, key)
    history = _history(request)
    recent = list(_revisions(request.actor, namespace, key)[: RECENT + 1])
    newest = recent[0].version if recent else 0
    if not now.exists and not recent and not registered:
        raise NotRegistered(namespace)
    shown, past = _shown(request, now, registered=registered)
    tab = request.GET.get("tab", "value")
    context = {
        "entry": shown,
        "now": now,
        "registered": registered,
        "past": past,
        "newest": newest,
        "tab": tab if tab in _TABS else "value",
        "tabs": _tabs(namespace, key, past),
        "value": values.load(shown.value),
        "pieces_url": entry_action_url("tree", namespace, key, version=past or None),
        "recent": recent[:RECENT],
        "more_history": len(recent) > RECENT,
        "bars": _bars(recent),
        "bars_width": 10 * len(recent),
        "scope": scope_kind(key).value,
        "version_label": f"v{past or now.version}",
        "dotted": key in (".", ".."),
        "list_url": reverse("web:entry-list"),
        "can_edit": request.actor.may(Role.EDITOR) and registered,
        "can_restore": past and shown.exists and request.actor.may(Role.EDITOR) and registered,
        **_change(request, shown, recent),
    }
    if context["tab"] == "history":
        context |= _whole_history(request, namespace, key, history)
    if context["tab"] == "code":
        context["snippets"] = _snippets(now)
    return render(request, "entries/detail.html", context, part="entry")


def _revisions(actor: Actor, namespace: str, key: str) -> Any:
    """The history without values: newest first."""
    history = EntryRevision.objects.visible_to(actor).of_key(namespace, key)
    return history.defer("value").order_by("-version")


def _shown(request: Request, now: EntryView, *, registered: bool) -> tuple[EntryView, int]:
    """What the address asks for: now, a version, or a moment; and the past version it is, or 0."""
    address: Any = {"actor": request.actor, "namespace": now.namespace, "key": now.key}
    if not registered:
        return now, 0
    if text := request.GET.get("version", ""):
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise BadRequest("version is a whole number")
        if int(text) == now.version:
            return now, 0
        shown = read_past(**address, at_version=int(text))
        return shown, int(text)
    if text := request.GET.get("at", ""):
        shown = read_past(**address, at=_moment(text))
        if not shown.version:
            raise NotFound(f"{now.namespace}/{now.key} was not there yet at {text}")
        return (now, 0) if shown.version == now.version else (shown, shown.version)
    return now, 0


def _moment(text: str) -> datetime:
    """A time of the address or of a datetime-local field; without a zone it is UTC."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise BadRequest("at is a time like 2026-01-31T12:00:00Z")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _orphan(actor: Actor, namespace: str, key: str) -> EntryView:
    """An entry of an unregistered namespace, which typed reads refuse: people may look at it."""
    row = Entry.objects.visible_to(actor).live().filter(namespace__name=namespace, key=key).first()
    if row is None:
        raise NotRegistered(namespace)
    return EntryView(
        namespace=namespace,
        key=key,
        exists=True,
        value=row.value or "null",
        version=row.version,
        schema_version=row.schema_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        tags=row.tags,
        pinned=row.pinned,
        size_bytes=row.size_bytes,
        estimated_tokens=row.estimated_tokens,
        actor=row.actor_name,
    )


def _change(request: Request, shown: EntryView, recent: Sequence[EntryRevision]) -> dict[str, Any]:
    """The differences beside the value: of the two versions asked for, else of the shown version
    and the one before it."""
    text = request.GET.get("diff", "")
    if not text and request.GET.get("old"):
        text = f"{request.GET['old']}..{request.GET.get('new', '')}"
    if text:
        old, new = _pair(text)
    else:
        new = shown.version or (recent[0].version if recent else 0)
        old = new - 1
        if old < 1:
            return {"diff": None}
    kept = dict(
        EntryRevision.objects.visible_to(request.actor)
        .of_key(shown.namespace, shown.key)
        .filter(version__in=[old, new])
        .values_list("version", "value")
    )
    if missing := [version for version in (old, new) if version not in kept]:
        if text:
            raise NotFound(f"no version {missing[0]} of {shown.namespace}/{shown.key}")
        return {"diff": None}
    # A deleted version holds nothing; for the difference that counts as null.
    before, after = (values.load(kept[version] or "null") for version in (old, new))
    rows = diffs.rows(before, after)
    return {"diff": rows, "diff_old": old, "diff_new": new, "diff_asked": bool(text)}


def _pair(text: str) -> tuple[int, int]:
    old, dots, new = text.partition("..")
    numbers = [part for part in (old, new) if part.isascii() and part.isdigit() and len(part) <= 18]
    if not dots or len(numbers) != 2:
        raise BadRequest("diff is two versions like 3..5")
    return int(old), int(new)


def _history(request: Request) -> int:
    text = request.GET.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0


def _whole_history(request: Request, namespace: str, key: str, before: int) -> dict[str, Any]:
    rows = _revisions(request.actor, namespace, key)
    if before:
        rows = rows.filter(version__lt=before)
    found = list(rows[: HISTORY_PAGE + 1])
    next_url = first_url = ""
    if len(found) > HISTORY_PAGE:
        found = found[:HISTORY_PAGE]
        next_url = entry_url(namespace, key, tab="history", before=found[-1].version)
    if before:
        first_url = entry_url(namespace, key, tab="history")
    return {"revisions": found, "pager": {"first": first_url, "next": next_url}}


def _tabs(namespace: str, key: str, past: int) -> list[tuple[str, str, str]]:
    labels = {"value": "Value", "text": "Text", "history": "History", "code": "Code"}
    return [
        (
            tab,
            label,
            entry_url(
                namespace,
                key,
                tab="" if tab == "value" else tab,
                version=past if tab in ("value", "text") else None,
            ),
        )
        for tab, label in labels.items()
    ]


def _bars(recent: Sequence[EntryRevision]) -> list[Bar]:
    """Sizes of the last versions, oldest first, in a picture 10 wide per version and 30 high."""
    rows = list(reversed(recent))
    largest = max((row.size_bytes for row in rows), default=0)
    if len(rows) < 2 or not largest:
        return []
    heights = [max(2.0, round(30 * row.size_bytes / largest, 1)) for row in rows]
    return [
        Bar(10 * index, 30 - height, height, index == len(rows) - 1)
        for index, height in enumerate(heights)
    ]


def _snippets(now: EntryView) -> list[tuple[str, str]]:
    target = snippets.state_path(now.namespace, now.key)
    value = now.value if len(now.value) <= 2000 else "null"
    body = f'{{"value": {value}}}'
    match = f'If-Match: "{now.version}"' if now.exists else "If-None-Match: *"
    return [
        ("Read with curl", snippets.curl("GET", target)),
        ("Write with curl, unless it changed", snippets.curl("PUT", target, body, match)),
        ("Read with Python", snippets.python("GET", target)),
    ]


@require_safe
@entry_page
def entry_tree(request: Request, namespace: str, key: str) -> HttpResponse:
    """A part of a large value: the children at `pointer`, from `start` on."""
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    shown, past = _shown(request, now, registered=True)
    pointer, text = request.GET.get("pointer", ""), request.GET.get("start", "0")
    start = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    try:
        part = places.find(values.load(shown.value), places.parts_of(pointer))
    except places.Mismatch as missing:
        raise NotFound(f"nothing at {pointer}", detail=str(missing)) from missing
    pieces_url = entry_action_url("tree", namespace, key, version=past or None)
    context = {
        "entry": shown,
        "part": part,
        "pointer": pointer,
        "pieces_url": pieces_url,
        "list_url": reverse("web:entry-list"),
    }
    if isinstance(part, (dict, list)):
        context["piece"] = tree_piece(part, pieces_url, pointer, start)
    return render(request, "entries/tree.html", context, part="piece")


@require_safe
@entry_page
def entry_newer(request: Request, namespace: str, key: str) -> HttpResponse:
    """Whether someone wrote since version `seen`: what stands there does not jump, a line says so."""
    text = request.GET.get("seen", "")
    seen = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    changed = now.version > seen or (seen and not now.exists)
    context = {"entry": now, "seen": seen, "changed": changed, "editing": "editing" in request.GET}
    return render(request, "entries/_newer.html", context)


@require_safe
@entry_page
def entry_raw(request: Request, namespace: str, key: str) -> HttpResponse:
    """The value as it is stored, byte for byte."""
    now = read_entry(actor=request.actor, namespace=namespace, key=key)
    shown, _ = _shown(request, now, registered=True)
    response = HttpResponse(shown.value, content_type="application/json; charset=utf-8")
    response["ETag"] = f'"{shown.version}"'
    return response


urlpatterns = [
    *entry_paths("entry/tree", entry_tree, "entry-tree"),
    *entry_paths("entry/raw", entry_raw, "entry-raw"),
    *entry_paths("entry/newer", entry_newer, "entry-newer"),
    *entry_paths("state", entry_detail, "entry-detail"),
]
