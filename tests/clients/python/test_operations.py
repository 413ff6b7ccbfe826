"""Provenance, restores, compactions, reverts and dead letters through the client, against a real server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from commonhold import (
    AsyncCommonhold,
    BadRequest,
    Commonhold,
    Compaction,
    CompactionPreview,
    Compactions,
    Conflict,
    Invalid,
    InvalidArgument,
    NotFound,
    Reverts,
    RevisionConflict,
    SnapshotPreview,
    VersionConflict,
)

from state_admin import models
from state_admin.services import compaction_jobs, revert_jobs
from tests.builders import Person
from tests.clients.python.conftest import SWIFT
from tests.loops import run
from tests.project.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def notes(state: Commonhold) -> Commonhold:
    state.namespaces.register("notes", history={"keep_last": 1})
    return state


@pytest.fixture
def talk(state: Commonhold) -> Commonhold:
    """A thread whose context is worth a summary, and a run of it."""
    state.threads.create("t/1", compaction_policy={"min_gain_tokens": 0, "min_recent_messages": 2})
    for n in range(8):
        state.threads.append(
            "t/1",
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": "many trains " * 200},
        )
    return state


def test_blame__parts_of_a_value__name_their_versions(notes: Commonhold) -> None:
    notes.put("notes", "a/b", {"n": 1, "m": 1}, reason="first")
    notes.patch("notes", "a/b", {"n": 2}, reason="second")
    found = {each.pointer: (each.version, each.reason) for each in notes.blame("notes", "a/b")}
    assert found == {"": (1, "first"), "/n": (2, "second")}
    assert [each.at.tzinfo for each in notes.every(notes.blame("notes", "a/b"))] == [UTC, UTC]


def test_reads__reported_by_commits__are_listed_by_entry_and_by_run(notes: Commonhold) -> None:
    notes.put("notes", "k", 1)
    notes.threads.create("t1")
    notes.runs.start("t1", "r1", agent_id="planner")
    for version in (0, 1):
        read = {"namespace": "notes", "key": "k", "version": version}
        notes.runs.commit("r1", messages=[{"role": "user", "content": "x"}], reads=[read])
    notes.put("notes", "k", 2)
    readers = notes.readers("notes", "k", limit=1)
    assert [(each.run_id, each.version) for each in notes.every(readers)] == [("r1", 1), ("r1", 0)]
    assert [each.agent_id for each in notes.readers("notes", "k", version=0)] == ["planner"]
    reads = notes.every(notes.runs.reads("r1", limit=1, order="asc"))
    assert [(each.version, each.stale) for each in reads] == [(0, True), (1, True)]
    assert len(notes.runs.reads("r1", stale=True)) == 2


def test_knowledge__of_a_step__has_the_entries_of_that_time(notes: Commonhold) -> None:
    notes.put("notes", "thread::t1", "then")
    notes.threads.create("t1")
    notes.runs.start("t1", "r1")
    notes.runs.commit("r1", messages=[{"role": "user", "content": "x"}])
    notes.put("notes", "thread::t1", "now")
    known = notes.runs.knowledge("r1")
    (entry,) = known.items
    assert (entry.value, entry.version, entry.current_version) == ("then", 1, 2)
    assert known.state is not None
    assert known.state.revision == known.revision
    assert notes.runs.knowledge("r1", revision=known.revision, limit=1).step == known.step


def test_restore_entries__to_a_moment__writes_the_old_values(notes: Commonhold) -> None:
    moment = notes.put("notes", "a", 1).updated_at
    assert moment is not None
    notes.put("notes", "a", 2)
    notes.put("notes", "b", 1)
    tried = notes.restore_entries(at=moment, namespace="notes", dry_run=True)
    assert (tried.changed, tried.deleted, notes.get("notes", "a").value) == (1, 1, 2)
    done = notes.restore_entries(at=moment, namespace="notes", reason="undo")
    assert [each["action"] for each in done.first] == ["change", "delete"]
    assert notes.get("notes", "a").value == 1
    assert notes.history("notes", "a").items[0].reason == "undo"
    assert not notes.get("notes", "b").exists


def test_redact__parts__are_gone_from_every_version(notes: Commonhold) -> None:
    notes.put("notes", "k", {"secret": "x", "n": 1})
    notes.put("notes", "k", {"secret": "x", "n": 2})
    found = notes.redact("notes", "k", pointers=["/secret"], reason="leak", dry_run=True)
    assert (found.rewritten, notes.get("notes", "k").value["secret"]) == (2, "x")
    notes.redact("notes", "k", pointers=["/secret"], reason="leak")
    assert notes.get("notes", "k", at_version=1).value["secret"] == {"$redacted": True}
    with pytest.raises(Invalid):
        notes.redact("notes", "k", pointers=[], reason="leak")
    notes.redact("notes", "k", reason="all of it")
    assert notes.get("notes", "k").value == {"$redacted": True}


def test_audit_and_usage__of_the_workspace__are_read(notes: Commonhold) -> None:
    for key in ("a", "b"):
        notes.put("notes", key, 1, reason="why")
    rows = list(notes.every(notes.audit(namespace="notes", action="entry.*", limit=1)))
    assert [(each.key, each.action, each.reason) for each in rows] == [
        ("b", "entry.put", "why"),
        ("a", "entry.put", "why"),
    ]
    assert notes.audit(request_id=rows[0].request_id, key="b").items == rows[:1]
    usage = notes.usage()
    assert (usage.limits.keys() >= {"entries", "bytes"}, usage.messages) == (True, 0)


def run_job(requested: Compaction) -> str:
    return str(compaction_jobs.run_compaction(requested.id))


def test_compaction__of_a_context__is_previewed_done_and_undone(talk: Commonhold) -> None:
    preview = talk.threads.preview_compaction("t/1")
    assert isinstance(preview, CompactionPreview)
    assert preview.would_fold is not None
    requested = talk.threads.compact("t/1", reason="tidy")
    assert (requested.status, requested.kind, requested.reason) == ("queued", "context", "tidy")
    assert run_job(requested) == "done"
    done = talk.compactions.get(requested.id)
    assert (done.status, done.to_seq) == ("done", preview.would_fold["boundary_seq"])
    folded = list(talk.every(talk.compactions.messages(done.id, limit=3)))
    assert [each.seq for each in folded] == list(range(1, (done.to_seq or 0) + 1))
    assert talk.compactions.undo(done.id, reason="no").status == "undone"
    with pytest.raises(Conflict):
        talk.compactions.undo(done.id)


def test_compaction__cancelled__can_be_requested_again(talk: Commonhold) -> None:
    first = talk.threads.compact("t/1")
    assert talk.compactions.cancel(first.id).status == "cancelled"
    again = talk.compactions.retry(first.id, reason="still needed")
    assert (again.status, again.id == first.id) == ("queued", False)
    listed = talk.every(talk.compactions.list(thread_id="t/1", kind="context", limit=1))
    assert [each.id for each in listed] == [again.id, first.id]
    with pytest.raises(Conflict):
        talk.compactions.retry(again.id)


def test_compaction__of_snapshots_and_history__is_previewed_and_requested(
    talk: Commonhold, notes: Commonhold
) -> None:
    assert isinstance(talk.threads.preview_compaction("t/1", kind="snapshot"), SnapshotPreview)
    assert talk.threads.compact("t/1", kind="snapshot").kind == "snapshot"
    for n in (1, 2):
        notes.put("notes", "k", n)
    assert notes.namespaces.preview_compaction("notes").rows_removed == 1
    requested = notes.namespaces.compact("notes", reason="old")
    assert (requested.kind, requested.namespace, requested.reason) == ("history", "notes", "old")


def test_revert__to_a_moment__is_tried_requested_and_reported(notes: Commonhold) -> None:
    moment = datetime.now(UTC)
    notes.put("notes", "a", 1)
    tried = notes.reverts.request(at=moment, namespace="notes", prefix="a", dry_run=True)
    assert (tried.status, tried.reverted, tried.request_id) == ("done", 1, None)
    requested = notes.reverts.request(at=moment, namespace="notes", key="a", reason="a mistake")
    assert (requested.namespace, requested.key, requested.prefix) == ("notes", "a", None)
    assert revert_jobs.run_revert(models.Revert.objects.get(public_id=requested.id).pk) == "done"
    assert not notes.get("notes", "a").exists


def test_revert__of_a_request__is_tried_requested_and_reported(notes: Commonhold) -> None:
    operations: Any = [{"op": "put", "namespace": "notes", "key": k, "value": 1} for k in "ab"]
    notes.batch(operations)
    wrong = notes.history("notes", "a").items[0].request_id
    notes.put("notes", "b", "mine")
    tried = notes.reverts.request(wrong, dry_run=True)
    assert (tried.status, tried.reverted, tried.skipped) == ("done", 1, 1)
    requested = notes.reverts.request(wrong, reason="a mistake")
    assert (requested.status, requested.request_id) == ("queued", wrong)
    assert revert_jobs.run_revert(models.Revert.objects.get(public_id=requested.id).pk) == "done"
    assert notes.reverts.get(requested.id).finished_at is not None
    assert [each.key for each in notes.every(notes.reverts.skipped(requested.id))] == ["b"]
    assert not notes.get("notes", "a").exists
    assert [each.id for each in notes.reverts.list(request_id=wrong)] == [requested.id]
    with pytest.raises(Conflict):
        notes.reverts.cancel(requested.id)
    second = notes.reverts.request(requested.id)
    assert notes.reverts.cancel(second.id).status == "cancelled"


def test_dead_letters__of_a_thread__are_replayed_and_cleared(state: Commonhold) -> None:
    for thread in ("t1", "t2"):
        state.threads.create(thread)
        state.dispatches.enqueue(thread, 1, max_attempts=1)
        (held,) = state.dispatches.claim(thread_id=thread)
        assert state.dispatches.nack(held, "boom").status == "DeadLetter"
    assert state.dispatches.replay_dead(thread_id="t1", dry_run=True).replayed == 1
    assert state.dispatches.replay_dead(thread_id="t1").replayed == 1
    assert state.dispatches.clear_dead(dry_run=True).matched == 1
    assert state.dispatches.clear_dead(thread_id="t2", reason="done").deleted == 1
    assert state.dispatches.list(status="DeadLetter").items == []


def test_plugin__installed__is_read_with_its_parts(state: Commonhold) -> None:
    state.plugins.install("team", state_keys=[{"key": "mood"}], namespaces=[{"name": "team"}])
    found = state.plugins.get("team")
    assert [each.key for each in found.state_keys] == ["mood"]
    assert [each.name for each in found.namespaces] == ["team"]
    with pytest.raises(NotFound):
        state.plugins.get("other")


def test_state_key__unregistered__loses_its_values_or_not(state: Commonhold) -> None:
    state.state_keys.register("mood", scope="thread")
    state.threads.create("t1")
    state.runs.start("t1", "r1")
    state.runs.commit("r1", [{"key": "mood", "update": "calm"}])
    tried = state.state_keys.unregister("mood", dry_run=True)
    assert tried is not None
    assert (tried["dry_run"], tried["held"]["threads"]) == (True, 1)
    assert state.state_keys.unregister("mood", values="clear", reason="unused") is None
    assert "mood" not in state.threads.state("t1").extensions
    with pytest.raises(NotFound):
        state.state_keys.get("mood")


def test_entries__of_all_namespaces__are_listed_and_deleted(notes: Commonhold) -> None:
    notes.namespaces.register("plans")
    for namespace in ("notes", "plans"):
        notes.put(namespace, "thread::a", 1, tags=["x", "y"])
        notes.put(namespace, "global", 1)
    listed = notes.every(notes.list_all(scope_kind="thread", tag=["x", "y"], values=True, limit=1))
    assert [(each.namespace, each.value) for each in listed] == [("notes", 1), ("plans", 1)]
    assert notes.clear_all(prefix="thread::", dry_run=True)["matched"] == 2
    assert notes.clear_all(prefix="thread::", limit=1, reason="gone")["deleted"] == 1
    with pytest.raises(BadRequest):
        notes.clear_all()


def test_version__pinned__is_kept_by_history_compaction(notes: Commonhold) -> None:
    for n in (1, 2, 3):
        notes.put("notes", "k", n)
    assert notes.pin_version("notes", "k", 1, reason="audit").pinned
    assert notes.namespaces.preview_compaction("notes").rows_removed == 1
    assert not notes.pin_version("notes", "k", 1, pinned=False).pinned


def test_thread__marked_and_forked__has_a_label_and_a_lineage(state: Commonhold) -> None:
    state.threads.create("t1")
    state.threads.create("t2", parent_thread_id="t1")
    state.runs.start("t2", "r1")
    marked = state.threads.mark_snapshot("t2", 1, label="start", pinned=True, reason="why")
    assert (marked["label"], marked["pinned"]) == ("start", True)
    assert state.threads.mark_snapshot("t2", 1, label="")["label"] == ""
    state.threads.fork("t2", new_id="t3")
    found = state.threads.lineage("t2")
    assert (found.ancestors, found.child_count, found.fork_count) == (["t1"], 0, 1)
    origin = state.threads.lineage("t3").forked_from
    assert origin is not None
    assert origin["thread_id"] == "t2"


def test_dispatches__counted__by_status(state: Commonhold) -> None:
    state.threads.create("t1")
    state.dispatches.enqueue("t1", 1, agent_id="a")
    assert state.dispatches.counts(thread_id="t1")["Queued"] == 1
    assert state.dispatches.counts(agent_id="b")["Queued"] == 0


def test_reason__of_writes__is_in_the_audit(state: Commonhold) -> None:
    state.state_keys.register("mood", scope="thread", reason="key")
    state.plugins.install("team", reason="plugin")
    state.threads.create("t1", reason="create")
    state.threads.append("t1", {"role": "user", "content": "hi"}, reason="append")
    state.threads.change("t1", title="x", reason="change")
    state.threads.fork("t1", new_id="t2", reason="fork")
    state.runs.start("t1", "r1", reason="start")
    state.runs.heartbeat("r1", reason="heartbeat")
    state.runs.commit("r1", [{"key": "mood", "update": "calm"}], reason="commit")
    state.threads.restore("t1", 2, reason="restore")
    state.threads.import_state("t1", {"revision": 1, "extensions": {}}, reason="import")
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "book"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    state.runs.change("r1", status="waiting", waiting=waiting, reason="wait")
    state.tickets.decide("k1", "resume", reason="decide")
    state.runs.take_lease("r1", reason="take")
    state.runs.release_lease("r1", reason="release")
    state.runs.resume("r1", reason="resume")
    state.runs.fail("r1", reason="fail")
    state.runs.start("t1", "r2")
    state.runs.cancel("r2", reason="cancel")
    state.runs.start("t1", "r3")
    state.runs.cancel_many(["r3"], reason="cancel-many")
    for n in range(2):
        state.dispatches.enqueue("t1", n, max_attempts=1, reason="enqueue")
    (held,) = state.dispatches.claim(thread_id="t1", reason="claim")
    state.dispatches.ack(held, reason="ack")
    (held,) = state.dispatches.claim(thread_id="t1")
    state.dispatches.extend(held, 60, reason="extend")
    state.dispatches.nack(held, "boom", reason="nack")
    state.dispatches.replay(held.id, reason="replay")
    state.dispatches.cancel(held.id, reason="cancel-dispatch")
    state.dispatches.interrupt("t1", reason="interrupt")
    state.threads.delete("t2", reason="delete")
    state.threads.delete_many(["t1"], reason="delete-many")
    state.plugins.uninstall("team", reason="uninstall")
    reasons = {each.reason for each in state.every(state.audit(limit=200))}
    expected = (
        "key plugin create append change fork start heartbeat commit restore import wait decide take release "
        "resume fail cancel cancel-many enqueue claim ack extend nack replay cancel-dispatch interrupt delete "
        "delete-many uninstall"
    )
    assert reasons == {"", *expected.split()}


def test_dry_run__of_each_write__changes_nothing(notes: Commonhold) -> None:
    notes.put("notes", "k", {"n": 1})
    tried = [
        notes.put("notes", "k", {"n": 2}, dry_run=True),
        notes.patch("notes", "k", {"n": 2}, dry_run=True),
        notes.update("notes", "k", {"op": "add", "path": "/n", "value": 1}, dry_run=True),
    ]
    assert [(each.value["n"], each.document["dry_run"]) for each in tried] == [(2, True)] * 3
    assert notes.delete("notes", "k", dry_run=True) == {"dry_run": True, "matched": 1, "deleted": 0}
    assert notes.restore("notes", "k", 1, dry_run=True).document["dry_run"]
    operation: Any = {"op": "delete", "namespace": "notes", "key": "k"}
    assert notes.batch([operation], dry_run=True)[0].status == 204
    held = notes.namespaces.unregister("notes", entries="retain", dry_run=True)
    assert held is not None
    assert held["held"]["entries"] == 1
    assert [each.version for each in notes.history("notes", "k")] == [1]
    assert notes.plugins.install("team", state_keys=[{"key": "mood"}], dry_run=True)["dry_run"]
    assert notes.plugins.list().items == []
    notes.threads.create("t1")
    notes.runs.start("t1", "r1")
    notes.dispatches.enqueue("t1", 1)
    state = {"revision": 1, "extensions": {}}
    assert notes.runs.commit("r1", label="x", dry_run=True).document["dry_run"]
    assert notes.threads.restore("t1", 1, dry_run=True).document["dry_run"]
    assert notes.threads.import_state("t1", state, dry_run=True).document["dry_run"]
    assert notes.dispatches.interrupt("t1", dry_run=True)["superseded_dispatches"] == 1
    assert len(notes.threads.snapshots("t1")) == 1
    assert notes.dispatches.counts()["Queued"] == 1


def test_condition__on_the_revision_of_a_run__is_checked(state: Commonhold) -> None:
    state.threads.create("t1")
    revision = state.runs.start("t1", "r1").last_revision
    conflicts: Any = [
        lambda old: state.runs.change("r1", step_count=1, if_revision=old),
        lambda old: state.runs.cancel("r1", if_revision=old),
        lambda old: state.runs.fail("r1", if_revision=old),
        lambda old: state.threads.append("t1", {"role": "user", "content": "x"}, if_revision=old),
    ]
    for call in conflicts:
        with pytest.raises(RevisionConflict):
            call(revision + 1)
    assert state.runs.change("r1", step_count=1, if_revision=revision).step_count == 1


def test_write__of_an_equal_value__creates_no_version(notes: Commonhold) -> None:
    notes.put("notes", "k", {"n": 1})
    assert notes.patch("notes", "k", {"n": 1}, if_changed=True).version == 1
    operation = {"op": "set", "path": "/n", "value": 1}
    assert notes.update("notes", "k", operation, if_version=1, if_changed=True).version == 1
    assert notes.restore("notes", "k", 1, if_changed=True).version == 1
    with pytest.raises(VersionConflict):
        notes.update("notes", "k", operation, if_version=2)


def test_async_client__new_methods__are_awaited(
    talk: Commonhold, web: Running, alice: Person
) -> None:
    async def work() -> None:
        url = f"http://127.0.0.1:{web.port}"
        async with AsyncCommonhold(url, alice.token, retries=SWIFT) as state:
            requested = await state.threads.compact("t/1")
            assert (await state.compactions.cancel(requested.id)).status == "cancelled"
            listed = [each.id async for each in state.every(Compactions.list())]
            assert listed == [requested.id]
            assert (await state.send(Reverts.list())).items == []

    run(work())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda to: to.redact("n", "k", reason=""), "reason must not be empty"),
        (lambda to: to.redact("n", "k", reason="x", pointers="/a"), "pointers must be a list"),
        (lambda to: to.readers("n", "k", version=-1), "version must be an int"),
        (lambda to: to.blame("n", None), "key must be a str"),
        (lambda to: to.restore_entries(at=None), "at must be a str"),
        (lambda to: to.restore_entries(at=datetime.now(UTC), key=""), "key must not be empty"),
        (lambda to: to.runs.knowledge("r", step=1.5), "step must be an int"),
        (lambda to: to.runs.reads(None), "run_id must be a str"),
        (lambda to: to.threads.compact(""), "thread_id must not be empty"),
        (lambda to: to.compactions.get(None), "compaction_id must be a str"),
        (lambda to: to.reverts.request(""), "request_id must not be empty"),
        (lambda to: to.reverts.request(at=datetime.now(UTC), key=""), "key must not be empty"),
        (lambda to: to.reverts.get(5), "revert_id must be a str"),
        (lambda to: to.plugins.get(""), "name must not be empty"),
        (lambda to: to.threads.mark_snapshot("t", None), "revision must be a str, a number"),
    ],
)
def test_call__mistaken_argument__is_named(state: Any, call: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{message}"):
        call(state)
