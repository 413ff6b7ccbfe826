"""Threads, runs, tickets, the mailbox and plugins through the client, against a real server."""

from __future__ import annotations

from typing import Any

import pytest
from commonhold import (
    KV,
    Commonhold,
    Conflict,
    Conversation,
    Invalid,
    MergeStrategy,
    MutationBatch,
    NotFound,
    PersistedState,
    RevisionConflict,
    StateKey,
    StateStore,
    Superseded,
    VersionConflict,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def running(state: Commonhold) -> Commonhold:
    state.state_keys.register("offers", reducer="add", merge="commutative", default=0)
    state.state_keys.register("plan", scope="thread")
    state.threads.create("t/1", title="Lisbon", metadata={"x": 1})
    state.runs.start("t/1", "r1", agent_id="planner")
    return state


def test_commit__updates_messages_and_transition__are_stored_together(running: Commonhold) -> None:
    made = running.runs.commit(
        "r1",
        [{"key": "offers", "update": 2}],
        messages=[{"role": "user", "content": "hi", "mine": [1]}],
        expected_message_count=0,
        run={"step_count": 1},
        fencing_token=1,
    )
    assert (made.message_count, made.run.step_count) == (1, 1)
    assert "offers" in made.touched_keys
    again = running.runs.commit(
        "r1",
        batches=[
            [{"key": "offers", "update": 1}],
            [{"key": "offers", "update": 3}, {"key": "plan", "update": ["fly"]}],
        ],
    )
    assert again.revision == made.revision + 1
    assert running.threads.state("t/1").extensions["offers"] == 6
    assert running.threads.state("t/1", revision=made.revision).extensions["offers"] == 2
    (message,) = running.threads.messages("t/1")
    assert (message.seq, message.run_id, message.document["mine"]) == (1, "r1", [1])
    assert running.threads.context("t/1").messages[0]["content"] == "hi"


def test_commit__refused__raises_the_matching_class(running: Commonhold) -> None:
    running.runs.commit("r1", [{"key": "offers", "update": 1}])
    with pytest.raises(RevisionConflict) as old:
        running.runs.commit("r1", [{"key": "offers", "update": 1}], base_revision=0)
    assert old.value.expected == 0
    assert old.value.actual == running.threads.get("t/1").revision
    with pytest.raises(VersionConflict):
        running.runs.commit(
            "r1", messages=[{"role": "user", "content": ""}], expected_message_count=7
        )
    assert running.runs.take_lease("r1").fencing_token == 2
    with pytest.raises(Superseded, match=r"^fencing token superseded: 1, current 2"):
        running.runs.heartbeat("r1", fencing_token=1)
    with pytest.raises(Conflict, match=r"^thread already has an active run: t/1"):
        running.runs.start("t/1", "r2")
    done = running.runs.change("r1", status="done", termination_reason={"type": "natural_end"})
    assert done.finished_at is not None
    assert [run.id for run in running.runs.list(thread_id="t/1")] == ["r1"]
    running.runs.start("t/1", "r2")
    (oldest,) = running.runs.list(thread_id="t/1", order="asc", limit=1)
    assert oldest.id == "r1"
    since = oldest.created_at
    assert [run.id for run in running.runs.list(created_after=since)] == ["r2", "r1"]
    assert running.runs.list(created_before=since).items == []


def test_snapshots__are_compared_restored_and_imported(running: Commonhold) -> None:
    first = running.runs.commit("r1", [{"key": "offers", "update": 1}]).revision
    last = running.runs.commit("r1", [{"key": "offers", "update": 1}]).revision
    (row,) = (r for r in running.threads.diff("t/1", first, last).rows if "offers" in r["pointer"])
    assert (row["before"], row["after"]) == (1, 2)
    running.runs.cancel("r1")
    restored = running.threads.restore("t/1", first)
    assert (restored.revision > last, restored.extensions["offers"]) == (True, 1)
    fork = running.threads.fork("t/1", new_id="t2", revision=first)
    assert running.threads.state(fork.id).extensions["offers"] == 1
    assert len(running.threads.snapshots("t/1")) >= 4
    running.threads.delete("t2")
    with pytest.raises(NotFound):
        running.threads.get("t2")


class Plan(StateKey[list[str], str]):
    KEY = "plan"
    MERGE = MergeStrategy.EXCLUSIVE
    VALUE = list[str]

    @staticmethod
    def apply(value: list[str], update: str) -> list[str]:
        return [*value, update]


def test_commit__updates_as_an_object__is_refused_with_the_expected_list(
    running: Commonhold,
) -> None:
    update: Any = {"key": "offers", "update": 1}
    with pytest.raises(TypeError, match=r"^updates must be a list of "):
        running.runs.commit("r1", update)
    with pytest.raises(Invalid, match=r"/updates .* is not of type"):
        running.request("POST", "/runs/r1/commits", {"updates": update})
    assert "offers" not in running.threads.state("t/1").extensions


def test_state_key__thread_scope__value_survives_a_new_run(running: Commonhold) -> None:
    running.runs.commit("r1", [{"key": "offers", "update": 1}, {"key": "plan", "update": ["fly"]}])
    running.runs.change("r1", status="done", termination_reason={"type": "natural_end"})
    running.runs.start("t/1", "r2")
    extensions = running.threads.state("t/1").extensions
    assert (extensions["plan"], "offers" in extensions) == (["fly"], False)


def test_store__in_process__can_be_moved_to_the_server_and_back(running: Commonhold) -> None:
    store = StateStore()
    store.register_key(Plan)
    store.commit(MutationBatch().update(Plan, "fly"))
    running.runs.cancel("r1")
    running.threads.import_state("t/1", store.export_persisted().document(), mode="merge")
    kept = running.threads.state("t/1", scope="thread", export=True)
    other = StateStore()
    other.register_key(Plan)
    other.apply_seed(PersistedState.read(kept.document))
    assert other.read(Plan) == ["fly"]


def test_ticket__opened__is_decided_once(running: Commonhold) -> None:
    asked = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "arguments": {"n": 1}}
    running.runs.commit(
        "r1", run={"status": "waiting", "waiting": {"reason": "user_input", "tickets": [asked]}}
    )
    assert [ticket.id for ticket in running.tickets.list(status="pending")] == ["k1"]
    assert [ticket.tool_name for ticket in running.runs.tickets("r1")] == ["refund"]
    assert running.tickets.decide("k1", "resume", {"ok": True}).payload == {"ok": True}
    assert running.tickets.get("k1", wait=30).status == "resumed"
    with pytest.raises(Conflict, match=r"^ticket already decided: k1"):
        running.tickets.decide("k1", "cancel")


