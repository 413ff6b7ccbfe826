"""Who looks at a page: `@page` turns the logged-in user into the actor of the services."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast, overload

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import urlencode

from state_admin.domain import isolation
from state_admin.domain.access import Actor, Role
from state_admin.services.actors import actor_of_user, require
from state_admin.services.errors import BadRequest, Forbidden, Problem, Unavailable

from . import errors, shell
from .htmx import AnyRequest, Request, see_other

View = Callable[..., HttpResponseBase]

WORKSPACE = "workspace"  # the session key that names the chosen workspace by its slug
CONFIRMED = "confirmed"  # set where more than a password or a link let the person in


@overload
def page(view: View) -> View: ...
@overload
def page(view: None = None, *, role: Role = Role.VIEWER) -> Callable[[View], View]: ...
def page(view: View | None = None, *, role: Role = Role.VIEWER) -> View | Callable[[View], View]:
    """A page for members who hold `role` or more: login first, then `request.actor` is set.

    Problems that services raise become an answer here (errors.answer), nowhere else.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            asked = cast(AnyRequest, request)
            response: HttpResponseBase
            try:
                if asked.user.is_authenticated:
                    response = _as_member(asked, role, view, args, kwargs)
                else:
                    response = _to_login(asked)
                if isinstance(response, SimpleTemplateResponse):
                    response.render()  # here, where a failing query still becomes an answer
            except Problem as problem:
                response = errors.answer(request, problem)
            except isolation.Busy as busy:
                response = errors.answer(request, Unavailable(str(busy)))
            except (OperationalError, InterfaceError):
                response = errors.answer(request, Unavailable("the database is not available"))
            # What is shown is the present state, and only this person may see it.
            patch_cache_control(response, private=True, no_store=True)
            patch_vary_headers(response, ["HX-Request", "HX-Request-Type"])
            return response

        return wrapped

    return decorate(view) if view else decorate


def _as_member(
    asked: AnyRequest, role: Role, view: View, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> HttpResponseBase:
    request = cast(Request, asked)
    if _must_enrol(request):
        return see_other(request, reverse("web:totp"))
    request.actor = member(request)
    require(request.actor, role)
    _refuse_nul(request)
    shell.look_first(request)
    return view(request, *args, **kwargs)


def _refuse_nul(request: Request) -> None:
    """PostgreSQL stores NUL in no text, and no page has a use for it."""
    lists = [*request.GET.lists(), *request.POST.lists()]
    texts = [request.path, *(text for name, each in lists for text in (name, *each))]
    if any("\0" in text for text in texts):
        raise BadRequest("a request must not contain NUL characters")


def member(request: AnyRequest) -> Actor:
    """Whom the logged-in user is in the workspace that the session shows. Forbidden: in none."""
    user = cast(Request, request).user
    actor = actor_of_user(
        user, request.session.get(WORKSPACE), request_id=request.META["REQUEST_ID"]
    )
    if actor is None and request.session.pop(WORKSPACE, None):
        actor = actor_of_user(user, request_id=request.META["REQUEST_ID"])
    if actor is None:
        raise Forbidden(
            "you are not a member of a workspace",
            hint="Ask a workspace admin to add you, then reload this page.",
        )
    return actor


def _must_enrol(request: Request) -> bool:
    """Whether the deployment asks for a second factor that this session has not seen."""
    if settings.LOGIN_TOTP != "required" or request.session.get(CONFIRMED):
        return False
    return request.path != reverse("web:totp")


def _to_login(request: AnyRequest) -> HttpResponse:
    """To the login page and back. htmx would follow a redirect into the middle of the page."""
    if request.htmx:
        back = request.htmx.current_url_abs_path or "/"
        response = HttpResponse()
        response["HX-Redirect"] = f"{resolve_url('web:login')}?{urlencode({'next': back})}"
        return response
    return redirect_to_login(request.get_full_path())
