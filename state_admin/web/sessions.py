"""The user's own sessions: the list, and ending one or all of them."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.dateparse import parse_datetime

from state_admin.models import UserSession
from state_admin.models.access import digest
from state_admin.models.sessions import PENDING_USER, unexpired
from state_admin.services.errors import NotFound
from state_admin.services.members import end_own_sessions

from .actors import FORM, POST, page
from .confirm import Confirm, ask, reason_of
from .htmx import Request, render, toast
from .lists import list_paths

# The keys that a sign-in stores in its session.
SINCE, AGENT, ADDRESS, METHOD = "since", "agent", "address", "method"


class SessionRow(msgspec.Struct):
    """A session. `id` is the beginning of the digest of its key."""

    id: str
    agent: str
    address: str
    method: str
    since: datetime | None
    ends: datetime
    here: bool


def _rows(request: Request) -> list[tuple[SessionRow, UserSession]]:
    mine = UserSession.objects.filter(unexpired(), user=request.user)
    own = digest(request.session.session_key or "")
    rows = []
    for session in mine.order_by("-expire_date")[:100]:
        noted = session.get_decoded()
        if PENDING_USER in noted:
            continue  # nobody is signed in yet
        row = SessionRow(
            id=session.session_key[:20],
            agent=str(noted.get(AGENT, "")),
            address=str(noted.get(ADDRESS, "")),
            method=str(noted.get(METHOD, "")),
            since=parse_datetime(str(noted.get(SINCE, ""))),
            ends=session.ends_at,
            here=session.session_key == own,
        )
        rows.append((row, session))
    return rows


@page()
def session_list(request: Request) -> HttpResponse:
    context = {"rows": [row for row, _ in _rows(request)], "json_url": reverse("web:sessions-json")}
    return render(request, "account/sessions.html", context)


def _items(request: Request, _: str) -> tuple[list[SessionRow], str]:
    return [row for row, _ in _rows(request)], ""


@page(methods=POST)
def end_session(request: Request, session_id: str) -> HttpResponse:
    """End another session of the user; the current one ends by signing out."""
    session = next((s for row, s in _rows(request) if row.id == session_id), None)
    if session is None:
        raise NotFound("session not found")
    end_own_sessions(actor=request.actor, key_digest=session.session_key)
    toast(request, "Session ended")
    return redirect("web:sessions")


@page(methods=FORM)
def end_everywhere(request: Request) -> HttpResponse:
    """Sign out in every browser, including this one."""
    if request.method == "POST":
        end_own_sessions(actor=request.actor, reason=reason_of(request))
        request.session.flush()
        return redirect("web:login")
    confirm = Confirm(
        title="End all your sessions?",
        verb="End all sessions",
        back=reverse("web:sessions"),
        lines=[
            "All your browsers are signed out, also this one, and unused login links stop working.",
            "You can sign in again with your password."
            if request.user.has_usable_password()
            else "You have no password: to sign in again, you need single sign-on or a new login link.",
        ],
    )
    return ask(request, confirm)


urlpatterns = [
    path("sessions", session_list, name="sessions"),
    *list_paths("sessions", "sessions", _items),
    path("sessions/end", end_everywhere, name="sessions-end"),
    path("sessions/<slug:session_id>/end", end_session, name="session-end"),
]
