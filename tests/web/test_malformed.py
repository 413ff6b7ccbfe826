"""Requests that no browser sends from these pages: an error response, never a 500."""

from __future__ import annotations

import pytest
from django.test import Client

from state_admin.models import Thread
from tests.builders import Person, make_namespace, make_run, make_thread

NUL, HUGE = "a\0b", str(10**30)


@pytest.fixture
def client(admin: Client) -> Client:
    admin.raise_request_exception = False
    return admin


@pytest.mark.parametrize(
    "path",
    [
        "/namespaces/a%00",
        "/compactions/a%00",
        "/webhooks/a%00",
        "/mailbox/a%00/payload",
        "/plugins/a%00/uninstall",
        "/namespaces/+new?name=%00",
        "/run/knowledge/r1?namespace=%00",
        "/state?%00=1",
    ],
)
def test_page__nul__is_400(path: str, client: Client) -> None:
    response = client.get(path)
    assert response.status_code == 400
    assert b"NUL" in response.content


@pytest.mark.parametrize("action", ["/run/cancel/r1", "/thread/fork/t1?at=0", "/workspaces"])
def test_post__nul__is_400_and_writes_nothing(action: str, client: Client, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    response = client.post(action, {"reason": NUL, "workspace": NUL, "id": "t2"})
    assert response.status_code == 400
    assert Thread.objects.count() == 1


@pytest.mark.parametrize("expected", ["²", "abc", "-1", HUGE])
def test_restore__malformed_expected_revision__writes_nothing(
    expected: str, client: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    before = Thread.objects.get().revision
    response = client.post("/thread/restore/t1?at=0", {"expected": expected})
    assert response.status_code == 400
    assert Thread.objects.get().revision == before


def test_namespace__history_beyond_an_integer__is_refused(client: Client, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    fields = {"schema": "{}", "default": "{}", "base": 1, "history_keep_seconds": 10**12}
    response = client.post("/namespaces/notes/edit", fields)
    assert response.status_code == 422
    assert b"less than or equal to" in response.content
