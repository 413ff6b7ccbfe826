"""Reverting what one request wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from state_admin.models import AuditRow, Entry, EntryRevision
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import bulk, entries, reverts
from state_admin.services.errors import Forbidden, Invalid
from tests.builders import Person, make_namespace, put
from tests.services.test_entries import let_expire


def request(alice: Person, name: str) -> Any:
    return replace(alice.actor, request_id=name)


def state(alice: Person) -> dict[str, Any]:
    rows = Entry.objects.visible_to(alice.actor).live().order_by("key")
    return {row.key: (row.value, row.version) for row in rows}


def revert(alice: Person, name: str, *, by: str = "revert") -> bulk.BulkResult:
    near = AuditRow.objects.filter(request_id=name).latest("pk").pk
    written = reverts.find_written(alice.actor, name, near)
    return reverts.revert_entries(actor=request(alice, by), written=written)


@pytest.fixture
def changed(alice: Person) -> Person:
    """The request "r" changed `a` twice, created `b`, deleted `c` and set the expiry of `d`."""
    make_namespace(alice.actor)
    for key in "acd":
        put(alice.actor, "notes", key, {"old": key}, tags=["kept"], ttl_seconds=7200)
    actor = request(alice, "r")
    put(actor, "notes", "a", "new")
    put(actor, "notes", "a", "newer")
    put(actor, "notes", "b", "new")
    entries.delete_entry(actor=actor, namespace="notes", key="c")
    seen = [bulk.SelectedEntry("notes", "d", 1, None)]
    bulk.change_entries(actor=actor, action="expire", seen=seen)
    return alice


def test_revert__all_kinds_of_writes__restores_value_expiry_and_existence(changed: Person) -> None:
    result = revert(changed, "r")

    assert [(each.key, each.version) for each in result.done] == [
        ("a", 4), ("b", 2), ("c", 3), ("d", 3),
    ]  # fmt: skip
    assert result.skipped == []
    assert state(changed) == {
        "a": ('{"old": "a"}', 4), "c": ('{"old": "c"}', 3), "d": ('{"old": "d"}', 3),
    }  # fmt: skip
    for row in Entry.objects.live():
        assert row.tags == ["kept"]
        assert row.expires_at == EntryRevision.objects.get(entry=row, version=1).expires_at
    revisions = EntryRevision.objects.filter(request_id="revert")
    assert {row.operation for row in revisions} == {"restore"}
    assert {row.reason for row in revisions} == {"reverted"}


def test_revert__of_a_revert__is_the_state_before_it(changed: Person) -> None:
    before = {key: value for key, (value, _) in state(changed).items()}
    revert(changed, "r")
    revert(changed, "revert", by="again")

    assert {key: value for key, (value, _) in state(changed).items()} == before
    assert Entry.objects.get(key="d").expires_at is None


def test_revert__written_since__is_skipped(changed: Person) -> None:
    put(changed.actor, "notes", "a", "mine")

    result = revert(changed, "r")

    assert [each.key for each in result.done] == ["b", "c", "d"]
    assert [(each.key, each.why) for each in result.skipped] == [
        ("a", "it was written since then, or its namespace is not registered")
    ]
    assert state(changed)["a"] == ('"mine"', 4)


def test_revert__not_possible__says_why(alice: Person) -> None:
    make_namespace(alice.actor)
    for key in ("compacted", "expired", "refused", "same", "tagged"):
        put(alice.actor, "notes", key, 1)
    EntryRevision.objects.filter(entry__key="compacted").delete()
    past = timezone.now() - timedelta(seconds=1)
    EntryRevision.objects.filter(entry__key="expired").update(expires_at=past)
    actor = request(alice, "r")
    for key in ("compacted", "expired", "refused"):
        put(actor, "notes", key, "new")
    put(actor, "notes", "same", 1)
    put(actor, "notes", "tagged", 1, tags=["t"])
    make_namespace(alice.actor, schema={"type": ["string", "null"]})

    result = revert(alice, "r")

    assert result.done == []
    reasons = {each.key: each.why for each in result.skipped}
    assert reasons.pop("refused")
    assert reasons == {
        "compacted": "its previous version was removed by history compaction",
        "expired": "its previous value has expired",
        "same": "its value did not change",
        "tagged": "its value did not change",
    }


def test_find__request_id_used_again__stops_at_writes_of_others(alice: Person) -> None:
    make_namespace(alice.actor)
    for name in ("r", "r", "other", "r", "r"):
        put(request(alice, name), "notes", "k", name)
    near = AuditRow.objects.latest("pk").pk

    assert reverts.find_written(alice.actor, "r", near) == [WrittenEntry("notes", "k", 4, 5)]
    revert(alice, "r")
    assert state(alice)["k"][0] == '"other"'


def test_revert__created_and_expired_since__is_skipped(alice: Person) -> None:
    make_namespace(alice.actor)
    put(request(alice, "r"), "notes", "k", 1, ttl_seconds=60)
    let_expire("k")

    result = revert(alice, "r")

    assert result.done == []
    assert [each.why for each in result.skipped] == ["it does not exist any more"]


def test_revert__only_deleted_ones__skips_others(changed: Person) -> None:
    written = [WrittenEntry("notes", "a", 3, 3), WrittenEntry("notes", "c", 2, 2)]
    result = reverts.revert_entries(actor=changed.actor, written=written, deleted=True)
    assert [each.key for each in result.done] == ["c"]
    assert [(each.key, each.why) for each in result.skipped] == [("a", "it is not deleted")]


def test_find__others_requests_and_workspaces__are_not_found(
    changed: Person, mallory: Person
) -> None:
    near = AuditRow.objects.latest("pk").pk
    assert reverts.find_written(changed.actor, "r", near) == [
        WrittenEntry("notes", "a", 2, 3),
        WrittenEntry("notes", "b", 1, 1),
        WrittenEntry("notes", "c", 2, 2),
        WrittenEntry("notes", "d", 2, 2),
    ]
    assert reverts.find_written(changed.actor, "other", near) == []
    assert reverts.find_written(mallory.actor, "r", near) == []
    written = [WrittenEntry("notes", "b", 1, 1)]
    assert reverts.revert_entries(actor=mallory.actor, written=written).done == []
    assert "b" in state(changed)


def test_revert__without_the_role_or_too_many__is_refused(
    changed: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Forbidden):
        reverts.revert_entries(actor=bob.actor, written=[WrittenEntry("notes", "b", 1, 1)])
    monkeypatch.setattr(reverts, "MOST", 1)
    with pytest.raises(Invalid):
        revert(changed, "r")


def test_newest_audit_row__of_a_request__is_its_own(changed: Person) -> None:
    put(changed.actor, "notes", "z", 1)
    newest = AuditRow.objects.filter(request_id="r").latest("pk").pk
    assert reverts.newest_audit_row(request(changed, "r")) == newest
    assert reverts.newest_audit_row(request(changed, "unknown")) == 0
