"""Pages of entries in an untracked namespace: they promise no history and offer no Undo."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from tests.builders import Person, make_namespace, put
from tests.web.test_undo import offers_undo

pytestmark = pytest.mark.django_db

FINAL = "The namespace cp is untracked: the entry cannot be restored."


@pytest.fixture(autouse=True)
def entries(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    make_namespace(alice.actor, "cp", tracked=False)
    for key in ("a", "b"):
        put(alice.actor, "cp", key, 1)
        put(alice.actor, "notes", key, 1)


def test_delete__untracked__is_final(admin: Client) -> None:
    question = html.unescape(admin.get("/entry/delete/cp/a").content.decode())
    assert FINAL in question
    assert "The history is kept" not in question

    admin.post("/entry/delete/cp/a", {"expected_version": 1})
    assert not offers_undo(admin, "/state")
    admin.post("/entry/delete/notes/a", {"expected_version": 1})
    assert offers_undo(admin, "/state")


def test_edit__untracked__offers_no_undo(admin: Client) -> None:
    for namespace, undoable in (("cp", False), ("notes", True)):
        admin.post(f"/entry/edit/{namespace}/a", {"value": "2", "base": 1})
        assert offers_undo(admin, "/state") == undoable


@pytest.mark.parametrize(
    ("namespaces", "final"),
    [(["cp", "notes"], True), (["cp"], True), (["notes"], False)],
)
def test_bulk_delete__untracked__is_final(
    admin: Client, namespaces: list[str], final: bool
) -> None:
    chosen = [f"1 {namespace}/b" for namespace in namespaces]
    fields = {"action": "delete", "back": "/state", "entry": chosen}
    question = admin.post("/entries/bulk", fields).content.decode()
    assert ("Entries of untracked namespaces cannot be restored (cp)." in question) == final
    assert ("You can undo this" in question) != final

    admin.post("/entries/bulk", {**fields, "confirmed": "yes", "total": len(chosen)})
    assert offers_undo(admin, "/state") == ("notes" in namespaces)


@pytest.mark.parametrize("query", ["at_version=1", "at=2020-01-01T00:00:00Z"])
def test_api__past_of_an_untracked_entry__is_gone(
    alice: Person, client: Client, query: str
) -> None:
    headers = {"authorization": f"Bearer {alice.token}"}

    response = client.get(f"/api/v1/state/cp/a?{query}", headers=headers)

    assert response.status_code == 410
    assert response.json()["detail"] == "the namespace cp is untracked and has no history"
