"""Snapshot and history compaction: what is removed, what is kept, and concurrent changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_admin.domain.access import Role
from state_admin.models import (
    AuditRow,
    Change,
    Compaction,
    Revision,
    StateValue,
    Thread,
)
from state_admin.services import (
    compaction_jobs,
    compactions,
    forks,
    maintenance,
    policies,
    retention,
    snapshots,
    threads,
)
from state_admin.services.errors import (
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    NotRegistered,
    RevisionConflict,
)
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import (
    Person,
    commit,
    make_namespace,
    make_person,
    make_run,
    make_state_key,
    make_thread,
    make_token,
    raw,
)
from tests.domain.reference_retention import RevisionInfo, kept_revisions, removable_spans
from tests.services.racing import race

DONE = RunChange(status="done", termination_reason={"type": "natural_end"})


def keep(person: Person, last: int | None, every: int | None = None) -> None:
    """The workspace's policy."""
    body = {"snapshot_keep_last": last, "snapshot_keep_every": every}
    policies.put_policy(actor=person.actor, scope="workspace", body=raw(body))


def compact(person: Person, thread_id: str = "t1") -> Compaction:
    """Request a compaction, and run it as the worker."""
    job = retention.request_snapshots(actor=person.actor, thread_id=thread_id, reason="tidy")
    assert retention.run_retention(job.public_id) == "done"
    return Compaction.objects.get(pk=job.pk)


def readable(thread_id: str = "t1") -> list[int]:
    rows = Revision.objects.filter(thread__public_id=thread_id, dropped=False)
    return sorted(rows.values_list("number", flat=True))


def spans(key: str, thread_id: str = "t1") -> list[tuple[int, int | None]]:
    rows = StateValue.objects.filter(thread__public_id=thread_id, key=key).order_by("valid_from")
    return list(rows.values_list("valid_from", "valid_to"))


@pytest.fixture
def thread(alice: Person) -> Person:
    """t1 at revision 12: r1 created 1 to 6 and is done, r2 runs since 7. `plan` changes at 2 to 6
    and 8 to 12, `once` was set at 3."""
    a = alice.actor
    make_state_key(a, "plan", scope="thread")
    make_state_key(a, "once", scope="thread")
    make_thread(a)
    make_run(a)
    commit(a, "r1", {"plan": 2})
    commit(a, "r1", {"plan": 3, "once": "x"})
    commit(a, "r1", {"plan": 4})
    commit(a, "r1", {"plan": 5})
    commit(a, "r1", {"plan": 6}, run=DONE)
    make_run(a, run_id="r2")
    for number in range(8, 13):
        commit(a, "r2", {"plan": number})
    return alice


# What goes and what stays ------------------------------------------------------------------------


def test_snapshots__keep_last__keeps_the_newest_the_marked_and_the_last_of_each_run(
    thread: Person,
) -> None:
    keep(thread, 2)
    snapshots.mark_revision(actor=thread.actor, thread_id="t1", revision=3, label="good")
    snapshots.mark_revision(actor=thread.actor, thread_id="t1", revision=9, pinned=True)
    job = compact(thread)
    assert readable() == [3, 6, 9, 11, 12]
    assert spans("plan") == [(3, 4), (6, 8), (9, 10), (11, 12), (12, None)]
    assert spans("once") == [(3, None)]
    assert job.detail == "7 snapshots deleted"
    assert (job.to_revision, job.trigger, job.requested_by, job.reason) == (
        10, "hand", "alice", "tidy",
    )  # fmt: skip
    assert job.rows_removed == 5
    assert job.rows_after == StateValue.objects.count()
    assert 0 < (job.bytes_after or 0) < (job.bytes_before or 0)


def test_snapshots__keep_every__keeps_the_multiples(thread: Person) -> None:
    keep(thread, 1, 5)
    compact(thread)
    assert readable() == [5, 6, 10, 12]


def test_snapshots__kept_ones__are_unchanged_and_the_others_are_gone(thread: Person) -> None:
    keep(thread, 2)

    def read(number: int) -> Any:
        found = snapshots.read_snapshot(actor=thread.actor, thread_id="t1", revision=number)
        return found.parsed()

    before = {number: read(number) for number in range(13)}
    compact(thread)
    for number in (0, *readable()):
        assert read(number) == before[number]
    with pytest.raises(Gone, match="was removed by snapshot compaction"):
        read(4)
    answer = thread.api("GET", "/threads/t1/state?revision=4")
    assert (answer.status_code, answer.json()["detail"]) == (
        410, "revision 4 of thread t1 was removed by snapshot compaction",
    )  # fmt: skip


