"""Removing a secret from every version of an entry."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from state_admin.domain import values
from state_admin.models import AuditRow, Change, Entry, EntryRevision, IdempotencyRecord
from state_admin.services import entries, idempotency, indexing, namespaces, redactions, search
from state_admin.services.entries import Precondition
from state_admin.services.errors import Forbidden, Invalid, NotFound, VersionConflict
from tests.builders import Person, make_namespace, make_token, put, raw
from tests.feeding import wait_for_feed
from tests.services.canary import tables_with
from tests.services.racing import interleave, race, split

SECRET = "canary7f3a9e"
TOMBSTONE = {"$redacted": True}


@pytest.fixture
def leaked(alice: Person) -> Person:
    """notes/k with the secret in its versions 1, 2 and 4, and in everything derived from them."""
    make_namespace(alice.actor, schema={"properties": {"token": {"type": "string"}}}, default={})
    for path, body in (
        ("/state/notes/k", {"value": {"token": SECRET, "n": 1}}),
        ("/state/notes/k", {"value": {"token": SECRET, "n": 2}}),
        ("/state/notes/k", {"value": {"n": 3}}),
        ("/state/notes/k", {"value": {"token": f"Bearer {SECRET}", "n": 4}}),
    ):
        kept = {"Idempotency_Key": str(body["value"]["n"])}
        assert alice.api("PUT", path, body, **kept).status_code in (200, 201)
    lost = alice.api(
        "PUT", "/state/notes/k", {"value": {}}, If_Match='"2"', Idempotency_Key="conflict"
    )
    assert lost.status_code == 412
    indexing.index_entries()
    assert tables_with(SECRET) == {
        "entries", "entry_revisions", "idempotency_records", "search_documents"
    }  # fmt: skip
    return alice


def redact(person: Person, *pointers: str, **options: object) -> redactions.Redaction:
    address = {"namespace": "notes", "key": "k", "reason": "leaked", **options}
    return redactions.redact_entry(
        actor=person.actor,
        pointers=pointers,
        **address,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("pointers", [(), ("/token",)])
def test_redact__secret__is_in_no_table(leaked: Person, pointers: tuple[str, ...]) -> None:
    done = redact(leaked, *pointers)
    assert tables_with(SECRET) == set()
    assert (done.version, done.rewritten) == (5, 3 if pointers else 4)
    assert done.withdrawn_answers >= 4
    assert redact(leaked, *pointers).withdrawn_answers == 0, "no response is stored any more"
    assert tables_with("leaked") >= {"audit", "entry_revisions"}
    found = search.search_entries(actor=leaked.actor, text=SECRET)
    assert found.hits == []
    indexing.index_entries()
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", ["read_past", "read_entry", "store_value"])
def test_redact__while_a_version_is_restored__is_in_no_table(
    leaked: Person, monkeypatch: pytest.MonkeyPatch, deleted: bool, name: str
) -> None:
    address: dict[str, Any] = {"actor": leaked.actor, "namespace": "notes", "key": "k"}
    if deleted:
        entries.delete_entry(**address)
    # Invalid: the schema refuses the tombstone.
    meanwhile = interleave(monkeypatch, entries, name, lambda: redact(leaked, "/token"))
    with meanwhile, suppress(Invalid):
        entries.restore_entry(**address, version=1)
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after", [False, True])
def test_redact__while_a_response_is_stored__is_in_no_table(
    leaked: Person, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    def write() -> Any:
        headers = {"If_Match": '"2"', "Idempotency_Key": "meanwhile"}
        return leaked.api("PUT", "/state/notes/k", {"value": {}}, **headers)

    owner, name = (BaseDatabaseWrapper, "commit") if after else (idempotency, "keep")
    with interleave(monkeypatch, owner, name, lambda: redact(leaked)):
        first = write()
    assert (first.status_code, SECRET in first.text) == (412, True)
    assert tables_with(SECRET) == set()
    assert write().status_code == 410


@pytest.mark.django_db(transaction=True)
def test_redact__with_a_key__keeps_its_response(leaked: Person) -> None:
    def request() -> Any:
        body = {"reason": "leaked"}
        return leaked.api("POST", "/redact/notes/k", body, Idempotency_Key="redact")

    first, second = request(), request()
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.content == second.content
    put(leaked.actor, "notes", "k", {"n": 5})
    headers = {"If_Match": '"2"', "Idempotency_Key": "later"}
    later = [leaked.api("PUT", "/state/notes/k", {"value": {}}, **headers) for _ in range(2)]
    assert [answer.status_code for answer in later] == [412, 412]


def test_redact__every_version__is_marked_and_keeps_the_rest(leaked: Person) -> None:
    redact(leaked, "/token")
    told = leaked.api("GET", "/state/notes/k").json()
    assert (told["value"], told["version"]) == ({"token": TOMBSTONE, "n": 4}, 5)
    assert (told["redacted_by"], told["valid"]) == ("alice", False)
    versions = leaked.api("GET", "/history/notes/k?include=value").json()["items"]
    assert [(row["version"], row["operation"], row["value"]) for row in versions] == [
        (5, "redact", {"token": TOMBSTONE, "n": 4}),
        (4, "put", {"token": TOMBSTONE, "n": 4}),
        (3, "put", {"n": 3}),
        (2, "put", {"token": TOMBSTONE, "n": 2}),
        (1, "put", {"token": TOMBSTONE, "n": 1}),
    ]
    assert ["redacted_at" in row for row in versions] == [True, True, False, True, True]
    past = leaked.api("GET", "/state/notes/k?at_version=1").json()
    assert (past["redacted_by"], past["valid"]) == ("alice", False)
    assert "redacted_at" not in leaked.api("GET", "/state/notes/k?at_version=3").json()
    # The same key of another namespace contains what looks like a redacted value.
    make_namespace(leaked.actor, "other")
    leaked.api("PUT", "/state/other/k", {"value": TOMBSTONE})
    assert "redacted_by" not in leaked.api("GET", "/state/other/k").json()
    audit = AuditRow.objects.get(action="entry.redact")
    assert (audit.version, audit.reason, audit.detail) == (
        5,
        "leaked",
        {"pointers": ["/token"], "versions": 3},
    )
    assert Change.objects.filter(kind="entry.redact", key="k", version=5).count() == 1
    # A new value is an ordinary one again.
    put(leaked.actor, "notes", "k", {"token": "new"})
    assert "redacted_at" not in leaked.api("GET", "/state/notes/k").json()


def test_redact__again__changes_nothing(leaked: Person) -> None:
    redact(leaked, "/token")
    before = list(EntryRevision.objects.values()), AuditRow.objects.count()
    assert redact(leaked, "/token").rewritten == 0
    assert (list(EntryRevision.objects.values()), AuditRow.objects.count()) == before


@pytest.mark.django_db(transaction=True)
def test_redact__again__is_found_by_the_remaining_words(leaked: Person) -> None:
    put(leaked.actor, "notes", "k", {"token": SECRET, "kind": "invoice"})
    for rewritten in (4, 0):
        assert redact(leaked, "/token").rewritten == rewritten
        wait_for_feed(leaked.workspace.pk)
        indexing.index_entries()
        found = search.search_entries(actor=leaked.actor, text="invoice")
        assert [hit.entry.key for hit in found.hits] == ["k"]


def test_redact__missing_pointer__redacts_nothing(leaked: Person) -> None:
    before = list(EntryRevision.objects.values())
    with pytest.raises(Invalid) as error:
        redact(leaked, "/token", "/tokn")
    assert error.value.data["errors"] == [
        {"pointer": "/tokn", "message": "no version has a value at this pointer"}
    ]
    assert list(EntryRevision.objects.values()) == before
    malformed = leaked.api("POST", "/redact/notes/k", {"reason": "x", "pointers": ["token"]})
    assert malformed.json()["errors"] == [
        {
            "pointer": "/pointers/0",
            "message": "'pointer' must be a JSON Pointer, such as /a/0 or /a~1b",
        }
    ]
    for options in ({"reason": " "}, {"pointers": []}):
        body = {"reason": "x", **options}
        assert leaked.api("POST", "/redact/notes/k", body).status_code == 422
    assert leaked.api("POST", "/redact/notes/k", {}).status_code == 422


def test_redact__deleted_or_orphan__is_redacted_too(leaked: Person) -> None:
    entries.delete_entry(actor=leaked.actor, namespace="notes", key="k")
    namespaces.unregister_namespace(actor=leaked.actor, name="notes", entries="retain")
    assert redact(leaked).version == 6
    assert tables_with(SECRET) == set()
    entry = Entry.objects.get()
    assert (entry.deleted, entry.value, entry.version) == (True, None, 6)


def test_redact__editor_or_non_member__is_refused(leaked: Person, mallory: Person) -> None:
    from state_admin.domain.access import Role

    with pytest.raises(NotFound):
        redact(mallory)
    with pytest.raises(NotFound):
        redact(leaked, key="nope")
    _, editor = make_token(leaked, Role.EDITOR)
    with pytest.raises(Forbidden):
        redactions.redact_entry(actor=editor, namespace="notes", key="k", reason="x")
    assert tables_with(SECRET) != set()


def test_redact__repeated_request_with_a_redacted_response__reports_it(
    leaked: Person, mallory: Person
) -> None:
    make_namespace(mallory.actor)
    theirs = {"body": {"value": 1}, "Idempotency_Key": "1"}
    first = mallory.api("PUT", "/state/notes/x", **theirs)
    redact(leaked)
    repeat = leaked.api(
        "PUT", "/state/notes/k", {"value": {"token": SECRET, "n": 1}}, Idempotency_Key="1"
    )
    assert (repeat.status_code, repeat.json()["type"]) == (410, "/problems/gone")
    assert Entry.objects.get(key="k").version == 5
    again = mallory.api("PUT", "/state/notes/x", **theirs)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    responses = IdempotencyRecord.objects.exclude(status=0)
    assert responses.filter(workspace=None).count() == 0


def test_redact__stale_write_with_merge__does_not_restore_the_data(leaked: Person) -> None:
    redact(leaked, "/token")
    with pytest.raises(VersionConflict):
        entries.put_entry(
            actor=leaked.actor,
            namespace="notes",
            key="k",
            value=raw({"token": f"Bearer {SECRET}", "n": 4, "mine": 1}),
            precondition=Precondition(4, merge=True),
        )
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
def test_redact__concurrent_patches_and_indexing__do_not_restore_the_data(leaked: Person) -> None:
    def patch(number: int) -> object:
        return entries.patch_entry(
            actor=leaked.actor,
            namespace="notes",
            key="k",
            kind="merge",
            operations={"extra": number},
        )

    make_namespace(leaked.actor)
    _, lost = split(
        race(
            [
                lambda: patch(1),
                lambda: redact(leaked, "/token"),
                lambda: patch(2),
                indexing.index_entries,
            ]
        )
    )
    assert not lost
    indexing.index_entries()
    assert tables_with(SECRET) == set()
    assert values.load(Entry.objects.get().value or "")["extra"] in (1, 2)
