"""API tokens: the list, creating and rotating a token, whose secret is shown once, and revoking
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from state_admin.contract import tokens as contract
from state_admin.domain.access import Role
from state_admin.models import ApiToken
from state_admin.services.errors import Forbidden, Invalid
from state_admin.services.tokens import create_token, find_token, revoke_token, rotate_token

from . import paging, snippets
from .actors import page
from .addresses import with_query
from .choosers import NamespaceGlobs, ThreadPrefixes, warn_unmatched
from .confirm import Choice, Confirm, ask
from .errors import sentences_of
from .htmx import Request, render, see_other, toast
from .lists import list_paths

PAGE = 100
_DAY = 24 * 3600
_LIVES = {"": None, "1": _DAY, "7": 7 * _DAY, "30": 30 * _DAY, "90": 90 * _DAY, "365": 365 * _DAY}


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
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        choices=[
            (Role.VIEWER.value, "viewer: reads"),
            (Role.EDITOR.value, "editor: also writes state, threads and runs"),
            (Role.ADMIN.value, "admin: also registers, deletes and manages"),
        ],
        initial=Role.EDITOR.value,
    )
    namespaces = NamespaceGlobs("Empty means all.")
    thread_prefixes = ThreadPrefixes("Empty means all.")
    lives = forms.ChoiceField(
        required=False,
        label="Expires",
        initial="90",
        choices=[
            ("1", "in a day"),
            ("7", "in a week"),
            ("30", "in 30 days"),
            ("90", "in 90 days"),
            ("365", "in a year"),
            ("", "never"),
        ],
    )


@dataclass(frozen=True)
class TokenRow:
    token: ApiToken
    state: str
    live: bool


@require_http_methods(["GET", "HEAD", "POST"])
@page(role=Role.ADMIN)
@sensitive_variables("secret")
def token_list(request: Request) -> HttpResponse:
    """The list with its form, in which `namespaces` of the query string are filled in, also as the
    name. The response to its POST is the only page that shows the secret."""
    if request.method != "POST":
        namespaces = paging.text(request, "namespaces")
        return _show(request, TokenForm(initial={"namespaces": namespaces, "name": namespaces}))
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    cleaned = form.cleaned_data
    try:
        token, secret = create_token(
            actor=request.actor,
            name=cleaned["name"],
            role=Role(cleaned["role"]),
            namespaces=cleaned["namespaces"].split(),
            thread_prefixes=cleaned["thread_prefixes"].split(),
            expires_in_seconds=_LIVES[cleaned["lives"]],
        )
    except (Invalid, Forbidden) as problem:
        form.add_error(None, sentences_of(problem))
        return _show(request, form, status=422)
    return _show_secret(request, token, secret)


def _try_line(secret: str) -> str:
    return f'curl -H "Authorization: Bearer {secret}" \\\n  {snippets.api("namespaces")}'


def _show(
    request: Request, form: TokenForm, created: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    before = paging.whole_number(request, "before")
    root = reverse("web:token-list")
    tokens, next_url = _page(request, root)
    context = {
        "form": form,
        "rows": [_row(token) for token in tokens],
        "pager": {"first": root if before else "", "next": next_url},
        "root": root,
        "json_url": reverse("web:token-list-json"),
        **(created or {}),
    }
    return render(request, "tokens/list.html", context, part="tokens", status=status)


def _page(request: Request, url: str) -> tuple[Sequence[ApiToken], str]:
    """A page of tokens, newest first, and the URL of the next page."""
    rows = ApiToken.objects.visible_to(request.actor).order_by("-pk")
    if before := paging.whole_number(request, "before"):
        rows = rows.filter(pk__lt=before)
    return paging.cut(list(rows[: PAGE + 1]), PAGE, lambda last: with_query(url, before=last.pk))


def _items(request: Request, name: str) -> tuple[list[contract.Token], str]:
    tokens, next_url = _page(request, reverse(name))
    return [contract.Token.of(token) for token in tokens], next_url


def _row(token: ApiToken) -> TokenRow:
    if token.revoked_at:
        return TokenRow(token, "revoked", live=False)
    if token.expires_at and token.expires_at <= timezone.now():
        return TokenRow(token, "expired", live=False)
    if token.rotated_at:
        return TokenRow(token, "rotated", live=True)
    return TokenRow(token, "live", live=True)


@require_http_methods(["GET", "POST"])
@page(role=Role.ADMIN)
def revoke(request: Request, token_id: int) -> HttpResponse:
    root = reverse("web:token-list")
    if request.method == "GET":
        token = find_token(request.actor, token_id)
        used = "It was never used." if token.last_used_at is None else "It is in use."
        confirm = Confirm(
            title=f"Revoke the token “{token.name}”?",
            verb="Revoke token",
            url=reverse("web:token-revoke", args=[token_id]),
            back=root,
            lines=[
                "Requests with this token are refused immediately. This cannot be undone.",
                f"{used} It starts with {token.beginning}.",
            ],
        )
        return ask(request, confirm, part="tokens")
    token = revoke_token(
        actor=request.actor, token_id=token_id, reason=request.POST.get("reason", "")
    )
    toast(request, f"Token “{token.name}” revoked")
    return see_other(request, root, part="tokens")


@require_http_methods(["GET", "POST"])
@page(role=Role.ADMIN)
@sensitive_variables("secret")
def rotate(request: Request, token_id: int) -> HttpResponse:
    """Create a new secret. As in the list, the response to the POST is the only page that shows
    it."""
    if request.method == "GET":
        token = find_token(request.actor, token_id)
        confirm = Confirm(
            title=f"Rotate the token “{token.name}”?",
            verb="Rotate token",
            url=reverse("web:token-rotate", args=[token_id]),
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
        reason=request.POST.get("reason", ""),
    )
    return _show_secret(request, token, secret)


@sensitive_variables("secret")
def _show_secret(request: Request, token: ApiToken, secret: str) -> HttpResponse:
    """The list with a new token, whose secret is shown once."""
    created = {
        "created": token,
        "secret": secret,
        "created_curl": _try_line(secret),
        "warnings": warn_unmatched(request.actor, token.namespaces),
    }
    return _show(request, TokenForm(), created, status=201)


urlpatterns = [
    path("tokens", token_list, name="token-list"),
    *list_paths("tokens", "token-list", _items, role=Role.ADMIN),
    path("tokens/<int:token_id>/rotate", rotate, name="token-rotate"),
    path("tokens/<int:token_id>/revoke", revoke, name="token-revoke"),
]
