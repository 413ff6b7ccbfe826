"""/reverts: requesting a revert, its state and result, the skipped entries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from state_admin.domain.moments import timestamp
from state_admin.models import Entry, EntryRevision, Revert
from state_admin.services import revert_jobs
from tests.builders import Person, make_namespace, put


@pytest.fixture
def written(alice: Person) -> Person:
    """The request "r" created a, b and c; c was written since then."""
    make_namespace(alice.actor)
    for key in "abc":
        alice.api("PUT", f"/state/notes/{key}", {"value": key}, X_Request_ID="r")
    put(alice.actor, "notes", "c", "mine")
    return alice


def run(answer: Any) -> str:
    assert answer.status_code == 202, answer.content
    job = Revert.objects.get(public_id=answer.json()["id"])
    assert answer["Location"] == f"/api/v1/reverts/{job.public_id}"
    return str(revert_jobs.run_revert(job.pk))


def keys() -> list[str]:
    return sorted(Entry.objects.live().values_list("key", flat=True))


def test_revert__requested__is_performed_and_reported(written: Person) -> None:
    requested = written.api("POST", "/reverts", {"request_id": "r"}, Change_Reason="a mistake")
    first = requested.json()
    assert (first["status"], first["total"], first["reason"]) == ("queued", None, "a mistake")
    assert run(requested) == "done"

    path = f"/reverts/{first['id']}"
    body = written.api("GET", path).json()
    assert {name: body[name] for name in ("request_id", "status", "total", "reverted")} == {
        "request_id": "r", "status": "done", "total": 3, "reverted": 2,
    }  # fmt: skip
    assert (body["skipped"], body["requested_by"]) == (1, "alice's token")
    assert body["finished_at"]
    why = "it was written since then, or its namespace is not registered"
    skipped = written.api("GET", f"{path}/skipped").json()
    assert skipped["items"] == [{"namespace": "notes", "key": "c", "reason": why}]
    assert keys() == ["c"]
    again = written.api("POST", "/reverts", {"request_id": first["id"]})
    assert run(again) == "done"
    assert keys() == ["a", "b", "c"]
    listed = written.api("GET", "/reverts?request_id=r").json()["items"]
    assert [each["id"] for each in listed] == [first["id"]]
    assert len(written.api("GET", "/reverts?status=done").json()["items"]) == 2


def test_revert__dry_run__counts_and_changes_nothing(written: Person) -> None:
    answer = written.api("POST", "/reverts?dry_run=true", {"request_id": "r"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["dry_run"], body["status"]) == (True, "done")
    assert (body["total"], body["reverted"], body["skipped"]) == (3, 2, 1)
    assert keys() == ["a", "b", "c"]
    assert not Revert.objects.exists()


def test_revert__cancelled__ends_once(written: Person) -> None:
    path = written.api("POST", "/reverts", {"request_id": "r"})["Location"].removeprefix("/api/v1")
    assert written.api("POST", f"{path}/cancel").json()["status"] == "cancelled"
    refused = written.api("POST", f"{path}/cancel")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "the revert is already cancelled",
    )
    assert keys() == ["a", "b", "c"]


def test_skipped__many__are_paged_in_order(written: Person) -> None:
    for key in "ab":
        put(written.actor, "notes", key, "mine")
    answer = written.api("POST", "/reverts", {"request_id": "r"})
    run(answer)
    path, found, cursor = f"/reverts/{answer.json()['id']}/skipped?limit=2", [], ""
    while cursor is not None:
        page = written.api("GET", f"{path}&cursor={cursor}" if cursor else path).json()
        found += [each["key"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert found == ["a", "b", "c"]


@pytest.mark.parametrize("body", [{}, {"request_id": ""}, {"request_id": "x" * 65}, {"ids": []}])
def test_revert__malformed__is_refused(body: dict[str, Any], alice: Person) -> None:
    assert alice.api("POST", "/reverts", body).status_code in (400, 422)
    nul = alice.api("POST", "/reverts", {"request_id": "a\0b"})
    assert nul.status_code in (400, 422)
    assert not Revert.objects.exists()


def test_revert__to_a_moment__is_performed_and_reported(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", "old")
    past = Now() - timedelta(hours=1)
    Entry.objects.update(updated_at=past)
    EntryRevision.objects.update(at=past)
    for key in "ab":
        put(alice.actor, "notes", key, "new")
    at = timezone.now() - timedelta(minutes=1)
    body = {"at": at.isoformat(), "namespace": "notes", "scope_kind": "custom"}

    tried = alice.api("POST", "/reverts?dry_run=true", body).json()
    assert (tried["status"], tried["reverted"]) == ("done", 2)
    requested = alice.api("POST", "/reverts", body)
    first = requested.json()
    assert alice.api("POST", "/reverts", body).json()["id"] == first["id"]
    assert run(requested) == "done"
    done = alice.api("GET", f"/reverts/{first['id']}").json()
    assert (done["total"], done["reverted"], done["skipped"]) == (2, 2, 0)
    selection = {"request_id": None, "namespace": "notes", "key": None, "prefix": None}
    assert selection.items() <= done.items()
    assert (done["scope_kind"], done["at"]) == ("custom", timestamp(at))
    assert keys() == ["a"]
    assert run(alice.api("POST", "/reverts", {"request_id": first["id"]})) == "done"
    assert keys() == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"at": "2026-01-01T00:00:00Z"}, 400),
        ({"namespace": "notes"}, 422),
        ({"request_id": "r", "prefix": "x"}, 422),
        ({"request_id": "r", "at": "2026-01-01T00:00:00Z", "prefix": "x"}, 422),
        ({"at": "yesterday", "prefix": "x"}, 422),
        ({"at": "2999-01-01T00:00:00Z", "prefix": "x"}, 422),
        ({"at": "2026-01-01T00:00:00Z", "prefix": "a\0"}, 422),
        ({"at": "2026-01-01T00:00:00Z", "scope_kind": "x"}, 422),
        ({"at": "2026-01-01T00:00:00Z", "namespace": "unknown"}, 404),
    ],
)
def test_revert__to_a_moment_malformed__is_refused(
    body: dict[str, Any], status: int, alice: Person
) -> None:
    assert alice.api("POST", "/reverts", body).status_code == status
    assert not Revert.objects.exists()
