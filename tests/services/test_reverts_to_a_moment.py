"""Reverts to a moment: what they restore and skip, the search, dying workers and concurrent writers. What they
share with reverts of requests is in test_revert_jobs.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from state_admin.domain.scopes import ScopeKind
from state_admin.models import AuditRow, Entry, EntryRevision, Namespace, Revert, RevertEntry
from state_admin.services import entries, namespaces, quotas, revert_jobs
from state_admin.services.erasures import erase
from state_admin.services.errors import BadRequest, Forbidden, Gone, Invalid, NotRegistered
from state_admin.services.restores import restore_entries
from tests.builders import Person, make_namespace, make_token, put
from tests.services.racing import race
from tests.services.test_revert_jobs import counts, die_in_batch, reasons, revert, state


def age() -> datetime:
    """Make everything that was written so far an hour old. Returns a moment since then."""
    past = Now() - timedelta(hours=1)
    Entry.objects.update(updated_at=past)
    EntryRevision.objects.update(at=past)
    return timezone.now() - timedelta(minutes=30)


def write_many(alice: Person, count: int) -> datetime:
    """Entries k0 to k{count - 1} with the value 1, which became 2 since the returned moment."""
    make_namespace(alice.actor)
    own = {"namespace": Namespace.objects.get(name="notes").pk, "count": count}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH written AS (
                INSERT INTO entries (namespace_id, key, value, born_version, version, schema_version,
                    size_bytes, estimated_tokens, deleted, tags, pinned, actor_kind, actor_name)
                SELECT %(namespace)s, 'k' || n, '2', 1, 2, 1, 1, 1, false, '{}', false, 'user', 'x'
                FROM generate_series(0, %(count)s - 1) n
                RETURNING id
            )
            INSERT INTO entry_revisions (entry_id, version, operation, value, schema_version,
                size_bytes, actor_kind, actor_id, actor_name, request_id, reason, at)
            SELECT id, v, 'put', v::text::json, 1, 1, 'user', '1', 'x', '', '',
                now() - (2 - v) * interval '1 hour'
            FROM written CROSS JOIN generate_series(1, 2) v
            """,
            own,
        )
    return timezone.now() - timedelta(minutes=30)


def restore(alice: Person, at: datetime, **filters: Any) -> Revert:
    """A revert to a moment by a worker, to its end."""
    filters = filters or {"namespace": "notes"}
    job = revert_jobs.request_revert(actor=alice.actor, at=at, **filters)
    while revert_jobs.run_revert(job.pk) == "queued":
        pass
    job.refresh_from_db()
    return job


@pytest.fixture
def moment(alice: Person) -> datetime:
    """Since then, `a` was changed, `b` deleted, `c` created, and `d` written with the same value."""
    make_namespace(alice.actor)
    for key in "abde":
        put(alice.actor, "notes", key, "old", tags=["kept"])
    at = age()
    put(alice.actor, "notes", "a", "new")
    entries.delete_entry(actor=alice.actor, namespace="notes", key="b")
    put(alice.actor, "notes", "c", "new")
    put(alice.actor, "notes", "d", "old")
    return at


# What is reverted and skipped --------------------------------------------------------------------


def test_revert__all_kinds_of_writes__restores_values_and_existence(
    alice: Person, moment: datetime
) -> None:
    before = state(alice)
    job = restore(alice, moment)

    assert counts(job) == ("done", 4, 3, 1)
    assert reasons(job) == {"d": "its value did not change"}
    assert state(alice) == dict.fromkeys("abde", '"old"')
    written = EntryRevision.objects.filter(request_id=job.public_id).order_by("entry__key")
    assert list(written.values_list("entry__key", "operation", "actor_name")) == [
        (key, "restore", "alice") for key in "abc"
    ]
    reason = f"restored to {moment.isoformat(timespec='microseconds')[:26]}Z"
    assert {row.reason for row in written} == {reason}
    trail = AuditRow.objects.filter(key=job.target).order_by("pk")
    assert [row.action for row in trail] == ["revert.request", "revert.apply", "revert.finish"]
    assert trail[0].detail["namespace"] == "notes"
    assert trail[1].detail == {"entries": 4}

    again = revert(alice, job.public_id)
    assert counts(again) == ("done", 3, 3, 0)
    assert state(alice) == before


