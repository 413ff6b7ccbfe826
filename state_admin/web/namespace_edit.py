"""Registering, changing and unregistering a namespace, with a preview of the entries that would no
longer match the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract.types import MAX_TTL
from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.schema_changes import SchemaChange, list_schema_changes
from state_admin.domain.scopes import BadName, check_name
from state_admin.domain.values import DEFAULT_MAX_VALUE_BYTES, MAX_VALUE_BYTES, Raw
from state_admin.models import Namespace, NamespaceVersion
from state_admin.models.browsing import EntryFilter, entry_page, namespace_sizes
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    NotFound,
    Problem,
    VersionConflict,
)
from state_admin.services.finding import refuse_installed
from state_admin.services.namespaces import (
    LIMITS,
    NamespaceRegistration,
    find_namespace,
    register_namespace,
    unregister_namespace,
)
from state_admin.services.presence import announce_editing
from state_admin.services.retention import VersionCount, count_old_versions
from state_admin.templatetags.json_html import pretty

from . import paging
from .actors import FORM, POST, page
from .addresses import namespace_url
from .confirm import ENTRY_CHOICES, PREVIEW, Confirm, Count, ask, reason_of
from .drafts import show_refused
from .entry_undo import MOST_CARRIED, REFUSED
from .htmx import Request, Undo, render, see_other, target_id, toast
from .retention import COUNT_FIRST, show_count

_COUNTED = 1000
# How many entries are validated while the user types.
_EXAMINED = 500
CONCURRENT_EDIT = "The second person to save is asked to open the form again."
_TEXTS = ("schema", "default")
_REST = ("description", *LIMITS)
_CODE = {
    "spellcheck": "false",
    "autocapitalize": "off",
    "autocomplete": "off",
    "wrap": "off",
    "data-editor": "",  # static/js/editor.js
}


def _limit(label: str, most: int, empty: str) -> forms.IntegerField:
    """`empty`: what an empty field means."""
    return forms.IntegerField(
        label=label, required=False, min_value=1, max_value=most, help_text=f"Empty: {empty}"
    )


class NamespaceLimitsForm(forms.Form):
    """The limits of a namespace: what its registration has beside name, schema and default."""

    description = forms.CharField(required=False, max_length=10_000)
    max_value_bytes = _limit(
        "Largest value, in bytes", MAX_VALUE_BYTES, f"{DEFAULT_MAX_VALUE_BYTES:,}"
    )
    ttl_seconds = _limit("Entries expire after, in seconds", MAX_TTL, "never")
    history_keep_last = _limit("Keep this many versions of each entry", 1_000_000, "all")
    history_keep_seconds = _limit("Keep versions younger than, in seconds", MAX_TTL, "all")


class NamespaceForm(NamespaceLimitsForm):
    """The registration of a namespace."""

    field_order = ("name", "description", "schema", "default")

    name = forms.CharField(
        max_length=128,
        help_text="Letters, digits, underscores, dots, colons and hyphens, for example team_context",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    schema = forms.CharField(
        label="Schema (JSON Schema 2020-12)",
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 18, "class": "editor", **_CODE, "data-original": "#stored-schema"}
        ),
    )
    default = forms.CharField(
        label="Default (JSON)",
        strip=False,
        help_text="Returned by reads where no value is stored. It must match the schema.",
        widget=forms.Textarea(attrs={"rows": 5, **_CODE, "data-original": "#stored-default"}),
    )
    # The schema version and `updated_at` that were edited, and what the user accepted (SaveEffects.token).
    base = forms.IntegerField(required=False, max_value=(1 << 53) - 1, widget=forms.HiddenInput)
    seen = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    agreed = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)

    def clean_name(self) -> str:
        """Also checked by the service, which knows no field."""
        name: str = self.cleaned_data["name"]
        if name:
            try:
                check_name(name)
            except BadName as bad:
                raise forms.ValidationError(str(bad)) from bad
        return name


@dataclass(frozen=True)
class SaveEffects:
    """What saving a definition would do. `removed`: the versions that a changed rule for histories
    removes. None if the rule is not changed or removes nothing."""

    tried: NamespaceRegistration
    removed: VersionCount | None
    count: Count | None
    rule: str
    changes: list[SchemaChange]

    @property
    def broken(self) -> int:
        return self.tried.violations.count if self.tried.violations else 0

    @property
    def token(self) -> str:
        """Names the effects that a user has to accept; "" if there are none."""
        parts = [f"{self.broken} invalid"] if self.broken else []
        return ", ".join([*parts, self.rule] if self.removed else parts)


@page(methods=FORM, role=Role.ADMIN)
def namespace_new(request: Request) -> HttpResponse:
    if request.method == "POST":
        return _submit(request, None)
    start = {"schema": '{\n  "type": "object"\n}', "default": "{}"}
    if name := request.GET.get("name", ""):
        existing = Namespace.objects.visible_to(request.actor).filter(name=name).first()
        start = _initial(existing) if existing else start | {"name": name}
    return _form(request, None, NamespaceForm(initial=start))


@page(methods=FORM, role=Role.ADMIN)
def namespace_edit(request: Request, name: str) -> HttpResponse:
    namespace = find_namespace(request.actor, name)
    if request.method == "POST":
        return _submit(request, namespace)
    return _form(request, namespace, NamespaceForm(initial=_initial(namespace)))


@page(methods=POST, role=Role.ADMIN)
def namespace_presence(request: Request, name: str) -> HttpResponse:
    """As entry_edit.entry_presence."""
    context = {
        "others": announce_editing(actor=request.actor, namespace=name, key=""),
        "beating": True,
        "presence_url": namespace_url(name, "presence"),
        "second": CONCURRENT_EDIT,
    }
    return render(request, "entries/_presence.html", context)


def _is_live(request: Request) -> bool:
    """Whether the request is the check that runs while the user types. Its answer is a part of the
    page, also for an invalid form."""
    return target_id(request) == "namespace-live"


def _submit(request: Request, namespace: Namespace | None) -> HttpResponse:
    """Validate the form and save it, unless only a check was requested or entries would stop
    matching."""
    form = NamespaceForm(request.POST)
    if namespace is not None:
        form.fields["name"].required = False
    if not form.is_valid():
        return _form(request, namespace, form, status=422)
    name = namespace.name if namespace else form.cleaned_data["name"]
    try:
        if namespace is not None and (
            form.cleaned_data["base"] != namespace.schema_version
            or form.cleaned_data["seen"] not in ("", namespace.updated_at.isoformat())
        ):
            raise Conflict(
                "this namespace was changed in the meantime",
                hint="Open the form again to see the current settings. Your input is kept below.",
            )
        content = _content(form, namespace)
        base = namespace.schema_version if namespace is not None else 0
        register = {"actor": request.actor, "name": name, "expected_version": base, **content}
        tried = register_namespace(
            **register, dry_run=True, examined=_EXAMINED if _is_live(request) else None
        )
        effects = _effects(request, namespace, tried, content)
        agreed = form.cleaned_data["agreed"] == effects.token
        if _is_live(request) or "check" in request.POST or (effects.token and not agreed):
            return _form(request, namespace, form, effects=effects)
        saved = register_namespace(
            **register,
            expected_time=namespace.updated_at if namespace else None,
            reason=reason_of(request),
        )
    except Problem as problem:
        return _form(request, namespace, form, problem=problem, status=422)
    if saved.created:
        toast(request, f"Registered {name}")
    elif saved.changed:
        number = saved.namespace.schema_version
        undo = (
            _undo_of(namespace, saved.namespace)
            if namespace and namespace.unregistered_at is None
            else None
        )
        renewed = namespace is None or number != namespace.schema_version
        toast(request, f"Saved as schema version {number}" if renewed else "Saved", undo=undo)
    else:
        toast(request, "No changes", kind="note")
    return see_other(request, namespace_url(name))


def _effects(
    request: Request,
    namespace: Namespace | None,
    tried: NamespaceRegistration,
    content: dict[str, Any],
) -> SaveEffects:
    keep_last, keep_seconds = content["history_keep_last"], content["history_keep_seconds"]
    before = namespace and (namespace.history_keep_last, namespace.history_keep_seconds)
    removed = count = None
    if namespace and before != (keep_last, keep_seconds) and (keep_last or keep_seconds):
        rule = (keep_last, keep_seconds)
        counted = count_old_versions(
            actor=request.actor, namespace=namespace.name, seconds=COUNT_FIRST, rule=rule
        )
        if counted.size.rows_removed or not counted.complete:
            removed, count = counted, show_count(namespace.name, counted, rule)
    stored = values.load(namespace.schema or "{}") if namespace else {}
    return SaveEffects(
        tried,
        removed,
        count,
        f"keep {keep_last or 'all'} versions, {keep_seconds or 'all'} seconds",
        list_schema_changes(stored, content["schema"].value) if namespace else [],
    )


def _undo_of(old: Namespace, new: Namespace) -> Undo | None:
    """The Undo of a change. The previous schema and default are stored with their version; the Undo
    carries the other fields. None if they are too long."""
    rest = values.dump({name: getattr(old, name) for name in _REST})
    if len(rest) > MOST_CARRIED:
        return None
    fields: dict[str, str | int] = {
        "written": new.schema_version,
        "seen": new.updated_at.isoformat(),
        "before": old.schema_version,
        "rest": rest,
    }
    return Undo(namespace_url(old.name, "undo"), fields)


@page(methods=POST, role=Role.ADMIN)
def namespace_undo(request: Request, name: str) -> HttpResponse:
    """Restore the previous registration, unless it was changed since then."""
    namespace = find_namespace(request.actor, name)
    saved, before = (
        paging.read_number(each, request.POST.get(each, "")) for each in ("written", "before")
    )
    old = NamespaceVersion.objects.filter(namespace=namespace, schema_version=before or 0).first()
    if not saved or old is None:
        raise BadRequest("an undo requires the versions before and after")
    refusal = "an undo requires the previous definition"
    rest = paging.parse_json_field(request.POST.get("rest", ""), refusal).value
    form = NamespaceLimitsForm(rest if isinstance(rest, dict) else {})
    if not form.is_valid():
        raise BadRequest(refusal)
    if request.POST.get("seen") != namespace.updated_at.isoformat():
        toast(request, REFUSED, kind="failed")
        return see_other(request, namespace_url(name))
    try:
        register_namespace(
            actor=request.actor,
            name=name,
            schema=values.stored(old.schema or "{}"),
            default=values.stored(old.default or "null"),
            plugin=namespace.plugin,
            expected_version=saved,
            expected_time=namespace.updated_at,
            reason="undo" if saved == before else f"undo of schema version {saved}",
            **form.cleaned_data,
        )
    except (Conflict, VersionConflict):
        toast(request, REFUSED, kind="failed")
    else:
        toast(request, "Undone")
    return see_other(request, namespace_url(name))


def _initial(namespace: Namespace) -> dict[str, Any]:
    initial = {
        name: getattr(namespace, name)
        for name in NamespaceForm.base_fields
        if hasattr(namespace, name) and name not in _TEXTS
    }
    for name in _TEXTS:
        initial[name] = pretty(values.load(getattr(namespace, name) or "null"))
    return initial | {"base": namespace.schema_version, "seen": namespace.updated_at.isoformat()}


def _content(form: NamespaceForm, namespace: Namespace | None) -> dict[str, Any]:
    """The arguments of register_namespace. JSON that is equal to the stored value keeps its stored
    text."""
    cleaned = form.cleaned_data
    content: dict[str, Any] = {
        "description": cleaned["description"],
        "plugin": namespace.plugin if namespace else "",
        **{name: cleaned[name] for name in LIMITS},
    }
    for name in _TEXTS:
        raw = paging.parse_typed_json(cleaned[name], f"the {name}", f"/{name}")
        typed = Raw(values.dump(values.load(raw.text)), raw.value)
        kept = (getattr(namespace, name) or "null") if namespace else ""
        if kept and values.dump(values.load(kept)) == typed.text:
            typed = Raw(kept, typed.value)
        content[name] = typed
    return content


def _form(
    request: Request,
    namespace: Namespace | None,
    form: NamespaceForm,
    *,
    effects: SaveEffects | None = None,
    problem: Problem | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "namespace": namespace,
        "form": form,
        "effects": effects,
        "presence_url": namespace_url(namespace.name, "presence") if namespace else "",
        "second": CONCURRENT_EDIT,
        "stored": _initial(namespace) if namespace and request.method == "POST" else None,
        "post_url": namespace_url(namespace.name, "edit")
        if namespace
        else reverse("web:namespace-new"),
        "back": namespace_url(namespace.name) if namespace else reverse("web:namespace-list"),
    }
    if problem is not None:
        about = "default" if "default" in problem.detail else "schema"
        text = form.cleaned_data.get(about, "")
        context |= show_refused(text, problem, f"/{about}")
    if _is_live(request):
        context |= {"live": True, "examined": _EXAMINED}
        return render(request, "namespaces/edit.html", context, part="namespace-live")
    return render(request, "namespaces/edit.html", context, part="namespace-form", status=status)


@page(methods=FORM, role=Role.ADMIN)
def namespace_unregister(request: Request, name: str) -> HttpResponse:
    namespace = find_namespace(request.actor, name)
    if request.method == "POST":
        entries = request.POST.get("entries", "")
        reason = reason_of(request)
        count = unregister_namespace(actor=request.actor, name=name, entries=entries, reason=reason)
        undo = Undo(namespace_url(name, "reregister")) if entries != "delete" else None
        kept = {"retain": f"; kept {count:,} entries", "delete": f"; deleted {count:,} entries"}
        toast(request, f"Unregistered {name}{kept.get(entries, '') if count else ''}", undo=undo)
        return see_other(request, namespace_url(name))
    if namespace.unregistered_at is not None:
        raise NotFound(f"namespace {name} is not registered")
    refuse_installed(request.actor, f"namespace {name}", namespace.plugin)
    size = namespace_sizes([namespace.pk], _COUNTED + 1)[namespace.pk]
    held_words = f"{_COUNTED:,}+" if size.entries > _COUNTED else f"{size.entries:,}"
    first = [line.key for line in entry_page(request.actor, EntryFilter(name), limit=PREVIEW)]
    question = Confirm(
        title=f"Unregister {name}?",
        verb="Unregister",
        back=namespace_url(name),
        lines=[
            "API requests for it then return 404.",
            f"It has {held_words} {'entry' if size.entries == 1 else 'entries'}."
            if size.entries
            else "It has no entries.",
        ],
        names=first,
        total=max(min(size.entries, _COUNTED), len(first)),
        choices_name="entries",
        choices_label="Its entries",
        choices=ENTRY_CHOICES if size.entries else (),
    )
    return ask(request, question)


@page(methods=POST, role=Role.ADMIN)
def namespace_reregister(request: Request, name: str) -> HttpResponse:
    """Undo of unregistering: register the namespace again with the same content."""
    namespace = find_namespace(request.actor, name)
    if namespace.unregistered_at is None:
        toast(request, f"{name} is already registered again", kind="note")
        return see_other(request, namespace_url(name))
    try:
        register_namespace(
            actor=request.actor,
            name=name,
            schema=values.stored(namespace.schema or "{}"),
            default=values.stored(namespace.default or "null"),
            plugin=namespace.plugin,
            expected_time=namespace.updated_at,
            reason="undo of unregistering",
            **{name: getattr(namespace, name) for name in _REST},
        )
    except Conflict:
        toast(request, REFUSED, kind="failed")
    else:
        toast(request, f"Registered {name} again")
    return see_other(request, namespace_url(name))


urlpatterns = [
    # No name begins with "+", so that this path cannot be that of a namespace.
    path("namespaces/+new", namespace_new, name="namespace-new"),
    path("namespaces/<str:name>/edit", namespace_edit, name="namespace-edit"),
    path("namespaces/<str:name>/presence", namespace_presence, name="namespace-presence"),
    path("namespaces/<str:name>/undo", namespace_undo, name="namespace-undo"),
    path("namespaces/<str:name>/unregister", namespace_unregister, name="namespace-unregister"),
    path("namespaces/<str:name>/reregister", namespace_reregister, name="namespace-reregister"),
]
