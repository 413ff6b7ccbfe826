"""`Prefer: return=minimal` (RFC 7240): responses to writes without the value that was sent."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.models import IdempotencyRecord
from tests.builders import Person, make_namespace

MINIMAL = {"Prefer": "return=minimal"}


@pytest.fixture
def notes(alice: Person) -> Person:
    make_namespace(alice.actor)
    return alice


def put(person: Person, value: Any = 1, path: str = "/state/notes/k", **headers: str) -> Any:
    return person.api("PUT", path, {"value": value}, **headers)


def run(person: Person, *operations: dict[str, Any], path: str = "/state/batch") -> Any:
    body = {"operations": [{"namespace": "notes", **each} for each in operations]}
    return person.api("POST", path, body, **MINIMAL)


def test_write__return_minimal__has_only_the_etag(notes: Person) -> None:
    created, written = put(notes, 1, **MINIMAL), put(notes, 2, **MINIMAL)
    for response, version in ((created, 1), (written, 2)):
        assert (response.status_code, response.content) == (204, b"")
        assert response["ETag"] == f'"{version}"'
        assert response["Preference-Applied"] == "return=minimal"
        assert "Content-Type" not in response
    merge = "application/merge-patch+json"
    patched = notes.api("PATCH", "/state/notes/k", {"a": 1}, content_type=merge, **MINIMAL)
    assert (patched.status_code, patched["ETag"]) == (204, '"3"')
    assert notes.api("GET", "/state/notes/k", **MINIMAL).json()["value"] == {"a": 1}


@pytest.mark.parametrize(
    ("prefer", "minimal"),
    [
        ("return=minimal", True),
        ('wait=5, Return = "MINIMAL"; x=1', True),
        ("return=minimal, return=representation", True),
        ("return=representation, return=minimal", False),
        ("return", False),
        ("respond-async", False),
        ("minimal", False),
        ("", False),
    ],
)
def test_write__any_preference__only_minimal_is_applied(
    notes: Person, prefer: str, minimal: bool
) -> None:
    response = put(notes, Prefer=prefer)
    assert response.status_code == (204 if minimal else 201)
    assert ("Preference-Applied" in response) is minimal


def test_write__refused__has_the_problem(notes: Person) -> None:
    refused = put(notes, If_Match='"7"', **MINIMAL)
    assert (refused.status_code, refused.json()["type"]) == (412, "/problems/version-conflict")
    assert "Preference-Applied" not in refused


def test_write__dry_run__shows_the_entry(notes: Person) -> None:
    response = put(notes, 5, "/state/notes/k?dry_run=true", **MINIMAL)
    assert (response.status_code, response.json()["value"]) == (200, 5)
    assert "Preference-Applied" not in response
    tried = run(notes, {"op": "put", "key": "k", "value": 5}, path="/state/batch?dry_run=true")
    assert tried.json()["results"][0]["entry"]["value"] == 5


def test_write__repeated_with_its_key__returns_the_first_response(notes: Person) -> None:
    once = {"Idempotency_Key": "once", **MINIMAL}
    first, second = put(notes, "x" * 5000, **once), put(notes, "x" * 5000, **once)
    assert (second.status_code, second.content, second["ETag"]) == (204, b"", first["ETag"])
    assert second["Idempotent-Replayed"] == "true"
    assert second["Preference-Applied"] == "return=minimal"
    # The value is not stored a second time.
    assert bytes(IdempotencyRecord.objects.get().body) == b""


def test_batch__return_minimal__has_versions_of_writes_and_entries_of_gets(notes: Person) -> None:
    put(notes, 1, "/state/notes/old")
    response = run(
        notes,
        {"op": "put", "key": "a", "value": 1},
        {"op": "put", "key": "old", "value": 2},
        {"op": "patch", "key": "b", "patch": {"c": 1}},
        {"op": "get", "key": "a"},
        {"op": "delete", "key": "a"},
    )
    *writes, read, deleted = response.json()["results"]
    assert writes == [
        {"status": 201, "version": 1},
        {"status": 200, "version": 2},
        {"status": 201, "version": 1},
    ]
    assert read["entry"]["value"] == 1
    assert deleted == {"status": 204, "version": 2}
    assert response["Preference-Applied"] == "return=minimal"


def test_batch__of_gets_only__applies_no_preference(notes: Person) -> None:
    response = run(notes, {"op": "get", "key": "a"})
    assert "entry" in response.json()["results"][0]
    assert "Preference-Applied" not in response