def test_revert__and_a_restore__have_the_same_result(alice: Person, moment: datetime) -> None:
    report = restore_entries(actor=alice.actor, at=moment, namespace="notes", dry_run=True)
    assert (report.changed, report.created, report.deleted, report.refused) == (1, 1, 1, 0)
    restore(alice, moment)
    assert restore_entries(actor=alice.actor, at=moment, namespace="notes").first == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"namespace": "notes"}, 4),
        ({"key": "a"}, 1),
        ({"prefix": "c"}, 1),
        ({"namespace": "notes", "prefix": "x"}, 0),
        ({"scope_kind": ScopeKind.CUSTOM}, 4),
        ({"scope_kind": ScopeKind.THREAD}, 0),
    ],
)
@pytest.mark.parametrize("span", [1, 2, 50_000])
def test_search__filters_and_steps__finds_each_entry_once(
    alice: Person, moment: datetime, monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any], found: int, span: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(revert_jobs, "SPAN", span)
    names, more = revert_jobs.preview_moment(actor=alice.actor, at=moment, **filters)
    assert len(names) <= found
    assert more or len(names) == found
    job = restore(alice, moment, **filters)
    assert (job.status, job.total) == ("done", found)


def test_revert__expired_since__is_created_again_with_the_time_to_live_of_the_namespace(
    alice: Person,
) -> None:
    make_namespace(alice.actor, ttl_seconds=7200)
    put(alice.actor, "notes", "ran out", 1, ttl_seconds=60)
    at = age()
    Entry.objects.update(expires_at=at + timedelta(seconds=1))  # and no sweep has run

    assert counts(restore(alice, at)) == ("done", 1, 1, 0)
    assert state(alice) == {"ran out": "1"}
    expires_at = Entry.objects.get().expires_at
    assert expires_at is not None
    assert expires_at > timezone.now() + timedelta(hours=1)


def test_revert__not_possible__says_why(alice: Person) -> None:
    make_namespace(alice.actor)
    keys = ("compacted", "redacted", "refused")
    for key in keys:
        put(alice.actor, "notes", key, 1)
    at = age()
    EntryRevision.objects.filter(entry__key="compacted").delete()
    for key in keys:
        put(alice.actor, "notes", key, "new")
    EntryRevision.objects.filter(entry__key="compacted", version=2).delete()
    EntryRevision.objects.filter(entry__key="redacted", version=1).update(
        value='{"$redacted": true}', redacted_at=Now()
    )
    make_namespace(alice.actor, schema={"type": ["string", "object", "null"]})

    job = restore(alice, at)

    assert counts(job) == ("done", 3, 0, 3)
    found = reasons(job)
    assert "does not satisfy the schema" in found.pop("refused")
    assert found.pop("compacted") == "the value at that time was removed by history compaction"
    assert list(found) == ["redacted"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("unregistered", "profile key not registered: notes"),
        ("untracked", "the namespace notes is untracked and has no history"),
    ],
)
def test_revert__namespace_changed_after_the_search__skips_its_entries(
    alice: Person, moment: datetime, change: str, reason: str
) -> None:
    job = revert_jobs.request_revert(actor=alice.actor, at=moment, namespace="notes")
    while Revert.objects.get().total is None:
        revert_jobs.run_revert(job.pk, seconds=0)
    if change == "unregistered":
        namespaces.unregister_namespace(actor=alice.actor, name="notes", entries="retain")
    else:
        Namespace.objects.filter(name="notes").update(tracked=False)
    before = state(alice)
    assert revert_jobs.run_revert(job.pk) == "done"
    job.refresh_from_db()
    assert counts(job) == ("done", 4, 0, 4)
    assert {reasons(job)[key] for key in "abc"} == {reason}
    assert state(alice) == before


