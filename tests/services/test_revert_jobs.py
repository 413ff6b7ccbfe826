"""Reverts as jobs: what they restore and skip, the search, dying workers and concurrent writers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from state_admin.domain.access import Actor
from state_admin.domain.values import Raw
from state_admin.models import (
    AuditRow,
    Entry,
    EntryRevision,
    Revert,
    RevertEntry,
    Workspace,
)
from state_admin.services import bulk, entries, maintenance, quotas, revert_jobs
from state_admin.services.erasures import erase
from state_admin.services.errors import Conflict, Forbidden, Invalid, NotFound
from state_admin.tasks import reverts as task
from tests.builders import Person, make_namespace, put
from tests.services.racing import race
from tests.services.test_entries import let_expire


def request(alice: Person, name: str) -> Actor:
    return replace(alice.actor, request_id=name)


def state(alice: Person) -> dict[str, Any]:
    rows = Entry.objects.visible_to(alice.actor).live().order_by("key")
    return {row.key: row.value for row in rows}


def revert(alice: Person, name: str, **options: Any) -> Revert:
    """A revert by a worker, to its end."""
    job = revert_jobs.request_revert(actor=alice.actor, request_id=name, **options)
    while revert_jobs.run_revert(job.pk) == "queued":
        pass
    job.refresh_from_db()
    return job


def reasons(job: Revert) -> dict[str, str]:
    return dict(RevertEntry.objects.filter(revert=job).skipped().values_list("key", "why"))


def counts(job: Revert) -> tuple[str, int | None, int, int]:
    return job.status, job.total, job.reverted, job.skipped


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


def write_many(alice: Person, count: int, name: str = "r") -> None:
    """Entries k0 to k{count - 1} with the value 1, to which the request gives the value 2."""
    make_namespace(alice.actor)
    for start in range(0, count, 500):
        keys = [f"k{number}" for number in range(start, min(count, start + 500))]
        for actor, value in ((alice.actor, "1"), (request(alice, name), "2")):
            puts = [("notes", key, Raw(value, int(value))) for key in keys]
            entries.put_entries(actor=actor, puts=puts)


# What is reverted and skipped --------------------------------------------------------------------


def test_revert__all_kinds_of_writes__restores_value_expiry_and_existence(changed: Person) -> None:
    job = revert(changed, "r", reason="a mistake")

    assert counts(job) == ("done", 4, 4, 0)
    assert state(changed) == {"a": '{"old": "a"}', "c": '{"old": "c"}', "d": '{"old": "d"}'}
    for row in Entry.objects.live():
        assert row.tags == ["kept"]
        assert row.expires_at == EntryRevision.objects.get(entry=row, version=1).expires_at
    revisions = EntryRevision.objects.filter(request_id=job.public_id)
    assert {(row.operation, row.reason, row.actor_name) for row in revisions} == {
        ("restore", "a mistake", "alice")
    }
    assert revisions.count() == 4
    assert not RevertEntry.objects.exists()
    trail = AuditRow.objects.filter(key="r").order_by("pk")
    assert [(row.action, row.request_id == job.public_id) for row in trail] == [
        ("revert.request", False), ("revert.apply", True), ("revert.finish", True),
    ]  # fmt: skip
    assert trail[1].detail == {"entries": 4}


def test_revert__of_a_revert__is_the_state_before_it(changed: Person) -> None:
    before = state(changed)
    first = revert(changed, "r")
    again = revert(changed, first.public_id)

    assert counts(again) == ("done", 4, 4, 0)
    assert state(changed) == before
    assert Entry.objects.get(key="d").expires_at is None
    third = revert(changed, again.public_id)
    assert counts(third) == ("done", 4, 4, 0)
    assert state(changed)["a"] == '{"old": "a"}'


@pytest.mark.parametrize("first", ["value", "tag"])
def test_revert__tag_and_something_else__is_skipped(
    alice: Person, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", "old")
    actor = request(alice, "r")
    if first == "value":
        put(actor, "notes", "a", "new")
    else:
        seen = [bulk.SelectedEntry("notes", "a", 1)]
        bulk.change_entries(actor=actor, action="tag", seen=seen, tag="one")
    seen = [bulk.SelectedEntry("notes", "a", 2)]
    bulk.change_entries(actor=actor, action="tag", seen=seen, tag="two")
    for span in (revert_jobs.SPAN, 1):  # found in one step of the search, and in several
        monkeypatch.setattr(revert_jobs, "SPAN", span)
        job = revert(alice, "r")
        assert counts(job) == ("done", 1, 0, 1)
        assert "several tags" in reasons(job)["a"]


def test_revert__tags__are_removed_and_added_again(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", 1, tags=["x"])
    put(alice.actor, "notes", "b", 1)
    seen = [bulk.SelectedEntry("notes", key, 1) for key in "ab"]
    bulk.change_entries(actor=request(alice, "t"), action="tag", seen=seen, tag="vip")
    bulk.change_entries(
        actor=request(alice, "u"),
        action="untag",
        seen=[bulk.SelectedEntry("notes", "a", 2)],
        tag="x",
    )

    def tags() -> dict[str, list[str]]:
        return {row.key: row.tags for row in Entry.objects.all()}

    untagged = revert(alice, "u")
    assert tags() == {"a": ["vip", "x"], "b": ["vip"]}
    assert counts(revert(alice, untagged.public_id)) == ("done", 1, 1, 0)
    assert tags() == {"a": ["vip"], "b": ["vip"]}
    job = revert(alice, "t")
    assert counts(job) == ("done", 2, 1, 1)
    assert reasons(job) == {"a": "alice wrote version 5 in the meantime"}
    assert tags() == {"a": ["vip"], "b": []}


def test_revert__written_since__is_skipped_and_listed(changed: Person) -> None:
    put(changed.actor, "notes", "a", "mine")

    job = revert(changed, "r")

    assert counts(job) == ("done", 4, 3, 1)
    assert reasons(job) == {"a": "it was written since then, or its namespace is not registered"}
    assert state(changed)["a"] == '"mine"'


def test_revert__not_possible__says_why(alice: Person) -> None:
    make_namespace(alice.actor)
    for key in ("compacted", "expired", "refused", "same"):
        put(alice.actor, "notes", key, 1)
    EntryRevision.objects.filter(entry__key="compacted").delete()
    actor = request(alice, "r")
    for key in ("compacted", "expired", "refused"):
        put(actor, "notes", key, "new")
    put(actor, "notes", "same", 1)
    past = timezone.now() - timedelta(seconds=1)
    expired = EntryRevision.objects.filter(entry__key="expired")
    expired.update(at=past - timedelta(minutes=1))  # it expired after the request
    expired.filter(version=1).update(expires_at=past)
    make_namespace(alice.actor, schema={"type": ["string", "null"]})

    job = revert(alice, "r")

    assert counts(job) == ("done", 4, 0, 4)
    found = reasons(job)
    assert found.pop("refused")
    assert found == {
        "compacted": "its previous version was removed by history compaction",
        "expired": "its previous value has expired",
        "same": "its value did not change",
    }


def test_revert__version_between_two_writes_removed__is_skipped(alice: Person) -> None:
    make_namespace(alice.actor)
    for name in ("first", "r", "other", "r"):
        put(request(alice, name), "notes", "k", name)
    EntryRevision.objects.filter(request_id="other").delete()

    job = revert(alice, "r")

    assert reasons(job) == {"k": "its previous version was removed by history compaction"}
    assert state(alice)["k"] == '"r"'


def test_revert__request_id_used_again__stops_at_writes_of_others(alice: Person) -> None:
    make_namespace(alice.actor)
    for name in ("r", "r", "other", "r", "r"):
        put(request(alice, name), "notes", "k", name)

    assert counts(revert(alice, "r")) == ("done", 1, 1, 0)
    assert state(alice)["k"] == '"other"'


def test_revert__created_and_expired_since__is_skipped(alice: Person) -> None:
    make_namespace(alice.actor)
    put(request(alice, "r"), "notes", "k", 1, ttl_seconds=60)
    let_expire("k")

    assert reasons(revert(alice, "r")) == {"k": "it does not exist any more"}


def test_revert__nothing_found__fails_with_the_reason(changed: Person, mallory: Person) -> None:
    for person, name in ((changed, "unknown"), (mallory, "r")):
        job = revert(person, name)
        assert counts(job) == ("failed", 0, 0, 0)
        assert job.detail == "the audit log contains no changes to entries by this request"
    assert "b" in state(changed)


def test_revert__above_the_quota__fails_and_keeps_what_it_did(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    make_namespace(alice.actor)
    for key in "abcd":
        put(alice.actor, "notes", key, 1)
    for key in "abcd":
        entries.delete_entry(actor=request(alice, "r"), namespace="notes", key=key)
    quotas.set_quota(actor=alice.actor, entries=3, bytes=None, threads=None)
    job = revert(alice, "r")
    assert (job.status, job.reverted) == ("failed", 2)
    assert job.detail == "quota exceeded: entries"
    assert sorted(state(alice)) == ["a", "b"]
    assert not RevertEntry.objects.exists()


# Any size ----------------------------------------------------------------------------------------


def test_revert__more_entries_than_a_batch__are_reverted_and_the_revert_is_undone(
    alice: Person,
) -> None:
    write_many(alice, 1_200)
    put(alice.actor, "notes", "k7", 7)

    job = revert(alice, "r")
    assert counts(job) == ("done", 1_200, 1_199, 1)
    assert list(reasons(job)) == ["k7"]
    assert Counter(state(alice).values()) == {"1": 1_199, "7": 1}
    again = revert(alice, job.public_id)
    assert counts(again) == ("done", 1_199, 1_199, 0)
    assert Counter(state(alice).values()) == {"2": 1_199, "7": 1}


def test_search__rows_on_both_sides_and_of_others__finds_all_of_the_request(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 3)
    write_many(alice, 10)
    middle = AuditRow.objects.filter(request_id="r").order_by("pk")[4].pk
    for number in range(2):
        put(alice.actor, "notes", f"other{number}", 1)

    job = revert_jobs.start_revert(actor=alice.actor, request_id="r", near=middle)
    assert counts(job) == ("done", 10, 10, 0)
    assert revert_jobs.preview_revert(actor=alice.actor, request_id="r", near=middle) == (
        [("notes", f"k{number}") for number in (2, 3, 4, 5, 6, 7)],
        True,
    )


def test_search__far_from_the_rest__ends_but_a_revert_is_found_completely(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 5)
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    make_namespace(alice.actor)
    put(request(alice, "r"), "notes", "far", 1)
    for number in range(12):
        put(alice.actor, "notes", f"other{number}", 1)
    for number in range(4):
        put(request(alice, "r"), "notes", f"near{number}", 1)

    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")
    assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"
    while not Revert.objects.filter(reverted__gt=0):
        revert_jobs.run_revert(job.pk, seconds=0)
    for number in range(12):  # between its two batches
        put(alice.actor, "notes", f"other{number}", 2)
    while revert_jobs.run_revert(job.pk, seconds=0) == "queued":
        pass
    job.refresh_from_db()
    assert counts(job) == ("done", 4, 4, 0)
    assert "far" in state(alice)
    for number in range(12):
        put(alice.actor, "notes", f"other{number}", 3)
    assert counts(revert(alice, job.public_id)) == ("done", 4, 4, 0)


# Workers -----------------------------------------------------------------------------------------


def die_in_batch(monkeypatch: pytest.MonkeyPatch, number: int) -> Callable[[], None]:
    """The process of the worker ends in a batch, after its writes. Returns what brings it back."""
    real, calls = revert_jobs.reverts_sql.settle, []

    def settle(*args: Any) -> None:
        calls.append(1)
        real(*args)
        if len(calls) == number:
            raise SystemExit

    monkeypatch.setattr(revert_jobs.reverts_sql, "settle", settle)
    return lambda: monkeypatch.setattr(revert_jobs.reverts_sql, "settle", real)


def test_worker__dies_in_the_middle__another_one_continues_and_reverts_each_once(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 100)
    write_many(alice, 350)
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")
    revive = die_in_batch(monkeypatch, 3)
    with pytest.raises(SystemExit):
        revert_jobs.run_revert(job.pk)
    revive()

    job.refresh_from_db()
    assert counts(job) == ("running", 350, 200, 0)
    assert Counter(state(alice).values()) == {"1": 200, "2": 150}
    assert revert_jobs.run_revert(job.pk) is None  # the lease has not expired
    assert maintenance.find_lost_reverts() == {"reverts": 0}
    Revert.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert revert_jobs.lost_jobs()
    assert maintenance.find_lost_reverts() == {"reverts": 1}
    task.run(str(job.pk))

    job.refresh_from_db()
    assert counts(job) == ("done", 350, 350, 0)
    written = EntryRevision.objects.filter(request_id=job.public_id)
    assert written.values("entry").distinct().count() == written.count() == 350
    assert set(Entry.objects.values_list("version", flat=True)) == {3}
    assert not revert_jobs.lost_jobs()


def test_worker__lost_its_claim__writes_nothing_more(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    write_many(alice, 6)
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")
    real, entered = revert_jobs._continue, []

    def overtaken(mine: Revert) -> None:
        real(mine)
        entered.append(mine.reverted)
        if mine.reverted == 2:  # the lease expires, and another worker finishes the job
            monkeypatch.setattr(revert_jobs, "_continue", real)
            Revert.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
            assert revert_jobs.run_revert(job.pk) == "done"

    monkeypatch.setattr(revert_jobs, "_continue", overtaken)
    assert revert_jobs.run_revert(job.pk) == "done"
    assert entered[-1] == 2
    assert set(Entry.objects.values_list("version", flat=True)) == {3}
    job.refresh_from_db()
    assert counts(job) == ("done", 6, 6, 0)


def test_worker__dies_each_time__gives_up(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    write_many(alice, 2)
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")

    def die(*args: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(revert_jobs, "_search", die)
    for _ in range(revert_jobs.MAX_ATTEMPTS):
        with pytest.raises(SystemExit):
            revert_jobs.run_revert(job.pk)
        Revert.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert revert_jobs.run_revert(job.pk) == "failed"
    job.refresh_from_db()
    assert job.detail == "failed after 5 attempts"


def test_worker__namespace_changes_in_each_batch__tries_again_later(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(alice, 2)
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")
    real = revert_jobs.revert_entries

    def refuse(**_: Any) -> None:
        raise Conflict("a namespace changed in the meantime; retry")

    monkeypatch.setattr(revert_jobs, "revert_entries", refuse)
    assert revert_jobs.run_revert(job.pk) == "queued"
    assert revert_jobs.run_revert(job.pk) is None  # not yet
    monkeypatch.setattr(revert_jobs, "revert_entries", real)
    job.refresh_from_db()
    assert job.detail == "a namespace changed in the meantime; retry"
    Revert.objects.update(available_at=Now())
    assert revert_jobs.run_revert(job.pk) == "done"
    job.refresh_from_db()
    assert (counts(job), job.detail) == (("done", 2, 2, 0), "")


def test_worker__out_of_time__leaves_the_rest_to_the_next(
    alice: Person, monkeypatch: pytest.MonkeyPatch, sent_notifications: list[tuple[str, ...]]
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    monkeypatch.setattr(revert_jobs, "AT_ONCE", 0)
    write_many(alice, 5)
    sent_notifications.clear()
    job = revert_jobs.start_revert(actor=alice.actor, request_id="r")
    assert counts(job) == ("queued", 5, 0, 0)
    assert sent_notifications == [(revert_jobs.RUN, str(job.pk))]
    while revert_jobs.run_revert(job.pk, seconds=0) == "queued":
        job.refresh_from_db()
        assert job.attempts == 0
    job.refresh_from_db()
    assert counts(job) == ("done", 5, 5, 0)


def test_request__repeated_by_the_same_actor__is_one_job(
    changed: Person, sent_notifications: list[tuple[str, ...]]
) -> None:
    first = revert_jobs.request_revert(actor=changed.actor, request_id="r")
    assert revert_jobs.request_revert(actor=changed.actor, request_id="r").pk == first.pk
    assert revert_jobs.run_revert(first.pk) == "done"
    assert revert_jobs.run_revert(first.pk) is None
    later = revert(changed, "r")
    assert counts(later) == ("done", 4, 0, 4)
    assert later.pk != first.pk


def test_cancel__unfinished__stops_before_the_next_batch(
    changed: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 1)
    job = revert_jobs.request_revert(actor=changed.actor, request_id="r")
    while not Revert.objects.filter(reverted=1):
        assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"
    stopped = revert_jobs.cancel_revert(actor=changed.actor, revert_id=job.public_id)
    assert counts(stopped) == ("cancelled", 4, 1, 0)
    assert revert_jobs.run_revert(job.pk) is None
    assert not RevertEntry.objects.exists()
    with pytest.raises(Conflict, match="already cancelled"):
        revert_jobs.cancel_revert(actor=changed.actor, revert_id=job.public_id)
    assert counts(revert(changed, job.public_id)) == ("done", 1, 1, 0)


@pytest.mark.parametrize("name", ["", "x" * 65, "a\0b"])
def test_request__no_request_id__is_refused(alice: Person, name: str) -> None:
    with pytest.raises(Invalid):
        revert_jobs.request_revert(actor=alice.actor, request_id=name)


def test_request__by_a_viewer_or_of_another_workspace__is_refused(
    changed: Person, bob: Person, mallory: Person
) -> None:
    job = revert(changed, "r")
    with pytest.raises(Forbidden):
        revert_jobs.request_revert(actor=bob.actor, request_id="r")
    with pytest.raises(Forbidden):
        revert_jobs.cancel_revert(actor=bob.actor, revert_id=job.public_id)
    with pytest.raises(NotFound):
        revert_jobs.find_revert(mallory.actor, job.public_id)


def test_workspace__frozen__its_jobs_wait(changed: Person) -> None:
    job = revert_jobs.request_revert(actor=changed.actor, request_id="r")
    Workspace.objects.filter(pk=changed.workspace.pk).update(frozen_at=Now())
    assert revert_jobs.run_revert(job.pk) is None
    assert not revert_jobs.lost_jobs()
    Workspace.objects.filter(pk=changed.workspace.pk).update(frozen_at=None)
    assert revert_jobs.run_revert(job.pk) == "done"


def test_purge__ended_long_ago__is_deleted_with_its_skipped_entries(changed: Person) -> None:
    put(changed.actor, "notes", "a", "mine")
    old, new = revert(changed, "r"), revert(changed, "unknown")
    assert RevertEntry.objects.count() == 1
    Revert.objects.filter(pk=old.pk).update(finished_at=Now() - timedelta(days=31))
    maintenance.purge_leftovers()
    assert list(Revert.objects.values_list("pk", flat=True)) == [new.pk]
    assert not RevertEntry.objects.exists()


def test_erasure__of_a_skipped_key__removes_it_from_the_list(changed: Person) -> None:
    put(changed.actor, "notes", "a", "mine")
    job = revert(changed, "r")
    assert list(reasons(job)) == ["a"]
    erase(actor=changed.actor, key="a", reason="asked for")
    assert reasons(job) == {}


# Races -------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_race__workers_and_writers__each_entry_is_reverted_once_or_keeps_the_new_value(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 10)
    write_many(alice, 200)
    job = revert_jobs.request_revert(actor=alice.actor, request_id="r")

    def write(start: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(start, 200, 7):
                put(alice.actor, "notes", f"k{number}", "mine")

        return work

    outcomes = race([lambda: revert_jobs.run_revert(job.pk)] * 3 + [write(0), write(1)])
    assert Counter(outcomes[:3]) == {"done": 1, None: 2}
    job.refresh_from_db()
    written = [number for start in (0, 1) for number in range(start, 200, 7)]
    rows = {row.key: row for row in Entry.objects.all()}
    assert all(rows[f"k{number}"].value == '"mine"' for number in written)
    others = {row.value for key, row in rows.items() if int(key[1:]) not in written}
    assert others == {"1"}
    reverted = EntryRevision.objects.filter(request_id=job.public_id)
    assert reverted.values("entry").distinct().count() == reverted.count() == job.reverted
    assert counts(job) == ("done", 200, job.reverted, 200 - job.reverted)
    # Skipped ones were written first; the others were reverted first, and then written.
    for key in reasons(job):
        assert (rows[key].value, rows[key].version) == ('"mine"', 3)
    with transaction.atomic():
        assert RevertEntry.objects.count() == job.skipped
