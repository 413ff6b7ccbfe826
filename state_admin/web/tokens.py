"""API tokens: the list, creating and rotating a token, whose secret is shown once, changing and
revoking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.db.models import Q, Value
from django.db.models.functions import Coalesce
from django.http import HttpResponse, QueryDict
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from state_admin.contract import tokens as contract
from state_admin.domain.access import Actor, Role
from state_admin.domain.numbers import read_whole
from state_admin.models import ApiToken
from state_admin.models.access import TOKEN_PREFIX, TokenQuerySet
from state_admin.services.errors import Conflict, Forbidden, Invalid
from state_admin.services.tokens import (
    change_token,
    create_token,
    find_token,
    require_active,
    revoke_token,
    rotate_token,
)
from state_admin.templatetags.ui import plural

from . import paging, snippets
from .actors import FORM, page
from .addresses import with_query
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .choosers import namespace_globs_field, thread_prefixes_field, warn_unmatched
from .confirm import Choice, Confirm, ask, reason_of
from .creation import Creation, created_once, show_form
from .errors import sentences_of
from .htmx import Request, list_url_of_page, render_list, see_other, toast
from .lists import table_paths
from .paging import BY_AGE, Order, by_column, read_time
from .tables import Field, Orders, Table, choices_of, count_rows, matching

PAGE = 100
_DAY = 24 * 3600
# The lifetimes of tokens, in days.
_LIVES = {
    "1": "in a day",
    "7": "in a week",
    "30": "in 30 days",
    "90": "in 90 days",
    "365": "in a year",
    "": "never",
}
_STATES = ("live", "rotated", "expired", "revoked")
_CREATION = Creation("Tokens", "web:token-list", "tokens", "New token", "Create token")
_KEEP = "keep"
_NEVER = datetime.fromtimestamp(0, UTC)

_TABLE = Table(
    "web:token-list",
    (
        Orders("Token", by_column("name")),
        Orders("Role"),
        Orders("Access"),
        Orders(
            "Last used",
            {
                "used": Order("used", descending=True, read=read_time),
                "unused": Order("used", read=read_time),
            },
        ),
        Orders("Expires"),
        Orders("Created", BY_AGE),
        Orders("Actions"),
    ),
    search=Field("text", "Search names and token prefixes", placeholder="Name or token prefix"),
    menu=(
        Field("state", "State", choices=choices_of(_STATES)),
        Field("role", "Role", choices=choices_of(role.value for role in Role)),
    ),
)
# How long the old secret of a rotated token remains valid.
_OVERLAPS = {
    "0": ("not at all: it stops working now", timedelta(0)),
    "1h": ("for an hour", timedelta(hours=1)),
    "1d": ("for a day", timedelta(days=1)),
    "7d": ("for a week", timedelta(days=7)),
    "30d": ("for 30 days", timedelta(days=30)),
}


class TokenForm(forms.Form):
    """The permissions of a token. Globs and prefixes restrict it; empty means all."""

    name = forms.CharField(
        max_length=128,
        help_text="The application that uses the token.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    role = forms.ChoiceField(
        choices=[
            (Role.VIEWER.value, "viewer: reads"),
            (Role.EDITOR.value, "editor: also writes state and runs"),
            (Role.ADMIN.value, "admin: also manages the workspace"),
        ],
        initial=Role.EDITOR.value,
    )
    namespaces = namespace_globs_field("Empty means all.")
    thread_prefixes = thread_prefixes_field("Empty means all.")
    rate_per_minute = forms.IntegerField(
        required=False,
        label="Requests per minute",
        min_value=1,
        max_value=contract.MOST_PER_MINUTE,
        help_text="Empty means no limit.",
    )
    lives = forms.ChoiceField(required=False, label="Expires", initial="90", choices=_LIVES)


class TokenEditForm(TokenForm):
    """The form of a token that exists. With hidden copies of what it showed, so that only the fields are
    saved that were changed in it."""

    def __init__(self, token: ApiToken, data: QueryDict | None = None) -> None:
        self.token = token
        initial = {
            "name": token.name,
            "role": token.role,
            "namespaces": " ".join(token.namespaces),
            "thread_prefixes": " ".join(token.thread_prefixes),
            "rate_per_minute": token.rate_per_minute,
            "lives": _KEEP,
        }
        super().__init__(data, initial=initial)
        ends = f"{token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "never"
        self.fields["lives"] = forms.ChoiceField(
            required=False,
            label="Expires",
            choices=[(_KEEP, f"Unchanged ({ends})"), *_LIVES.items()],
        )
        for field in self.fields.values():
            field.show_hidden_initial = True

    def clean_thread_prefixes(self) -> str:
        typed = str(self.cleaned_data["thread_prefixes"])
        spaced = any(" " in prefix for prefix in self.token.thread_prefixes)
        if spaced and "thread_prefixes" in self.changed_data:
            raise forms.ValidationError(
                "A prefix of this token contains a space, so this form cannot change the prefixes. Use the API."
            )
        return typed

    def changes(self) -> dict[str, Any]:
        """The changed fields, by the names of contract.TokenChanges."""
        changed = {name: self.cleaned_data[name] for name in self.changed_data}
        for name in ("namespaces", "thread_prefixes"):
            if name in changed:
                changed[name] = changed[name].split()
        lives = changed.pop("lives", _KEEP)
        if lives != _KEEP:
            after = timedelta(days=int(lives)) if lives else None
            changed["expires_at"] = timezone.now() + after if after else None
        return changed


@page(methods=FORM, role=Role.ADMIN)
@created_once
@sensitive_variables("secret")
def token_new(request: Request) -> HttpResponse:
    """The form, in which `namespaces` of the query string are filled in, also as the name. The
    response to its POST is the only page that shows the secret."""
    if request.method != "POST":
        namespaces = paging.text(request, "namespaces")
        form = TokenForm(initial={"namespaces": namespaces, "name": namespaces})
        return show_form(request, _CREATION, form)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return show_form(request, _CREATION, form, status=422)
    cleaned = form.cleaned_data
    try:
        token, secret = create_token(
            actor=request.actor,
            name=cleaned["name"],
            role=Role(cleaned["role"]),
            namespaces=cleaned["namespaces"].split(),
            thread_prefixes=cleaned["thread_prefixes"].split(),
            expires_in_seconds=int(cleaned["lives"]) * _DAY if cleaned["lives"] else None,
            rate_per_minute=cleaned["rate_per_minute"],
        )
    except (Invalid, Forbidden) as problem:
        form.add_error(None, sentences_of(problem))
        return show_form(request, _CREATION, form, status=422)
    return _show_secret(request, token, secret)


def _show(request: Request, created: dict[str, Any] | None = None) -> HttpResponse:
    filters, tokens, table = _TABLE.load(request, _find)
    context = {
        **table,
        "rows": tokens,
        "bulk": TOKENS.bar(request, table["list_url"]),
        "count": count_rows(table, tokens, lambda: _filtered(request, filters), "token,tokens"),
        **(created or {}),
    }
    status = 201 if created else 200
    return render_list(
        request, "tokens/list.html", context, part="tokens", rows="token-table", status=status
    )


def _filtered(request: Request, filters: dict[str, str]) -> TokenQuerySet:
    rows = ApiToken.objects.visible_to(request.actor).with_state()
    if text := filters["text"]:
        # The beginning of a token, as the list shows it: without the prefix of all tokens.
        lookup = text.removeprefix(f"{TOKEN_PREFIX}_").removesuffix("…").rstrip("_")
        rows = rows.filter(Q(name__icontains=text) | Q(lookup__startswith=lookup))
    return matching(rows, filters, role="role", state="state")


def _find(request: Request, filters: dict[str, str], name: str) -> tuple[Sequence[ApiToken], str]:
    rows = _filtered(request, filters).annotate(used=Coalesce("last_used_at", Value(_NEVER)))
    return _TABLE.page(request, rows, PAGE, reverse(name), filters)


@page(methods=FORM, role=Role.ADMIN)
def token_edit(request: Request, token_id: int) -> HttpResponse:
    """The form that changes a token; its secret stays valid."""
    token = find_token(request.actor, token_id)
    edit = replace(_CREATION, title=f"Edit token “{token.name}”", verb="Save token")
    if request.method != "POST":
        require_active(token)
        return show_form(request, edit, TokenEditForm(token))
    form = TokenEditForm(token, request.POST)
    if not form.is_valid():
        return show_form(request, edit, form, status=422)
    try:
        token = change_token(actor=request.actor, token_id=token_id, changes=form.changes())
    except (Invalid, Forbidden, Conflict) as problem:
        form.add_error(None, sentences_of(problem))
        return show_form(request, edit, form, status=422)
    toast(request, f"Token “{token.name}” saved")
    return see_other(request, reverse("web:token-list"), part="tokens")


@page(methods=FORM, role=Role.ADMIN)
def revoke(request: Request, token_id: int) -> HttpResponse:
    back = list_url_of_page(request, reverse("web:token-list"))
    if request.method == "GET":
        token = find_token(request.actor, token_id)
        used = "It was never used." if token.last_used_at is None else "It is in use."
        confirm = Confirm(
            title=f"Revoke the token “{token.name}”?",
            verb="Revoke token",
            back=back,
            lines=[
                "Requests with this token are refused immediately. This cannot be undone.",
                f"{used} It starts with {token.beginning}.",
            ],
        )
        return ask(request, confirm, part="tokens")
    token = revoke_token(actor=request.actor, token_id=token_id, reason=reason_of(request))
    toast(request, f"Token “{token.name}” revoked")
    return see_other(request, back, part="tokens")


@page(methods=FORM, role=Role.ADMIN)
@sensitive_variables("secret")
def rotate(request: Request, token_id: int) -> HttpResponse:
    """Create a new secret. As in the list, the response to the POST is the only page that shows
    it."""
    if request.method == "GET":
        token = find_token(request.actor, token_id)
        confirm = Confirm(
            title=f"Rotate the token “{token.name}”?",
            verb="Rotate token",
            back=reverse("web:token-list"),
            lines=[
                "A new token with the same name, role and access replaces it. The new token is "
                "shown once, on the next page.",
                f"The old token starts with {token.beginning}.",
            ],
            choices_name="overlap",
            choices_label="Old token keeps working",
            choices=[
                Choice(value, label, checked=value == "1d")
                for value, (label, _) in _OVERLAPS.items()
            ],
            kind="primary",
        )
        return ask(request, confirm, part="tokens")
    overlap = request.POST.get("overlap", "")
    if overlap not in _OVERLAPS:
        raise Invalid("choose how long the old token keeps working")
    token, secret = rotate_token(
        actor=request.actor,
        token_id=token_id,
        overlap=_OVERLAPS[overlap][1],
        reason=reason_of(request),
    )
    return _show_secret(request, token, secret)


@sensitive_variables("secret")
def _show_secret(request: Request, token: ApiToken, secret: str) -> HttpResponse:
    """The list with a new token, whose secret is shown once."""
    created = {
        "created": token,
        "secret": secret,
        "created_curl": f'curl -H "Authorization: Bearer {secret}" \\\n  {snippets.api("namespaces")}',
        "warnings": warn_unmatched(request.actor, token.namespaces),
    }
    return _show(request, created)


def _look(actor: Actor, ids: Sequence[str]) -> Outlook:
    numbers = [number for number in map(read_whole, ids) if number is not None]
    rows = ApiToken.objects.visible_to(actor).with_state().filter(pk__in=numbers)
    tokens = list(rows.filter(Q(("state__in", ("live", "rotated")))).order_by("name", "pk"))
    used = sum(token.last_used_at is not None for token in tokens)
    return Outlook(
        {str(token.pk): f"{token.name}, {token.beginning}…" for token in tokens},
        [
            "Requests with these tokens are refused immediately. This cannot be undone.",
            f"{plural(used, 'of them has,of them have')} been used."
            if used
            else "They have never been used.",
        ],
    )


def _revoke_selected(actor: Actor, token_id: str, reason: str, _: str) -> int:
    revoke_token(actor=actor, token_id=paging.read_required_number("item", token_id), reason=reason)
    return 1


TOKENS = BulkList(
    name="token-list",
    part="token-table",
    nouns="token,tokens",
    actions={
        "revoke": BulkAction(
            verb="Revoke",
            past="Revoked",
            only="Only live and rotated tokens can be revoked",
            look=_look,
            do=_revoke_selected,
        )
    },
    url=lambda token_id: with_query(reverse("web:access"), token_id=token_id),
    role=Role.ADMIN,
)

urlpatterns = [
    bulk_path("tokens/bulk", TOKENS),
    path("tokens", page(role=Role.ADMIN)(_show), name="token-list"),
    path("tokens/+new", token_new, name="token-new"),
    *table_paths("tokens", _TABLE, _find, contract.Token.of, role=Role.ADMIN),
    path("tokens/<int:token_id>/edit", token_edit, name="token-edit"),
    path("tokens/<int:token_id>/rotate", rotate, name="token-rotate"),
    path("tokens/<int:token_id>/revoke", revoke, name="token-revoke"),
]
