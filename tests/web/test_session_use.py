"""Sessions end when nobody has used them for SESSION_IDLE_SECONDS."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from state_admin.models import UserSession
from state_admin.models.sessions import SessionStore
from state_admin.rest.authentication import actor_of_session
from state_admin.services.maintenance import purge_leftovers
from tests.builders import Person
from tests.web.test_threads import page

DAY = timedelta(days=1)
BACKGROUND = {"X-Background": "true"}


def leave_for(time: timedelta) -> None:
    """Let all sessions be unused for so long."""
    UserSession.objects.update(active_at=F("active_at") - time)


def unused_for() -> timedelta:
    return timezone.now() - UserSession.objects.get().active_at


def key_of(client: Client) -> str:
    return client.session.session_key or ""


def test_session__unused_for_too_long__ends_everywhere(admin: Client, alice: Person) -> None:
    key = key_of(admin)
    leave_for(3 * DAY - timedelta(minutes=1))
    assert actor_of_session(key) is not None
    leave_for(timedelta(minutes=2))
    assert actor_of_session(key) is None  # live updates
    response = admin.get("/namespaces?text=x")
    assert (response.status_code, response["Location"]) == (
        302,
        "/login?next=/namespaces%3Ftext%3Dx",
    )
    response = admin.get("/namespaces", headers={"HX-Request": "true"})
    assert response["HX-Redirect"].startswith("/login?next=")
    purge_leftovers()
    assert not UserSession.objects.exists()


def test_session__in_use__does_not_end_and_writes_rarely(admin: Client) -> None:
    for _ in range(5):
        leave_for(2 * DAY)
        assert admin.get("/namespaces").status_code == 200
        assert unused_for() < timedelta(minutes=1)
    leave_for(timedelta(minutes=4))
    admin.get("/namespaces")
    assert unused_for() > timedelta(minutes=4)


@pytest.mark.parametrize("path", ["/live", "/system"])
def test_session__of_a_page_that_only_refreshes_itself__ends(admin: Client, path: str) -> None:
    leave_for(2 * DAY)
    assert admin.get(path, headers=BACKGROUND).status_code == 200
    assert unused_for() > 2 * DAY
    leave_for(DAY)
    assert admin.get(path, headers=BACKGROUND).status_code == 302


def test_session__used_while_another_request_changes_it__keeps_the_change(admin: Client) -> None:
    stale = SessionStore(key_of(admin))
    stale.get("x")
    session = admin.session
    session["workspace"] = "acme"
    session.save()
    leave_for(DAY)
    stale._active_at = timezone.now() - DAY
    stale.note_use()
    assert SessionStore(key_of(admin))["workspace"] == "acme"
    assert unused_for() < timedelta(minutes=1)


def test_session__idle_time_off__ends_only_when_it_expires(admin: Client, settings: Any) -> None:
    settings.SESSION_IDLE = timedelta(0)
    leave_for(13 * DAY)
    purge_leftovers()
    assert admin.get("/namespaces").status_code == 200
    assert unused_for() < timedelta(minutes=1)
    UserSession.objects.update(expire_date=timezone.now())
    assert admin.get("/namespaces").status_code == 302


def test_session__short_idle_time__is_noted_more_often(admin: Client, settings: Any) -> None:
    settings.SESSION_IDLE = timedelta(minutes=10)
    leave_for(timedelta(minutes=2))
    admin.get("/namespaces")
    assert unused_for() < timedelta(minutes=1)
    leave_for(timedelta(minutes=11))
    assert admin.get("/namespaces").status_code == 302


def test_sessions__page__shows_when_an_unused_session_ends(admin: Client) -> None:
    row = admin.get("/sessions.json").json()["items"][0]
    ends = UserSession.objects.get().active_at + 3 * DAY
    assert row["ends"][:16] == ends.isoformat()[:16]
    assert "Expires" in page(admin, "/sessions")