def test_api__preview_and_request__report_rows_and_bytes(thread: Person) -> None:
    keep(thread, 2)
    preview = thread.api("GET", "/threads/t1/compactions?kind=snapshot").json()
    counts = {name: preview[name] for name in ("keep_last", "snapshots", "snapshots_removed")}
    assert counts == {"keep_last": 2, "snapshots": 12, "snapshots_removed": 9}
    assert thread.api("GET", "/threads/t1/compactions?kind=history").status_code == 400
    asked = thread.api(
        "POST", "/threads/t1/compactions", {"kind": "snapshot"}, Change_Reason="tidy"
    )
    assert asked.status_code == 202
    assert retention.run_retention(asked.json()["id"]) == "done"
    (job,) = thread.api("GET", "/compactions?kind=snapshot").json()["items"]
    assert (job["rows_before"], job["rows_removed"]) == (preview["rows"], preview["rows_removed"])
    assert job["rows_after"] == preview["rows"] - preview["rows_removed"]
    assert job["bytes_after"] == preview["bytes"] - preview["bytes_removed"]
    assert (job["requested_by"], job["reason"], job["to_revision"]) == (
        "alice's token", "tidy", 10,
    )  # fmt: skip
    refused = thread.api("POST", f"/compactions/{job['id']}/undo")
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "a snapshot compaction cannot be undone: it deletes what it removes",
    )  # fmt: skip


def test_snapshots__dropped__cannot_be_marked_restored_or_forked(thread: Person) -> None:
    keep(thread, 2)
    compact(thread)
    address: Any = {"actor": thread.actor, "thread_id": "t1", "revision": 4}
    for verb in (snapshots.mark_revision, snapshots.restore_snapshot, forks.fork_thread):
        with pytest.raises(Gone):
            verb(**address, **({"pinned": True} if verb == snapshots.mark_revision else {}))
    assert not Revision.objects.get(number=4).pinned
    assert not Thread.objects.filter(forked_from__isnull=False).exists()


def test_snapshots__fork_of_a_later_dropped_one__is_complete(thread: Person) -> None:
    keep(thread, 2)
    forks.fork_thread(actor=thread.actor, thread_id="t1", revision=4, fork_id="f1")
    compact(thread)
    fork = snapshots.read_snapshot(actor=thread.actor, thread_id="f1")
    assert fork.parsed() == {"plan": 4, "once": "x"}
    again, created = forks.fork_thread(actor=thread.actor, thread_id="t1", revision=4, fork_id="f1")
    assert (again.forked_from or {})["revision"] == 4
    assert not created


def test_snapshots__context_of_a_run__is_still_available(thread: Person) -> None:
    keep(thread, 2)
    make_namespace(thread.actor)
    compact(thread)
    answer = thread.api("GET", "/runs/r1/knowledge?revision=4")
    assert answer.status_code == 200
    assert answer.json()["exact"] is True


def test_snapshots__stale_base__conflicts_although_the_changes_are_compacted(
    thread: Person,
) -> None:
    commit(thread.actor, "r2", {"once": "y"})  # 13
    cleared = builders.commits.Step(
        batches=(builders.Batch((builders.Update("once", raw(None), clear=True),)),)
    )
    builders.commits.commit(actor=thread.actor, run_id="r2", step=cleared)  # 14
    for number in (15, 16):
        commit(thread.actor, "r2", {"plan": number})
    keep(thread, 1)
    compact(thread)
    assert spans("once") == [(3, 13)], "kept for the end of the first run"
    with pytest.raises(RevisionConflict) as refused:
        commit(thread.actor, "r2", {"once": "z"}, base_revision=13, rebase=True)
    assert refused.value.data["keys"] == ["once"]


def test_snapshots__compacted_again__removes_those_unmarked_meanwhile(thread: Person) -> None:
    keep(thread, 2)
    snapshots.mark_revision(actor=thread.actor, thread_id="t1", revision=3, pinned=True)
    compact(thread)
    snapshots.mark_revision(actor=thread.actor, thread_id="t1", revision=3, pinned=False)
    job = compact(thread)
    assert readable() == [6, 11, 12]
    assert spans("plan") == [(6, 8), (11, 12), (12, None)]
    assert job.rows_removed >= 1
    assert compact(thread).rows_removed == 0


