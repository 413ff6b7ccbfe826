"""The page with the form for a new token, webhook or member."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django import forms
from django.http import HttpResponse
from django.urls import reverse

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
    context = {**asdict(creation), "root": reverse(creation.url_name), "form": form}
    return render(request, "create.html", context, part="create", status=status)