def test_revert__above_the_quota__fails_and_keeps_what_it_did(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    make_namespace(alice.actor)
    for key in "abcd":
        put(alice.actor, "notes", key, 1)
    at = age()
    for key in "abcd":
        entries.delete_entry(actor=alice.actor, namespace="notes", key=key)
    quotas.set_quota(actor=alice.actor, entries=3, bytes=None, threads=None)
    job = restore(alice, at)
    assert (job.status, job.reverted, job.detail) == ("failed", 2, "quota exceeded: entries")
    assert sorted(state(alice)) == ["a", "b"]
    assert not RevertEntry.objects.exists()


def test_token__limited_to_namespaces__reverts_only_those(alice: Person) -> None:
    for name in ("notes", "other"):
        make_namespace(alice.actor, name)
    at = age()
    for name in ("notes", "other"):
        put(alice.actor, name, "k", 1)
    _, limited = make_token(alice, namespaces=["no*"])
    job = revert_jobs.request_revert(actor=limited, at=at, key="k")
    assert revert_jobs.run_revert(job.pk) == "done"
    assert set(Entry.objects.live().values_list("namespace__name", flat=True)) == {"other"}
    with pytest.raises(NotRegistered):
        revert_jobs.request_revert(actor=limited, at=at, namespace="other")


# Requests ----------------------------------------------------------------------------------------


def test_request__refused__creates_no_job(alice: Person, bob: Person, moment: datetime) -> None:
    make_namespace(alice.actor, "bare", tracked=False)
    future = timezone.now() + timedelta(hours=1)
    for problem, person, given in (
        (Forbidden, bob, {"at": moment, "namespace": "notes"}),
        (BadRequest, alice, {"at": moment}),
        (Invalid, alice, {}),
        (Invalid, alice, {"namespace": "notes"}),
        (Invalid, alice, {"request_id": "r", "at": moment, "namespace": "notes"}),
        (Invalid, alice, {"request_id": "r", "namespace": "notes"}),
        (Invalid, alice, {"at": future, "namespace": "notes"}),
        (NotRegistered, alice, {"at": moment, "namespace": "unknown"}),
        (Gone, alice, {"at": moment, "namespace": "bare"}),
        (Forbidden, alice, {"at": moment, "namespace": "config.agents"}),
    ):
        with pytest.raises(problem):
            revert_jobs.request_revert(actor=person.actor, **given)  # type: ignore[arg-type]
    assert not Revert.objects.exists()


def test_request__repeated__is_one_job_until_it_ends(alice: Person, moment: datetime) -> None:
    def ask(**filters: Any) -> int:
        return int(revert_jobs.request_revert(actor=alice.actor, at=moment, **filters).pk)

    first = ask(namespace="notes")
    assert ask(namespace="notes", prefix="") == first
    others = {ask(namespace="notes", prefix="a"), ask(key="a"), ask(prefix="a")}
    assert len(others | {first}) == 4
    assert revert_jobs.run_revert(first) == "done"
    assert ask(namespace="notes") != first


def test_request__reserved_unregistered_and_untracked_namespaces__are_left_out(
    alice: Person,
) -> None:
    for name in ("notes", "gone", "bare"):
        make_namespace(alice.actor, name)
    at = age()
    for name in ("notes", "gone", "bare"):
        put(alice.actor, name, "k", 1)
    namespaces.unregister_namespace(actor=alice.actor, name="gone", entries="retain")
    Namespace.objects.filter(name="bare").update(tracked=False)
    job = restore(alice, at, key="k")
    assert counts(job) == ("done", 1, 1, 0)


def test_erasure__of_the_key_of_a_filter__removes_it_from_the_job(
    alice: Person, moment: datetime
) -> None:
    jobs = [
        revert_jobs.request_revert(actor=alice.actor, at=moment, **{name: "a"})  # type: ignore[arg-type]
        for name in ("key", "prefix")
    ]
    other = revert_jobs.request_revert(actor=alice.actor, at=moment, key="b")
    erased = erase(actor=alice.actor, key="a", reason="asked for").erased
    for job, name in zip(jobs, ("key", "prefix"), strict=True):
        job.refresh_from_db()
        assert job.filters == {name: erased}
        assert revert_jobs.run_revert(job.pk) == "done"
    other.refresh_from_db()
    assert other.filters == {"key": "b"}
    assert not AuditRow.objects.filter(
        action="revert.request", detail__has_any_keys=["key", "prefix"]
    )


# Any size ----------------------------------------------------------------------------------------


def test_revert__more_than_a_restore_permits__is_done_and_undone(alice: Person) -> None:
    many = 10_500
    at = write_many(alice, many)
    put(alice.actor, "notes", "k7", 1)
    with pytest.raises(Invalid, match="more than 10,000 entries") as refused:
        restore_entries(actor=alice.actor, at=at, namespace="notes")
    assert "POST /reverts" in refused.value.hint

    job = restore(alice, at)
    assert counts(job) == ("done", many, many - 1, 1)
    assert Counter(state(alice).values()) == {"1": many}
    assert counts(revert(alice, job.public_id)) == ("done", many - 1, many - 1, 0)
    assert Counter(state(alice).values()) == {"2": many - 1, "1": 1}


# Workers -----------------------------------------------------------------------------------------


def test_worker__dies_in_the_middle__another_one_continues_and_reverts_each_once(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 100)
    monkeypatch.setattr(revert_jobs, "SPAN", 150)
    at = write_many(alice, 350)
    job = revert_jobs.request_revert(actor=alice.actor, at=at, namespace="notes")
    revive = die_in_batch(monkeypatch, 3)
    with pytest.raises(SystemExit):
        revert_jobs.run_revert(job.pk)
    revive()

    job.refresh_from_db()
    assert counts(job) == ("running", 350, 200, 0)
    assert Counter(state(alice).values()) == {"1": 200, "2": 150}
    Revert.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert revert_jobs.lost_jobs() == [job.pk]
    assert revert_jobs.run_revert(job.pk) == "done"
    job.refresh_from_db()
    assert counts(job) == ("done", 350, 350, 0)
    assert Counter(state(alice).values()) == {"1": 350}
    assert EntryRevision.objects.filter(request_id=job.public_id).count() == 350


def test_cancel__between_two_batches__keeps_what_was_reverted(
    alice: Person, moment: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 1)
    job = revert_jobs.request_revert(actor=alice.actor, at=moment, namespace="notes")
    while not Revert.objects.filter(reverted=1):
        revert_jobs.run_revert(job.pk, seconds=0)
    stopped = revert_jobs.cancel_revert(actor=alice.actor, revert_id=job.public_id)
    assert counts(stopped) == ("cancelled", 4, 1, 0)
    assert state(alice)["a"] == '"old"'
    assert "b" not in state(alice)


def test_revert__written_after_it_was_found__is_skipped(alice: Person, moment: datetime) -> None:
    job = revert_jobs.request_revert(actor=alice.actor, at=moment, namespace="notes")
    while Revert.objects.get().total is None:
        revert_jobs.run_revert(job.pk, seconds=0)
    put(alice.actor, "notes", "a", "mine")
    put(alice.actor, "notes", "later", "mine")
    assert revert_jobs.run_revert(job.pk) == "done"
    job.refresh_from_db()
    assert counts(job) == ("done", 4, 2, 2)
    assert reasons(job)["a"] == "it was written since then"
    assert state(alice)["a"] == state(alice)["later"] == '"mine"'


@pytest.mark.django_db(transaction=True)
def test_race__workers_and_writers__each_entry_is_reverted_once_or_keeps_the_new_value(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 10)
    at = write_many(alice, 200)
    job = revert_jobs.request_revert(actor=alice.actor, at=at, namespace="notes")
    assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"  # the search

    def write(start: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(start, 200, 7):
                put(alice.actor, "notes", f"k{number}", "mine")

        return work

    outcomes = race([lambda: revert_jobs.run_revert(job.pk)] * 3 + [write(0), write(1)])
    assert Counter(outcomes[:3]) == {"done": 1, None: 2}
    job.refresh_from_db()
    written = {f"k{number}" for start in (0, 1) for number in range(start, 200, 7)}
    rows = {row.key: row for row in Entry.objects.all()}
    assert {row.value for key, row in rows.items() if key in written} == {'"mine"'}
    assert {row.value for key, row in rows.items() if key not in written} == {"1"}
    reverted = EntryRevision.objects.filter(request_id=job.public_id)
    assert reverted.values("entry").distinct().count() == reverted.count() == job.reverted
    assert counts(job) == ("done", 200, job.reverted, 200 - job.reverted)
    for key in reasons(job):
        assert (rows[key].value, rows[key].version) == ('"mine"', 3)
