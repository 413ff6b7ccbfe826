"""Marks on revisions, and restores of a thread's state while runs are active."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from state_admin.models import AuditRow, Revision, RevisionKind, snapshots_sql
from state_admin.services import snapshots, threads
from state_admin.services.errors import Conflict, Forbidden, Gone, NotFound
from state_admin.services.runs import RunChange
from state_admin.services.snapshots import NewValue
from tests.builders import Person, commit, make_run, make_state_key, make_thread
from tests.services.racing import interleave


@pytest.fixture
def thread(alice: Person) -> Person:
    """Thread t1 at revision 3: plan is "b", and r1 runs; `once` exists only until r1 ends."""
    make_state_key(alice.actor, "plan", scope="thread")
    make_state_key(alice.actor, "once", scope="thread", persistent=False)
    make_state_key(alice.actor, "own", scope="run")
    make_thread(alice.actor)
    make_run(alice.actor)
    commit(alice.actor, "r1", {"plan": "a", "once": 1})
    commit(alice.actor, "r1", {"plan": "b", "own": 2})
    return alice


def mark(person: Person, revision: int, **marks: Any) -> Revision:
    return snapshots.mark_revision(actor=person.actor, thread_id="t1", revision=revision, **marks)


def find(person: Person, revision: int) -> tuple[str, bool]:
    return snapshots.find_mark(person.actor, "t1", revision)


def restore(person: Person, revision: int, **options: Any) -> dict[str, Any]:
    return snapshots.restore_snapshot(
        actor=person.actor, thread_id="t1", revision=revision, **options
    ).parsed()


def test_mark__label_and_pin__are_set_independently_and_recorded(thread: Person) -> None:
    assert find(thread, 2) == ("", False)
    assert mark(thread, 2, label="good", reason="works").label == "good"
    assert find(thread, 2) == ("good", False)
    assert mark(thread, 2, pinned=True).pinned
    assert find(thread, 2) == ("good", True)
    mark(thread, 2, label="")
    assert find(thread, 2) == ("", True)
    row = AuditRow.objects.filter(action="thread.mark").earliest("id")
    assert (row.thread, row.version, row.reason) == ("t1", 2, "works")
    assert row.detail == {"label": "good"}


@pytest.mark.django_db(transaction=True)
def test_mark__thread_deleted_at_once__returns_the_revision(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = partial(threads.delete_thread, actor=thread.actor, thread_id="t1")
    with interleave(monkeypatch, QuerySet, "get", delete):
        answer = thread.api("PATCH", "/threads/t1/snapshots/2", {"label": "kept"})
    assert (answer.status_code, answer.json()["label"]) == (200, "kept")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", ["", "?revision=3", "?revision=2"])
def test_read__thread_deleted_at_once__is_not_found(
    thread: Person, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    path = f"/threads/t1/state{query}"
    assert thread.api("GET", path).status_code == 200
    delete = partial(threads.delete_thread, actor=thread.actor, thread_id="t1")
    with interleave(monkeypatch, snapshots_sql, "read_state", delete):
        answer = thread.api("GET", path)
    assert answer.status_code == 404, answer.text


def test_mark__no_change__returns_the_revision(thread: Person) -> None:
    assert mark(thread, 2).number == 2
    with pytest.raises(NotFound):
        mark(thread, 99)


def test_mark__changed_in_the_meantime__is_a_conflict(thread: Person) -> None:
    mark(thread, 2, label="theirs", expected=("", False))
    for expected in (("", False), ("theirs", True)):
        with pytest.raises(Conflict) as refused:
            mark(thread, 2, label="mine", expected=expected)
        assert refused.value.detail == (
            "the label or pin of revision 2 was changed in the meantime"
        )
    assert find(thread, 2) == ("theirs", False)


def test_mark__removed_revision__reports_why(thread: Person) -> None:
    Revision.objects.filter(number=2).update(dropped=True)
    for call in (lambda: find(thread, 2), lambda: mark(thread, 2, pinned=True)):
        with pytest.raises(Gone) as gone:
            call()
        assert gone.value.detail == "revision 2 of thread t1 was removed by snapshot compaction"
        assert gone.value.hint == (
            "Labelled, pinned and recent revisions are retained; GET …/snapshots lists them."
        )
    for number in (0, 99):
        with pytest.raises(NotFound) as missing:
            find(thread, number)
        assert missing.value.detail == f"no revision {number} of thread t1"
        with pytest.raises(NotFound) as missing:
            mark(thread, number, pinned=True)
        assert missing.value.detail == f"no revision {number} of thread t1"


def test_mark__viewer__is_forbidden(thread: Person, bob: Person) -> None:
    with pytest.raises(Forbidden):
        mark(bob, 2, label="x")
    with pytest.raises(Forbidden):
        restore(bob, 2)


def test_restore__run_still_active__restores_its_transient_values(
    thread: Person,
) -> None:
    commit(thread.actor, "r1", {"once": 2})
    state = restore(thread, 2)
    assert (state["plan"], state["once"]) == ("a", 1)
    assert "own" not in state


def test_restore__after_the_run__keeps_its_lifecycle_and_no_transient_values(
    thread: Person,
) -> None:
    done = RunChange(status="done", termination_reason={"type": "natural_end"})
    commit(thread.actor, "r1", {"plan": "c"}, run=done)
    state = restore(thread, 2)
    assert state["plan"] == "a"
    assert "once" not in state
    assert state[snapshots.LIFECYCLE]["status"] == "done"
    make_run(thread.actor, run_id="r2")
    assert "once" not in restore(thread, 2)


def test_restore__default_reason__names_the_revision(thread: Person) -> None:
    restore(thread, 2)
    restore(thread, 3, reason="undo", expected_revision=4)
    rows = Revision.objects.filter(kind=RevisionKind.RESTORE).order_by("number")
    assert list(rows.values_list("number", "reason")) == [(4, "restored revision 2"), (5, "undo")]
    assert AuditRow.objects.filter(action="thread.restore").count() == 2


def test_restore__concurrent_commits__locks_the_thread(thread: Person) -> None:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        restore(thread, 2)
    held = [each["sql"] for each in captured if "FOR" in each["sql"] and '"threads"' in each["sql"]]
    assert held


def test_read__of_a_scope__has_its_keys_only(thread: Person) -> None:
    def keys(scope: str) -> list[str]:
        found = snapshots.read_snapshot(actor=thread.actor, thread_id="t1", scope=scope)
        return sorted(found.extensions)

    assert keys("run") == [snapshots.LIFECYCLE, "own"]
    assert keys("thread") == ["once", "plan"]
    assert keys("") == [snapshots.LIFECYCLE, "once", "own", "plan"]


def test_diff__of_two_revisions__is_of_their_values(thread: Person) -> None:
    before, after = snapshots.diff_snapshots(actor=thread.actor, thread_id="t1", old=2, new=3)
    assert (before["plan"], after["plan"]) == ("a", "b")
    assert "own" not in before


def test_changes_to__target__contain_differing_keys(thread: Person) -> None:
    row = Revision.objects.get(number=3).thread
    target = {"plan": NewValue('"b"', "thread", True), "once": NewValue("7", "thread", False)}
    joined = snapshots.changes_to(row, target, merge=True)
    assert joined == {"once": target["once"]}
    whole = snapshots.changes_to(row, target)
    assert whole["own"] == NewValue(None, "run", True)
    assert sorted(whole) == [snapshots.LIFECYCLE, "once", "own"]


def test_clears__of_a_scope_or_persistence__contain_matching_keys(thread: Person) -> None:
    row = Revision.objects.get(number=3).thread
    assert list(snapshots.clears(row, scope="run")) == [snapshots.LIFECYCLE, "own"]
    assert snapshots.clears(row, persistent=False) == {"once": NewValue(None, "thread", False)}
    assert len(snapshots.clears(row)) == 4


def test_mark__same_number_in_another_thread__is_unchanged(thread: Person) -> None:
    make_thread(thread.actor, "t2")
    make_run(thread.actor, "t2", "r2")
    commit(thread.actor, "r2", {"plan": "x"})
    mark(thread, 2, pinned=True)
    assert snapshots.find_mark(thread.actor, "t2", 2) == ("", False)


def test_state__larger_than_the_limit__is_refused_and_a_commit_can_clear_it(
    thread: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_STATE_BYTES", 10_000)
    commit(thread.actor, "r1", {"plan": "x" * 6_000, "own": "é" * 3_000})
    for path in ("state", "state?revision=4", "diff?from=3&to=4"):
        refused = thread.api("GET", f"/threads/t1/{path}")
        assert (refused.status_code, refused.json()["type"]) == (413, "/problems/too-large")
        assert "more than 10,000 bytes" in refused.json()["detail"]
    assert thread.api("GET", "/threads/t1/state?revision=3").status_code == 200
    cleared = {"updates": [{"key": "own", "clear": True}]}
    assert thread.api("POST", "/runs/r1/commits", cleared).status_code == 200
    assert thread.api("GET", "/threads/t1/state").json()["revision"] == 5
    assert thread.api("POST", "/threads/t1/restore", {"revision": 4}).status_code == 413
    assert thread.api("GET", "/threads/t1/state").json()["revision"] == 5