def test_mailbox__claim_nack_ack__work(running: Commonhold) -> None:
    running.dispatches.enqueue("t/1", {"task": 1}, agent_id="planner", priority=5)
    (held,) = running.dispatches.claim(consumer="w", wait=5)
    assert (held.payload, bool(held.claim_token)) == ({"task": 1}, True)
    assert running.dispatches.extend(held, 60).lease_until is not None
    assert running.dispatches.nack(held, "busy", retry_after=0).status == "Queued"
    (again,) = running.dispatches.claim(consumer="w", wait=30)
    with pytest.raises(Conflict):
        running.dispatches.ack(held)
    assert running.dispatches.ack(again).status == "Acked"
    assert len(running.dispatches.claim(consumer="w")) == 0


def test_plugin__installed_and_uninstalled__is_complete(state: Commonhold) -> None:
    state.plugins.install("team", state_keys=[{"key": "mood"}], namespaces=[{"name": "team"}])
    assert state.state_keys.get("mood").plugin == "team"
    assert state.namespaces.get("team").plugin == "team"
    with pytest.raises(Conflict, match=r"^plugin already installed: team"):
        state.plugins.install("team")
    assert state.plugins.uninstall("team") is None
    assert state.plugins.uninstall("team") is None, "deletions are idempotent"
    with pytest.raises(NotFound, match=r"^unknown key: mood"):
        state.state_keys.get("mood")


def test_bulk__each_item__has_a_result(running: Commonhold) -> None:
    (run,) = running.runs.list().items
    results = running.runs.cancel_many([run.id, "none"])
    assert [(each.id, each.status) for each in results] == [(run.id, 200), ("none", 404)]
    assert results[1].problem["type"] == "/problems/not-found"
    assert running.threads.delete_many(["t/1"], dry_run=True)[0].status == 204
    assert running.threads.get("t/1").id == "t/1"
    assert [each.status for each in running.threads.delete_many(["t/1", "none"])] == [204, 204]


def test_conversation__thread_is_created_meanwhile__keeps_what_is_appended(
    state: Commonhold, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = state.send

    def send_after_the_other(call: Any) -> Any:
        if call.path == "/threads":
            monkeypatch.undo()
            state.threads.create("t9", title="Theirs")
        return send(call)

    monkeypatch.setattr(state, "send", send_after_the_other)
    assert Conversation(state, "t9").append({"role": "user", "content": "hi"}) == 1


def test_conversation__agentkit_interface__works(state: Commonhold) -> None:
    state.register(KV)
    talk = Conversation(state, "t9")
    assert talk.messages == []
    assert talk.append({"role": "user", "content": "hi"}) == 1
    assert talk.append({"role": "assistant", "content": "ho", "extra": {"a": 1}}) == 2
    assert [message["content"] for message in talk.messages] == ["hi", "ho"]
    assert talk.messages[1]["extra"] == {"a": 1}
    talk.kv.set("user-name", "Alice")
    assert (talk.kv.get("user-name"), talk.kv.has("x")) == ("Alice", False)


def test_change__metadata__is_merged_and_checked_against_the_version(running: Commonhold) -> None:
    read = running.threads.get("t/1")
    changed = running.threads.change(
        "t/1", metadata={"x": None, "y": {"z": 1}}, merge=True, if_version=read.version
    )
    assert (changed.version, changed.metadata) == (read.version + 1, {"y": {"z": 1}})
    with pytest.raises(VersionConflict) as stale:
        running.threads.change("t/1", metadata={}, if_version=read.version)
    assert (stale.value.expected, stale.value.actual) == (read.version, changed.version)
    assert running.threads.change("t/1", metadata={"only": 1}).metadata == {"only": 1}
    with pytest.raises(VersionConflict):
        running.threads.delete("t/1", if_version=read.version)
    with pytest.raises(RevisionConflict):
        running.threads.delete("t/1", expected_revision=0)
    running.threads.delete("t/1", if_version=read.version + 2, expected_revision=1)


def test_change__parent_none__makes_a_thread_without_a_parent(running: Commonhold) -> None:
    running.threads.create("t/2", parent_thread_id="t/1")
    assert running.threads.change("t/2", title="kept").parent_thread_id == "t/1"
    assert running.threads.change("t/2", parent_thread_id=None).parent_thread_id is None
    assert [each.id for each in running.threads.list(root=True, prefix="t/2")] == ["t/2"]
