"""GET /changes: its filters."""

from __future__ import annotations

import pytest

from tests.builders import Person, make_namespace, make_thread, put


def kinds(person: Person, query: str) -> list[str]:
    answer = person.api("GET", f"/changes?{query}")
    assert answer.status_code == 200, answer.content
    return [item["kind"] for item in answer.json()["items"]]


@pytest.mark.django_db(transaction=True)
def test_changes__kind__is_a_glob_as_in_webhooks(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    make_thread(alice.actor, "t1")
    assert kinds(alice, "namespace=notes") == ["namespace.register", "entry.put"]
    assert kinds(alice, "kind=entry.put") == kinds(alice, "kind=entry.*") == ["entry.put"]
    assert kinds(alice, "kind=thread.*") == kinds(alice, "kind=*.create&thread_id=t1")
    assert kinds(alice, "kind=*&namespace=notes") == ["namespace.register", "entry.put"]
    assert kinds(alice, "kind=ticket.*") == []
    assert kinds(alice, "kind=") == kinds(alice, "")


@pytest.mark.parametrize("glob", ["entry.%01", "%C3%A9", "a" * 129])
def test_changes__kind_that_no_kind_looks_like__is_400_by_the_document(
    glob: str, alice: Person
) -> None:
    answer = alice.api("GET", f"/changes?kind={glob}")
    assert answer.status_code == 400
    assert answer.json()["detail"] == "kind must be a string that matches ^[ -~]{0,128}$"


@pytest.mark.parametrize("path", ["/changes", "/changes/stream"])
@pytest.mark.parametrize("glob", ["no.such.kind", "entry", "entry-put", "entries.*", "ENTRY.PUT"])
def test_changes__kind_that_matches_none__is_400_that_lists_valid_kinds(
    path: str, glob: str, alice: Person
) -> None:
    answer = alice.api("GET", f"{path}?kind={glob}")
    assert answer.status_code == 400
    assert answer.json()["detail"] == f"kind matches no kind of change: {glob}"
    assert answer.json()["parameter"] == "kind"
    assert "compaction, compaction_policy, config" in answer.json()["hint"]
