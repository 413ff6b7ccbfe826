"""The page with the form for a new token, webhook or member."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass

from django import forms
from django.http import HttpResponse
from django.urls import reverse

from state_admin.services.idempotency import perform_once

from .htmx import Request, render


@dataclass(frozen=True)
class Creation:
    """What the page says. `list` and `url_name` are the label and the page of the list, `part` the id of
    its element, which the response to the form replaces."""

    list: str
    url_name: str
    part: str
    title: str
    verb: str


def show_form(
    request: Request, creation: Creation, form: forms.Form, status: int = 200
) -> HttpResponse:
    context = {
        **asdict(creation),
        "root": reverse(creation.url_name),
        "form": form,
        "form_id": secrets.token_urlsafe(16),
    }
    return render(request, "create.html", context, part="create", status=status)


def created_once(view: Callable[[Request], HttpResponse]) -> Callable[[Request], HttpResponse]:
    """Decorator of the view of a form, under @page: a form that is sent twice creates one item. Programs
    may leave out its id."""

    @functools.wraps(view)
    def wrapped(request: Request) -> HttpResponse:
        form_id = request.POST.get("form_id", "")
        if not form_id:
            return view(request)
        return perform_once(
            actor=request.actor,
            form_id=form_id,
            work=lambda: view(request),
            succeeded=lambda response: response.status_code < 400,
        )

    return wrapped
