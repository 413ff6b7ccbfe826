"""Sweeps: idempotent, recorded, one at a time."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.db.models.functions import Now

from state_admin.models import (
    AuditRow,
    Change,
    EntryRevision,
    IdempotencyRecord,
    LoginAttempt,
    LoginLink,
    Sweep,
    UserSession,
)
from state_admin.services import batching, compactions, entries, entry_views, maintenance, users
from state_admin.tasks.sweeps import TASKS
from tests.builders import Person, make_namespace, make_thread, put
from tests.patience import PATIENCE
from tests.services.racing import race
from tests.services.test_entries import let_expire, operations_of


def test_expiry__several_workspaces__each_has_its_own_audit_and_feed(
    alice: Person, mallory: Person
) -> None:
    for person in (alice, mallory):
        make_namespace(person.actor)
        put(person.actor, "notes", "k", 1, ttl_seconds=60)
    let_expire()
    assert maintenance.expire_entries() == {"expired": 2}
    rows = AuditRow.objects.filter(action="entry.expire")
    assert {row.workspace_id for row in rows} == {alice.workspace.pk, mallory.workspace.pk}


@pytest.mark.django_db(transaction=True)
def test_race__two_expiry_sweeps_and_writers__expire_each_once(alice: Person) -> None:
    make_namespace(alice.actor)
    for number in range(30):
        put(alice.actor, "notes", f"k{number}", 1, ttl_seconds=60)
    entries.Entry.objects.update(expires_at=Now() - timedelta(seconds=1))
    writers = [partial(put, alice.actor, "notes", f"k{n}", 2) for n in range(4)]
    race([maintenance.expire_entries] * 4 + writers)
    expired = EntryRevision.objects.filter(operation="expire")
    assert expired.count() == len(set(expired.values_list("entry", flat=True)))
    assert expired.count() >= 26
    for number in range(4):
        view = entry_views.read_entry(actor=alice.actor, namespace="notes", key=f"k{number}")
        assert view.value == "2", "a value written behind the expiry is never swept"


def test_purge__old_rows__are_deleted_after_their_retention_only(alice: Person) -> None:
    make_namespace(alice.actor)
    for number in range(4):
        put(alice.actor, "notes", f"k{number}", 1)
    kept = settings.CHANGE_RETENTION
    Change.objects.filter(key="k0").update(at=Now() - kept - timedelta(days=1))
    Change.objects.filter(key="k1").update(at=Now() - kept + timedelta(minutes=1))
    for scope, hours in (("old", 25), ("young", 23)):
        IdempotencyRecord.objects.create(scope=scope, fingerprint="x")
        IdempotencyRecord.objects.filter(scope=scope).update(
            created_at=Now() - timedelta(hours=hours)
        )
    users.make_login_link(alice.user)
    LoginLink.objects.update(expires_at=Now() - timedelta(days=2))
    users.make_login_link(alice.user)
    for days in (2, 0):
        row = LoginAttempt.objects.create(username="alice", address="192.0.2.1")
        LoginAttempt.objects.filter(pk=row.pk).update(at=Now() - timedelta(days=days))
    alice.browser()
    UserSession.objects.update(expire_date=Now() - timedelta(seconds=1))
    alice.browser()
    report = maintenance.purge_leftovers()
    assert report["changes"] == 1
    assert report["idempotency_records"] == 1
    assert report["login_links"] == 1
    assert report["login_attempts"] == 1
    assert report["sessions"] == 1
    assert LoginAttempt.objects.count() == 1
    assert UserSession.objects.count() == 1
    assert set(maintenance.purge_leftovers().values()) == {0}
    assert IdempotencyRecord.objects.get().scope == "young"
    assert not Change.objects.filter(key="k0").exists()


def test_sweeps__more_than_one_batch__process_all(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BATCH", "PURGE_BATCH"):
        monkeypatch.setattr(maintenance, name, 2)
    make_namespace(alice.actor)
    for number in range(7):
        put(alice.actor, "notes", f"k{number}", 1, ttl_seconds=60)
        IdempotencyRecord.objects.create(scope=str(number), fingerprint="x")
    entries.Entry.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert maintenance.expire_entries() == {"expired": 7}
    changes = Change.objects.update(at=Now() - timedelta(days=365))
    assert changes > 7
    put(alice.actor, "notes", "young", 1)
    IdempotencyRecord.objects.update(created_at=Now() - timedelta(days=2))
    report = maintenance.purge_leftovers()
    assert (report["changes"], report["idempotency_records"]) == (changes, 7)
    assert Change.objects.get().key == "young"


def test_sweeps__out_of_time__continue_next_time(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PURGE_BATCH", 2)
    monkeypatch.setattr(batching, "PATIENCE", 0.0)
    for number in range(5):
        IdempotencyRecord.objects.create(scope=str(number), fingerprint="x")
    IdempotencyRecord.objects.update(created_at=Now() - timedelta(days=2))
    found = [maintenance.purge_leftovers()["idempotency_records"] for _ in range(4)]
    assert found == [2, 2, 1, 0]


# On record -----------------------------------------------------------------------------------


def test_sweep__with_effect__is_recorded(db: None) -> None:
    assert maintenance.run_sweep("x", lambda: {"done": 3}) == {"done": 3}
    assert maintenance.run_sweep("x", lambda: {"done": 0}) == {"done": 0}
    row = Sweep.objects.get(name="x")
    assert (row.runs, row.report, row.last_effect, row.error) == (2, {"done": 0}, {"done": 3}, "")
    assert row.last_effect_at < row.finished_at


def test_sweep__that_fails__is_recorded_and_raises(db: None) -> None:
    def fail() -> Any:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        maintenance.run_sweep("x", fail)
    assert Sweep.objects.get().error == "RuntimeError"
    assert maintenance.run_sweep("x", dict) == {}
    assert Sweep.objects.get().error == ""


def test_sweep__started_within_half_of_its_interval__is_skipped(db: None) -> None:
    """As by messages that waited for a worker, or by a second beat."""
    assert maintenance.run_sweep("x", dict, 60) == {}
    assert maintenance.run_sweep("x", dict, 60) is None
    assert Sweep.objects.get().runs == 1
    Sweep.objects.update(started_at=Now() - timedelta(seconds=31))
    assert maintenance.run_sweep("x", dict, 60) == {}
    # The clock of the database was set back.
    later = Now() + timedelta(hours=1)
    Sweep.objects.update(started_at=later, finished_at=later)
    assert maintenance.run_sweep("x", dict, 60) == {}
    # Its worker was killed.
    Sweep.objects.update(finished_at=Now() - timedelta(seconds=1))
    assert maintenance.run_sweep("x", dict, 60) == {}


@pytest.mark.django_db(transaction=True)
def test_race__two_of_one_sweep__one_ends_at_once(db: None) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> dict[str, int]:
        entered.set()
        assert leave.wait(PATIENCE)
        return {"done": 1}

    def second() -> Any:
        assert entered.wait(PATIENCE)
        try:
            return maintenance.run_sweep("x", dict)
        finally:
            leave.set()

    assert race([partial(maintenance.run_sweep, "x", slow), second]) == [{"done": 1}, None]
    assert Sweep.objects.get().runs == 1
    assert maintenance.run_sweep("x", dict) == {}, "the lock is free again"


# The tasks -----------------------------------------------------------------------------------


def test_schedule__every_sweep__runs_and_is_recorded(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    put(alice.actor, "notes", "k", 1, ttl_seconds=60)
    let_expire()
    for name, task in TASKS.items():
        task()
        if name not in ("webhooks", "settle mailboxes"):  # these check first whether there is work
            assert Sweep.objects.get(name=name).error == ""
    assert operations_of("k")[-1] == (2, "expire")


def test_find_lost_compactions__queued_jobs__notify_as_many_workers(
    alice: Person, sent_notifications: list[tuple[str, ...]]
) -> None:
    for thread_id in ("t1", "t2"):
        make_thread(alice.actor, thread_id)
        compactions.request_compaction(actor=alice.actor, thread_id=thread_id)
    sent_notifications.clear()
    TASKS["find lost compactions"]()
    assert sent_notifications == [(compactions.RUN,)] * 2
