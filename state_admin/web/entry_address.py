"""Reads the namespace and key of a page about one entry from its URL, and validates them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from django.http import HttpResponseBase
from django.urls import URLPattern, path

from state_admin.domain.access import Role
from state_admin.services.entries import check_address
from state_admin.services.errors import NotFound

from .actors import READ, View, page
from .htmx import Request

EntryView = Callable[[Request, str, str], HttpResponseBase]


def entry_page(
    *, methods: Sequence[str] = READ, role: Role = Role.VIEWER, replica: bool = False
) -> Callable[[EntryView], View]:
    """`@page` for views of one entry. The keys `.` and `..` are in the query string
    (addresses.py)."""

    def decorate(view: EntryView) -> View:
        @page(methods=methods, role=role, replica=replica)
        @functools.wraps(view)
        def with_key(request: Request, namespace: str, key: str = "") -> HttpResponseBase:
            key = key or request.GET.get("key", "")
            if not key:
                raise NotFound(f"key is required for {namespace}")
            check_address(namespace, key)
            return view(request, namespace, key)

        return with_key

    return decorate


def entry_paths(root: str, view: View, name: str) -> list[URLPattern]:
    return [
        path(f"{root}/<str:namespace>/", view, name=name),
        path(f"{root}/<str:namespace>/<path:key>", view, name=name),
    ]
