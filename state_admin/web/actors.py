"""`@page`: requires a signed-in user, and sets `request.actor`, the actor for calls of services."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from project.log_context import bind_actor
from project.postgres.replication import UnconfirmedCommit
from state_admin.domain import isolation
from state_admin.domain.access import Actor, Role
from state_admin.models import freezing_sql
from state_admin.models.sessions import SessionStore
from state_admin.rest import replica_reads
from state_admin.services.actors import actor_of_user, raise_for_outsider, require
from state_admin.services.errors import BadRequest, Conflict, Forbidden, Problem, Unavailable
from state_admin.services.move_problems import WorkspaceFrozen

from . import errors, shell
from .htmx import AnyRequest, Request, page_workspace, see_other, wants_part

View = Callable[..., HttpResponseBase]

# The methods of a page that shows something, of one that shows a form and takes it, of an action.
READ = ("GET", "HEAD")
FORM = ("GET", "POST")
READ_AND_POST = (*READ, "POST")
POST = ("POST",)
ANY = ()
WORKSPACE = "workspace"  # session key of the chosen workspace's slug
# session key: set if the user signed in with a second factor or a provider that vouches for one
CONFIRMED = "confirmed"


def page(
    *,
    methods: Sequence[str] = READ,
    role: Role = Role.VIEWER,
    replica: bool = False,
    any_workspace: bool = False,
) -> Callable[[View], View]:
    """Decorator of a page for members with `role` or a higher one: refuses other methods, redirects
    visitors to the login, then sets `request.actor`. `replica`: a read replica may answer
    (services/replicas.py). `any_workspace`: takes requests of tabs that show another workspace.

    Problems that services raise become responses here (errors.answer) and nowhere else.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            any_request = cast(AnyRequest, request)
            response: HttpResponseBase
            try:
                if any_request.user.is_authenticated:
                    respond = functools.partial(view, any_request, *args, **kwargs)
                    response = _as_member(
                        any_request, role, respond, replica=replica, any_workspace=any_workspace
                    )
                else:
                    response = _to_login(any_request)
            except Problem as problem:
                response = errors.answer(request, problem)
            except isolation.Busy as busy:
                response = errors.answer(request, Unavailable(str(busy)))
            except (OperationalError, InterfaceError) as error:
                response = errors.answer(request, _unavailable(error))
            # A page shows current state and is for this user only.
            patch_cache_control(response, private=True, no_store=True)
            patch_vary_headers(response, ["HX-Request", "HX-Request-Type"])
            return response

        return require_http_methods(methods)(wrapped) if methods else wrapped

    return decorate


def _unavailable(error: Exception) -> Unavailable:
    if freezing_sql.is_refusal(error):
        return WorkspaceFrozen()
    if isinstance(error.__cause__, UnconfirmedCommit):
        return Unavailable(
            "the change is stored, but no standby server has confirmed it in time",
            hint="A failover may lose it. Look whether it is there before you repeat it.",
        )
    return Unavailable("the database is not available")


def _as_member(
    any_request: AnyRequest, role: Role, respond: View, *, replica: bool, any_workspace: bool
) -> HttpResponseBase:
    request = cast(Request, any_request)
    if _must_enrol(request):
        return see_other(request, reverse("web:totp"))
    request.actor = member(request)
    # Set by the scripts of a page for requests that nobody's action causes.
    if "X-Background" not in request.headers:
        cast(SessionStore, request.session).note_use()
    if not any_workspace:
        _refuse_other_workspace(request)
    require(request.actor, role)
    _refuse_nul(request)

    def work() -> HttpResponseBase:
        shell.read_counts_first(request)
        response = respond()
        if isinstance(response, SimpleTemplateResponse):
            response.render()  # here, so that a failing query becomes an error page
        return response

    # The stream of changes, after which htmx fetches parts, follows the primary.
    return replica_reads.read(request, work) if replica and not wants_part(request) else work()


def _refuse_other_workspace(request: Request) -> None:
    """Raise Conflict if the page of the request shows another workspace: it was switched in another tab,
    and the request was meant for the workspace in the header of its page. Also for parts of pages, which
    would appear under that header.

    Requests that do not say what their page shows are accepted. No page of this version sends one: they
    come from pages that were loaded before an upgrade, and from programs."""
    tab, current = page_workspace(request), request.actor.workspace
    if tab in ("", current):
        return
    nothing = "" if request.method in ("GET", "HEAD") else "Nothing was changed. "
    raise Conflict(
        f"this tab shows the workspace {tab[:64]}, but you have switched to {current}",
        hint=f"{nothing}Reload the page to continue in {current}, or switch back.",
    )


def _refuse_nul(request: Request) -> None:
    """Raise BadRequest if a parameter contains NUL, which PostgreSQL cannot store in text."""
    lists = [*request.GET.lists(), *request.POST.lists()]
    texts = [request.path, *(text for name, each in lists for text in (name, *each))]
    if any("\0" in text for text in texts):
        raise BadRequest("a request must not contain NUL characters")


def member(request: AnyRequest) -> Actor:
    """The actor of the signed-in user in the workspace that the session has chosen. If the user can no
    longer use it, reads continue in another one, and writes are Forbidden: they were meant for that
    workspace. Forbidden also if the user is a member of no workspace."""
    user = cast(Request, request).user
    chosen = request.session.get(WORKSPACE)
    actor = actor_of_user(user, chosen, request_id=request.META["REQUEST_ID"])
    if actor is None and chosen:
        if request.method not in ("GET", "HEAD"):
            raise Forbidden(
                f"you can no longer use the workspace {chosen}",
                hint="Nothing was changed. Reload the page to continue in another workspace.",
            )
        del request.session[WORKSPACE]
        actor = actor_of_user(user, request_id=request.META["REQUEST_ID"])
    if actor is None:
        raise_for_outsider(user)
    bind_actor(actor)
    return actor


def _must_enrol(request: Request) -> bool:
    """Whether the deployment requires a second factor and this session has not used one."""
    if settings.LOGIN_TOTP != "required" or request.session.get(CONFIRMED):
        return False
    return request.path != reverse("web:totp")


def _to_login(request: AnyRequest) -> HttpResponse:
    """A redirect to the login page that returns to this page. For htmx the redirect is in a header:
    it would follow a 302 and swap the login page into the target."""
    if request.htmx:
        back = request.htmx.current_url_abs_path or "/"
        response = HttpResponse()
        response["HX-Redirect"] = f"{resolve_url('web:login')}?{urlencode({'next': back})}"
        return response
    return redirect_to_login(request.get_full_path())
