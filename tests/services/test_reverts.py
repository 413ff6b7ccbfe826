"""Reverting entries, and finding what the own request wrote. Whole requests: test_revert_jobs.py."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from state_admin.models import AuditRow, Entry, EntryRevision
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import maintenance, reverts
from state_admin.services.errors import Forbidden, Invalid
from tests.builders import Person, make_namespace, put
from tests.services.test_revert_jobs import changed, request

__all__ = ["changed"]


def test_revert__only_deleted_ones__skips_others(changed: Person) -> None:
    written = [WrittenEntry("notes", "a", 3, 3), WrittenEntry("notes", "c", 2, 2)]
    result = reverts.revert_entries(actor=changed.actor, written=written, deleted=True)
    assert [each.key for each in result.done] == ["c"]
    assert [(each.key, each.why) for each in result.skipped] == [("a", "it is not deleted")]


@pytest.mark.parametrize("days", [-1, 1])
def test_revert__clock_of_the_worker_is_wrong__expiry_is_that_of_the_database(
    alice: Person, days: int
) -> None:
    make_namespace(alice.actor)
    for key in ("expired", "live"):
        put(alice.actor, "notes", key, "old", ttl_seconds=3600)
        put(alice.actor, "notes", key, "new")
    past = timezone.now() - timedelta(seconds=1)
    expired = EntryRevision.objects.filter(entry__key="expired")
    expired.update(at=past - timedelta(minutes=1))  # it expired after the request
    expired.filter(version=1).update(expires_at=past)

    with time_machine.travel(timezone.now() + timedelta(days=days)):
        written = [WrittenEntry("notes", key, 2, 2) for key in ("expired", "live")]
        result = reverts.revert_entries(actor=alice.actor, written=written)

    assert [each.key for each in result.done] == ["live"]
    assert [(each.key, each.why) for each in result.skipped] == [
        ("expired", "its previous value has expired")
    ]


def test_revert__created_over_an_expired_entry__deletes_it(alice: Person) -> None:
    make_namespace(alice.actor)
    past = timezone.now() - timedelta(seconds=1)
    for key in ("recorded", "unrecorded"):
        put(alice.actor, "notes", key, "old", ttl_seconds=3600)
    EntryRevision.objects.update(expires_at=past)
    Entry.objects.filter(key="recorded").update(expires_at=past)
    maintenance.expire_entries()  # adds a version `expire`
    Entry.objects.filter(key="unrecorded").update(expires_at=past)
    for key in ("recorded", "unrecorded"):
        put(alice.actor, "notes", key, "new")

    written = [WrittenEntry("notes", "recorded", 3, 3), WrittenEntry("notes", "unrecorded", 2, 2)]
    result = reverts.revert_entries(actor=alice.actor, written=written)

    assert [each.key for each in result.done] == ["recorded", "unrecorded"]
    assert not Entry.objects.live().exists()


def test_revert__without_the_role_or_too_many__is_refused(
    changed: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Forbidden):
        reverts.revert_entries(actor=bob.actor, written=[WrittenEntry("notes", "b", 1, 1)])
    monkeypatch.setattr(reverts, "MOST", 1)
    with pytest.raises(Invalid):
        reverts.revert_entries(
            actor=changed.actor, written=[WrittenEntry("notes", key, 1, 1) for key in "ab"]
        )


def test_revert__of_another_workspace__changes_nothing(changed: Person, mallory: Person) -> None:
    written = [WrittenEntry("notes", "b", 1, 1)]
    result = reverts.revert_entries(actor=mallory.actor, written=written)
    assert (result.done, len(result.skipped)) == ([], 1)
    assert Entry.objects.live().filter(key="b").exists()


def test_newest_audit_row__of_a_request__is_its_own(changed: Person) -> None:
    put(changed.actor, "notes", "z", 1)
    newest = AuditRow.objects.filter(request_id="r").latest("pk").pk
    assert reverts.newest_audit_row(request(changed, "r")) == newest
    assert reverts.newest_audit_row(request(changed, "unknown")) == 0
