"""Saved views of a list: create, open, set as default, delete.

A view stores filters and no URL, so that it can only lead to its own list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import path, reverse
from django.utils.http import urlencode

from state_admin.domain.access import Role
from state_admin.models import ViewPage
from state_admin.services.errors import BadRequest, Problem
from state_admin.services.saved_views import choose_default, delete_view, list_views, save_view

from .actors import POST, page
from .errors import sentences_of
from .htmx import Request, toast, wants_part

# The URL name of each list, and which of its parameters are filters.
LISTS: Final[Mapping[ViewPage, tuple[str, tuple[str, ...]]]] = {
    ViewPage.STATE: (
        "web:entry-list",
        (
            "namespace", "scope", "prefix", "since", "until", "show", "tag", "actor", "text", "columns",
            "sort",
        ),
    ),
    ViewPage.THREADS: (
        "web:thread-list",
        (
            "text", "prefix", "resource", "agent", "status", "size", "since", "until", "sort",
            "columns",
        ),
    ),
    ViewPage.RUNS: (
        "web:run-list",
        ("status", "agent", "age", "since", "until", "sort", "columns"),
    ),
}  # fmt: skip


def views_of(
    request: Request, page: ViewPage, *, in_part: bool = False
) -> tuple[dict[str, Any], HttpResponse | None]:
    """Return the context of components/_views.html, and a redirect to the user's default view if
    the URL has no parameters, else None. `?view=all` shows the list without the default view.
    `in_part`: load the views for htmx requests too, because the swapped part contains them."""
    everything = f"{reverse(LISTS[page][0])}?view=all"
    if wants_part(request) and not in_part:
        return {"views_all_url": everything}, None
    views = list_views(request.actor, page)
    default = next((view for view in views if view.default), None)
    if default and not request.GET and not wants_part(request):
        return {}, HttpResponseRedirect(_url(page, default.query))
    now = _query(page, request.GET)
    context = {
        "views": [(view, _url(page, view.query), view.query == now) for view in views],
        "views_page": page,
        "views_query": now,
        "views_all_url": everything if default else reverse(LISTS[page][0]),
        "can_share": request.actor.may(Role.EDITOR),
    }
    return context, None


def _query(page: ViewPage, parameters: QueryDict) -> str:
    """The filters among the parameters, in a fixed order; "" for none."""
    kept = [(name, parameters.get(name, "").replace("\0", "")) for name in LISTS[page][1]]
    return urlencode([(name, value) for name, value in kept if value])


def _url(page: ViewPage, query: str) -> str:
    return f"{reverse(LISTS[page][0])}?{_query(page, QueryDict(query)) or 'view=all'}"


@page(methods=POST)
def view_save(request: Request) -> HttpResponse:
    view_page = _page(request)
    query = _query(view_page, QueryDict(request.POST.get("query", "")[:10_000]))
    shared = request.POST.get("shared") == "on"
    name = request.POST.get("name", "")
    save = partial(
        save_view, actor=request.actor, page=view_page, name=name, query=query, shared=shared
    )
    return _then(request, view_page, query, save, f"Saved view {' '.join(name.split())}")


@page(methods=POST)
def view_change(request: Request, view_id: int) -> HttpResponse:
    """Delete a view, make it the default, or stop using it as the default."""
    view_page = _page(request)
    query = _query(view_page, QueryDict(request.POST.get("query", "")[:10_000]))
    view: Any = {"actor": request.actor, "view_id": view_id}
    actions: dict[str, tuple[Callable[[], object], str]] = {
        "delete": (partial(delete_view, **view), "View deleted"),
        "default": (partial(choose_default, chosen=True, **view), "Default view set"),
        "undefault": (partial(choose_default, chosen=False, **view), "Default view removed"),
    }
    action = actions.get(request.POST.get("do", ""))
    if action is None:
        raise BadRequest("unknown action")
    return _then(request, view_page, query, *action)


def _then(
    request: Request, page: ViewPage, query: str, action: Callable[[], object], message: str
) -> HttpResponse:
    """Perform the action, show a toast, and redirect to the list with its filters."""
    try:
        action()
    except Problem as problem:
        toast(request, sentences_of(problem), kind="failed")
    else:
        toast(request, message)
    return HttpResponseRedirect(_url(page, query))


def _page(request: Request) -> ViewPage:
    text = request.POST.get("page", "")
    if text not in ViewPage.values:
        raise BadRequest("unknown list")
    return ViewPage(text)


urlpatterns = [
    path("views", view_save, name="view-save"),
    path("views/<int:view_id>", view_change, name="view-change"),
]
