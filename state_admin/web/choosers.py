"""Namespaces given as globs: the field of forms, what it matches, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse_lazy
from django.utils.html import escape
from django.views.decorators.http import require_safe

from state_admin.domain.access import Actor
from state_admin.services.namespaces import find_matching, find_unmatched
from state_admin.templatetags.ui import plural

from . import paging
from .actors import page
from .htmx import Request

LONGEST = 2000
_COUNTED = 100
_NAMED = 5


class NamespaceGlobs(forms.CharField):
    """Globs, separated by spaces. While a user types, the page says what they match."""

    shows_matches = True  # components/_field.html

    def __init__(self, empty: str) -> None:
        super().__init__(
            required=False,
            max_length=LONGEST,
            help_text=f"Globs, separated by spaces: team_* notes. {empty}",
            widget=forms.TextInput(
                attrs={
                    "autocomplete": "off",
                    "spellcheck": "false",
                    "hx-get": reverse_lazy("web:namespace-matches"),
                    "hx-trigger": "input changed delay:250ms, load",
                    "hx-target": "next .matches",
                    "hx-swap": "innerHTML",
                    "hx-sync": "replace",
                }
            ),
        )


@require_safe
@page
def matches(request: Request) -> HttpResponse:
    """What the globs of the field match, as a sentence; empty for an empty field."""
    globs = paging.text(request, "namespaces")[:LONGEST].split()
    return HttpResponse(escape(describe_matches(request.actor, globs)) if globs else "")


def describe_matches(actor: Actor, globs: Sequence[str]) -> str:
    names = find_matching(actor, globs, _COUNTED + 1)
    if not names:
        return "Matches no namespace yet."
    many = len(names) > _COUNTED
    count = (
        f"more than {_COUNTED} namespaces" if many else plural(len(names), "namespace,namespaces")
    )
    listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"Matches {count}: {listed}"


def warn_unmatched(actor: Actor, globs: Sequence[str]) -> list[str]:
    """One sentence for each glob that matches no namespace."""
    return [f"No namespace matches {glob} yet." for glob in find_unmatched(actor, globs)]


urlpatterns = [path("namespaces/+matches", matches, name="namespace-matches")]