UPDATES = st.lists(
    st.tuples(
        st.sets(st.sampled_from("abc"), max_size=2),
        st.sampled_from(["", "", "", "label", "pin", "end"]),
    ),
    max_size=14,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(UPDATES, st.integers(1, 5), st.none() | st.integers(1, 4))
def test_snapshots__any_history__are_removed_by_the_rule(
    db: None, steps: list[tuple[set[str], str]], last: int, every: int | None
) -> None:
    """The statements agree with tests/domain/reference_retention.py, in batches of two rows."""
    with transaction.atomic(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(retention, "BATCH", 2)
        person = make_person("zoe", "zoo", Role.ADMIN)
        run_history(person, steps)
        keep(person, last, every)
        rows = Revision.objects.filter(thread__public_id="t1").order_by("number")
        infos = [
            RevisionInfo(row.number, bool(row.label), row.pinned, str(row.run_id or "") or None)
            for row in rows
        ]
        before = {key: spans(key) for key in StateValue.objects.values_list("key", flat=True)}
        wanted = kept_revisions(infos, keep_last=last, keep_every=every)
        preview = retention.preview_snapshots(actor=person.actor, thread_id="t1")
        job = compact(person)
        assert set(readable()) == wanted
        for key, held in before.items():
            gone = removable_spans(held, sorted(wanted))
            assert spans(key) == [span for span in held if span not in gone]
        assert (preview.snapshots, preview.dropped) == (len(infos), len(infos) - len(wanted))
        assert (preview.weight.rows, preview.weight.rows_removed) == (
            job.rows_before or 0, job.rows_removed,
        )  # fmt: skip
        assert (preview.weight.bytes, preview.weight.bytes_removed) == (
            job.bytes_before or 0, job.bytes_removed,
        )  # fmt: skip
        transaction.set_rollback(True)


def run_history(person: Person, steps: list[tuple[set[str], str]]) -> None:
    """A thread t1 with runs that set and clear `a`, `b` and `c`, and marks in between."""
    a = person.actor
    for name in "abc":
        make_state_key(a, name, scope="run" if name == "a" else "thread")
    make_thread(a)
    number = 1
    make_run(a, run_id=f"r{number}")
    for index, (keys, mark) in enumerate(steps):
        clears = tuple(
            builders.Update(key, raw(index), clear=index % 3 == 2) for key in sorted(keys)
        )
        step = builders.commits.Step(
            batches=(builders.Batch(clears),), label="x" if mark == "label" else ""
        )
        made = builders.commits.commit(actor=a, run_id=f"r{number}", step=step)
        if mark == "pin" and made.revision:
            snapshots.mark_revision(actor=a, thread_id="t1", revision=made.revision, pinned=True)
        if mark == "end":
            commit(a, f"r{number}", run=DONE)
            number += 1
            make_run(a, run_id=f"r{number}")


# The job -----------------------------------------------------------------------------------------


def test_job__batches__are_bounded_and_recorded(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    looked: list[int] = []
    remove = retention.retention_sql.remove_values

    def watched(**given: Any) -> Any:
        page = remove(**given)
        looked.append(page.weight.rows if page else 0)
        return page

    monkeypatch.setattr(retention.retention_sql, "remove_values", watched)
    keep(thread, 2)
    job = compact(thread)
    assert max(looked) == 3
    assert sum(looked) == job.rows_before
    trail = AuditRow.objects.filter(action="compaction.remove", thread="t1")
    assert sum(row.detail.get("rows", 0) for row in trail) == job.rows_removed
    assert sum(row.detail.get("snapshots", 0) for row in trail) == 9
    assert {row.reason for row in trail} == {"tidy"}
    assert Change.objects.filter(kind="compaction.remove").count() == trail.count()


@pytest.mark.parametrize("pieces", range(6))
def test_job__worker_killed_after_any_batch__another_continues(
    thread: Person, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 4)
    keep(thread, 2)
    job = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    weights = retention.preview_snapshots(actor=thread.actor, thread_id="t1").weight
    save_progress, left = retention._save_progress, [pieces]

    class Killed(BaseException):
        pass

    def die(mine: Compaction) -> None:
        if not left[0]:
            raise Killed  # the transaction of this batch is lost
        left[0] -= 1
        save_progress(mine)

    monkeypatch.setattr(retention, "_save_progress", die)
    with pytest.raises(Killed):
        retention.run_retention(job.public_id)
    monkeypatch.setattr(retention, "_save_progress", save_progress)
    assert retention.run_retention(job.public_id) is None, "its lease lasts"
    Compaction.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert job.public_id in retention.lost_jobs()
    assert maintenance.any_compaction_lost()
    assert retention.run_retention(job.public_id) == "done"
    job.refresh_from_db()
    assert (job.attempts, job.detail) == (2, "9 snapshots deleted")
    assert (job.rows_before, job.rows_removed) == (weights.rows, weights.rows_removed)
    assert readable() == [6, 11, 12]


def test_job__cancelled_or_taken_over__stops_at_the_next_batch(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 4)
    keep(thread, 2)
    job = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    drop = retention.retention_sql.drop_revisions

    def cancel(**given: Any) -> int:
        done = drop(**given)
        compactions.cancel_compaction(actor=thread.actor, compaction_id=job.public_id)
        return done

    monkeypatch.setattr(retention.retention_sql, "drop_revisions", cancel)
    assert retention.run_retention(job.public_id) == "superseded"
    assert Compaction.objects.get().status == "cancelled"
    monkeypatch.setattr(retention.retention_sql, "drop_revisions", drop)
    compact(thread)
    assert readable() == [6, 11, 12]


def test_job__failing_repeatedly__is_given_up(thread: Person) -> None:
    job = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    Compaction.objects.update(attempts=retention.MAX_ATTEMPTS)
    assert retention.run_retention(job.public_id) == "failed"
    assert Compaction.objects.get().detail == "failed after 5 attempts"


def test_job__requested_twice__is_one(thread: Person) -> None:
    first = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    assert retention.request_snapshots(actor=thread.actor, thread_id="t1").pk == first.pk
    make_namespace(thread.actor)
    other = retention.request_history(actor=thread.actor, namespace="notes")
    assert retention.request_history(actor=thread.actor, namespace="notes").pk == other.pk
    assert retention.run_retention(first.public_id) == "done"
    assert retention.run_retention(first.public_id) is None
    assert compaction_jobs.run_compaction(other.public_id) is None, "it is not of its kind"


def test_job__done__cannot_be_undone_or_requested_again(thread: Person) -> None:
    job = compact(thread)
    with pytest.raises(Conflict, match="compaction cannot be undone"):
        compactions.undo_compaction(actor=thread.actor, compaction_id=job.public_id)
    with pytest.raises(Conflict, match="request a new one"):
        compactions.retry_compaction(actor=thread.actor, compaction_id=job.public_id)


def test_request__editor__is_refused(thread: Person) -> None:
    """What these remove cannot be restored, so only an admin may request it."""
    editor = make_person("erin", "acme", Role.EDITOR).actor
    with pytest.raises(Forbidden):
        retention.request_snapshots(actor=editor, thread_id="t1")
    for body in ({"snapshot_keep_last": 1}, {"snapshot_keep_every": None}):
        with pytest.raises(Forbidden):
            policies.put_policy(actor=editor, scope="thread", name="t1", body=raw(body))
        with pytest.raises(Forbidden):
            make_thread(editor, "t9", policy=raw(body))
    said = {"snapshot_keep_last": 7}
    policies.put_policy(actor=thread.actor, scope="thread", name="t1", body=raw(said))
    said["raw_suffix_messages"] = 3
    policies.put_policy(actor=editor, scope="thread", name="t1", body=raw(said))
    with pytest.raises(Forbidden):
        policies.put_policy(actor=editor, scope="thread", name="t1", body=raw({}))


def test_request__inaccessible_thread_or_namespace__appears_absent(
    thread: Person, mallory: Person
) -> None:
    make_namespace(thread.actor)
    narrow = make_token(thread, Role.ADMIN, namespaces=["else.*"], thread_prefixes=["else"])[1]
    for actor in (mallory.actor, narrow):
        with pytest.raises(NotFound):
            retention.request_snapshots(actor=actor, thread_id="t1")
        with pytest.raises(NotFound):
            retention.preview_snapshots(actor=actor, thread_id="t1")
        with pytest.raises(NotRegistered):
            retention.request_history(actor=actor, namespace="notes")
        with pytest.raises(NotRegistered):
            retention.preview_history(actor=actor, namespace="notes")


# By schedule -------------------------------------------------------------------------------------


def test_schedule__no_limits__removes_nothing(thread: Person) -> None:
    assert retention.queue_snapshots() == {"threads": 0}


@pytest.mark.parametrize("scope", ["workspace", "agent", "thread"])
def test_schedule__keep_last_in_any_layer__thread_is_due(alice: Person, scope: Any) -> None:
    make_state_key(alice.actor, "plan")
    make_thread(alice.actor)
    make_run(alice.actor, agent_id="planner")
    name = {"workspace": "", "agent": "planner", "thread": "t1"}[scope]
    policies.put_policy(
        actor=alice.actor, scope=scope, name=name, body=raw({"snapshot_keep_last": 3})
    )
    for number in range(4):
        commit(alice.actor, updates={"plan": number})
    assert retention.queue_snapshots() == {"threads": 0}, "two could go: less than it keeps"
    commit(alice.actor, updates={"plan": 5})
    assert retention.queue_snapshots() == {"threads": 1}
    assert retention.queue_snapshots() == {"threads": 0}, "it is asked for"
    job = Compaction.objects.get()
    assert (job.trigger, job.to_revision, job.requested_by) == ("schedule", 3, "retention")
    assert retention.run_retention(job.public_id) == "done"
    assert readable() == [4, 5, 6]
    assert retention.queue_snapshots() == {"threads": 0}


def test_schedule__thread_deleted_meanwhile__requests_the_others(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_state_key(alice.actor, "plan")
    for number in (1, 2, 3):
        make_thread(alice.actor, f"t{number}", policy=raw({"snapshot_keep_last": 1}))
        make_run(alice.actor, f"t{number}", f"r{number}")
        for step in range(4):
            commit(alice.actor, f"r{number}", updates={"plan": step})
    real = retention.effective_policy

    def effective_policy(thread: Thread) -> Any:
        if thread.public_id == "t1":
            threads.delete_thread(actor=alice.actor, thread_id="t2")
        return real(thread)

    monkeypatch.setattr(retention, "effective_policy", effective_policy)
    assert retention.queue_snapshots() == {"threads": 2}
    asked = Compaction.objects.order_by("pk").values_list("thread__public_id", flat=True)
    assert list(asked) == ["t1", "t3"]


def test_schedule__policy_changed_meanwhile__keeps_all(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(thread, 2)
    find_due = retention.retention_sql.due_threads

    def change(**given: Any) -> list[int]:
        found = find_due(**given)
        keep(thread, None)
        return found

    monkeypatch.setattr(retention.retention_sql, "due_threads", change)
    assert retention.queue_snapshots() == {"threads": 0}
    assert not Compaction.objects.exists()


def test_schedule__thread_resets_the_limit__keeps_all(thread: Person) -> None:
    keep(thread, 1)
    body = raw({"snapshot_keep_last": None})
    policies.put_policy(actor=thread.actor, scope="thread", name="t1", body=body)
    assert retention.queue_snapshots() == {"threads": 0}


# At once -----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_race__readers_markers_and_writers__never_see_a_wrong_state(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concurrent read of an old snapshot gets all of it or nothing; an accepted mark is kept; a
    step is stored."""
    monkeypatch.setattr(retention, "BATCH", 1)
    keep(thread, 2)

    def read(number: int) -> Any:
        return snapshots.read_snapshot(actor=thread.actor, thread_id="t1", revision=number).parsed()

    before = {number: read(number) for number in range(1, 13)}
    wrong: list[int] = []

    def look() -> None:
        for _ in range(8):
            for number, state in before.items():
                try:
                    if read(number) != state:
                        wrong.append(number)
                except Gone:
                    pass

    def mark() -> set[int]:
        marked = set()
        for number in (5, 8, 9, 10):
            try:
                snapshots.mark_revision(
                    actor=thread.actor, thread_id="t1", revision=number, pinned=True
                )
                marked.add(number)
            except Gone:
                pass
        return marked

    job = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    done = race(
        [
            lambda: retention.run_retention(job.public_id),
            look,
            mark,
            lambda: [commit(thread.actor, "r2", {"plan": n}) for n in range(5)],
        ]
    )
    assert done[0] == "done"
    assert wrong == []
    for number in done[2]:
        assert read(number) == before[number]


@pytest.mark.django_db(transaction=True)
def test_race__thread_deleted_meanwhile__job_stops(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 1)
    keep(thread, 1)
    job = retention.request_snapshots(actor=thread.actor, thread_id="t1")
    done, _ = race(
        [
            lambda: retention.run_retention(job.public_id),
            lambda: builders.threads.delete_thread(actor=thread.actor, thread_id="t1"),
        ]
    )
    assert done in ("done", "superseded", None)
    assert not StateValue.objects.exists()
    assert not Compaction.objects.exists()
