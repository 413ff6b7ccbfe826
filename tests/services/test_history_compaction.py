"""Old versions of entries: which ones the limits of a namespace remove, and which ones a pin
keeps."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from state_admin.models import (
    AuditRow,
    Change,
    Compaction,
    EntryRevision,
    retention_sql,
)
from state_admin.services import (
    retention,
)
from state_admin.services.entry_views import read_past
from state_admin.services.errors import (
    Gone,
    NotFound,
    NotRegistered,
)
from tests.builders import (
    Person,
    make_namespace,
    put,
)
from tests.services.racing import interleave
from tests.services.test_entries import operations_of


def compact_histories() -> int:
    """Run the sweep and its worker; returns the removed versions."""
    retention.queue_histories()
    jobs = Compaction.objects.filter(kind="history", status="queued")
    gone = 0
    for job in jobs:
        assert retention.run_retention(job.public_id) == "done"
        gone += Compaction.objects.get(pk=job.pk).rows_removed
    return gone


def test_history__keep_last__keeps_the_newest_of_every_key(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=2)
    make_namespace(alice.actor, "free")
    for number in range(5):
        put(alice.actor, "notes", "a", number)
        put(alice.actor, "free", "f", number)
    put(alice.actor, "notes", "b", 1)
    EntryRevision.objects.filter(entry__key="a", version=1).update(pinned=True)
    assert compact_histories() == 2
    assert retention.queue_histories() == {"namespaces": 0}
    assert [v for v, _ in operations_of("a")] == [1, 4, 5]
    assert [v for v, _ in operations_of("b")] == [1]
    assert [v for v, _ in operations_of("f")] == [1, 2, 3, 4, 5]
    job = Compaction.objects.get()
    assert (job.rows_before, job.rows_removed, job.rows_after) == (6, 2, 4)
    assert (job.bytes_before, job.bytes_after) == (6, 4)
    assert (job.trigger, job.requested_by) == ("schedule", "retention")
    trail = AuditRow.objects.get(action="compaction.remove")
    assert (trail.namespace, trail.detail["rows"]) == ("notes", 2)


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ({"history_keep_seconds": 3600}, [4, 5]),
        ({"history_keep_seconds": 3600, "history_keep_last": 1}, [4, 5]),
        ({"history_keep_seconds": 3600, "history_keep_last": 3}, [3, 4, 5]),
        ({"history_keep_seconds": 1}, [5]),
    ],
)
def test_history__keep_seconds__keeps_recent_versions_and_the_newest(
    alice: Person, policy: dict[str, int], kept: list[int]
) -> None:
    make_namespace(alice.actor, **policy)
    for number in range(5):
        put(alice.actor, "notes", "a", number)
    for version, hours in ((1, 9), (2, 5), (3, 2)):
        EntryRevision.objects.filter(version=version).update(at=Now() - timedelta(hours=hours))
    EntryRevision.objects.filter(version__gt=3).update(at=Now() - timedelta(seconds=30))
    compact_histories()
    assert [v for v, _ in operations_of("a")] == kept


def test_history__many_versions_of_many_keys__are_removed_in_batches(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    make_namespace(alice.actor, history_keep_last=2)
    for key in "abcde":
        for number in range(6):
            put(alice.actor, "notes", key, number)
    weight = retention.preview_history(actor=alice.actor, namespace="notes")
    assert weight == (30, 20, 30, 20)
    job = retention.request_history(actor=alice.actor, namespace="notes", reason="tidy")
    assert retention.run_retention(job.public_id) == "done"
    for key in "abcde":
        assert [version for version, _ in operations_of(key)] == [5, 6]
    assert AuditRow.objects.filter(action="compaction.remove", reason="tidy").count() == 10
    assert retention.preview_history(actor=alice.actor, namespace="notes").rows_removed == 0


def test_history__limits_removed_while_a_job_runs__removes_no_more_versions(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 1)
    make_namespace(alice.actor, history_keep_last=1)
    for number in range(4):
        put(alice.actor, "notes", "k", number)
    remove_versions = retention_sql.remove_versions

    def remove_before_the_change(*args: Any, **options: Any) -> Any:
        removed = remove_versions(*args, **options)
        make_namespace(alice.actor)
        return removed

    monkeypatch.setattr(retention_sql, "remove_versions", remove_before_the_change)
    job = retention.request_history(actor=alice.actor, namespace="notes")
    assert retention.run_retention(job.public_id) == "done"
    assert len(operations_of("k")) == 3


@pytest.mark.django_db(transaction=True)
def test_history__limits_removed_just_before_a_batch__it_removes_nothing(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    for number in range(4):
        put(alice.actor, "notes", "k", number)
    job = retention.request_history(actor=alice.actor, namespace="notes")
    changed = threading.Event()

    def keep_all() -> None:
        make_namespace(alice.actor)
        changed.set()

    remove_versions = retention_sql.remove_versions

    def remove(*args: Any, **options: Any) -> Any:
        assert not changed.is_set(), "the limits are those of the namespace"
        return remove_versions(*args, **options)

    monkeypatch.setattr(retention_sql, "remove_versions", remove)
    with interleave(monkeypatch, retention_sql, "remove_versions", keep_all):
        retention.run_retention(job.public_id)


def test_history__no_limits__keeps_all_and_reports_it(alice: Person) -> None:
    make_namespace(alice.actor)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    assert retention.preview_history(actor=alice.actor, namespace="notes").rows_removed == 0
    job = retention.request_history(actor=alice.actor, namespace="notes")
    assert retention.run_retention(job.public_id) == "done"
    assert Compaction.objects.get().detail == "the namespace keeps every version"
    assert len(operations_of("k")) == 3


def test_history__read_at_a_compacted_time__is_gone(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    for version in (1, 2):
        EntryRevision.objects.filter(version=version).update(
            at=Now() - timedelta(hours=9 - version)
        )
    moment = EntryRevision.objects.get(version=2).at
    compact_histories()
    for then in ({"at_version": 2}, {"at": moment}):
        with pytest.raises(Gone, match="was removed by history compaction"):
            read_past(actor=alice.actor, namespace="notes", key="k", **then)
    assert alice.api("GET", "/state/notes/k?at_version=2").status_code == 410


def test_pin__version__is_kept_until_it_is_unpinned(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    answer = alice.api("PATCH", "/history/notes/k", {"version": 1, "pinned": True})
    assert (answer.status_code, answer.json()["pinned"]) == (200, True)
    assert compact_histories() == 1
    assert alice.api("GET", "/state/notes/k?at_version=1").json()["value"] == 0
    trail = AuditRow.objects.get(action="entry.pin")
    assert (trail.key, trail.version, trail.detail) == ("k", 1, {"pinned": True})
    assert Change.objects.get(kind="entry.pin").version == 1
    alice.api("PATCH", "/history/notes/k", {"version": 1, "pinned": False})
    assert compact_histories() == 1


def test_pin__missing_version__reports_why(alice: Person) -> None:
    make_namespace(alice.actor, history_keep_last=1)
    for number in range(3):
        put(alice.actor, "notes", "k", number)
    compact_histories()
    pin: Any = {"actor": alice.actor, "namespace": "notes", "pinned": True}
    with pytest.raises(Gone):
        retention.pin_version(**pin, key="k", version=1)
    for key, version in (("k", 4), ("none", 1)):
        with pytest.raises(NotFound, match=f"no version {version} of notes/{key}"):
            retention.pin_version(**pin, key=key, version=version)
    with pytest.raises(NotRegistered):
        retention.pin_version(**pin | {"namespace": "else"}, key="k", version=3)
