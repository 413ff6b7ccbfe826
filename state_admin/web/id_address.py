"""Reads the id of a page about a thread, run or ticket from its URL. Clients choose ids, which may
contain any character."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, path

from state_admin.domain.access import Role
from state_admin.services.threads import check_id

from .actors import READ, View, page
from .htmx import Request


def id_page(
    *, methods: Sequence[str] = READ, role: Role = Role.VIEWER, replica: bool = False
) -> Callable[[View], View]:
    """`@page` for views of one thread, run or ticket."""

    def decorate(view: View) -> View:
        @page(methods=methods, role=role, replica=replica)
        @functools.wraps(view)
        def with_id(request: Request, public_id: str, **kwargs: Any) -> HttpResponseBase:
            return view(request, check_id(public_id), **kwargs)

        return with_id

    return decorate


def id_path(root: str, view: View, name: str) -> URLPattern:
    return path(f"{root}/<path:public_id>", view, name=name)
