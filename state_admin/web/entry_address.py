"""Reads from the URL of a page about one entry its namespace and key, and the requested version."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, path

from state_admin.domain.access import Role
from state_admin.services.entries import check_address
from state_admin.services.entry_views import EntryView, read_past
from state_admin.services.errors import NotFound

from .actors import READ, View, page
from .htmx import Request
from .paging import read_moment, read_required_number

PageView = Callable[[Request, str, str], HttpResponseBase]


def entry_page(
    *, methods: Sequence[str] = READ, role: Role = Role.VIEWER, replica: bool = False
) -> Callable[[PageView], View]:
    """`@page` for views of one entry. The keys `.` and `..` are in the query string
    (addresses.py)."""

    def decorate(view: PageView) -> View:
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


def read_requested_entry(request: Request, now: EntryView) -> tuple[EntryView, int]:
    """The requested state of the entry: the current one, a version, or that at a time; and its version if
    it is a past one, else 0."""
    address: Any = {"actor": request.actor, "namespace": now.namespace, "key": now.key}
    if text := request.GET.get("version", ""):
        version = read_required_number("version", text)
        if version == now.version:
            return now, 0
        return read_past(**address, at_version=version), version
    if text := request.GET.get("at", ""):
        entry = read_past(**address, at=read_moment("at", text))
        if not entry.version:
            raise NotFound(f"{now.namespace}/{now.key} did not exist at {text}")
        return (now, 0) if entry.version == now.version else (entry, entry.version)
    return now, 0
