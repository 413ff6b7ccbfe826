"""Conflicts of commits: base, theirs and yours of each key, and who changed it."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.domain import values
from state_admin.domain.merging import Batch, Update
from state_admin.models import Revision, StateValue
from state_admin.services import commit_conflicts, commits, snapshots
from tests.builders import Person, commit, make_run, make_state_key, make_thread, raw


@pytest.fixture
def run(alice: Person) -> Person:
    """Thread t1 at revision 2: plan is "a", count is 1; notes and log are absent."""
    a = alice.actor
    make_state_key(a, "plan")
    make_state_key(a, "count", reducer="add", merge="commutative", default=0)
    make_state_key(a, "notes", reducer="append", default=["first"])
    make_state_key(a, "doc", reducer="json_patch", default={})
    make_thread(a, "t1")
    make_run(a, "t1", "r1", agent_id="planner")
    commit(a, "r1", {"plan": "a", "count": 1})
    return alice


def post(person: Person, **body: Any) -> Any:
    return person.api("POST", "/runs/r1/commits", body)


def updates(**given: Any) -> list[dict[str, Any]]:
    return [{"key": key, "update": update} for key, update in given.items()]


@pytest.mark.parametrize("mode", ["fail", "rebase"])
def test_conflict__stale_base__reports_each_changed_key(run: Person, mode: str) -> None:
    commit(run.actor, "r1", {"plan": "b"})
    commit(run.actor, "r1", {"plan": "c", "count": 5})
    answer = post(
        run, base_revision=2, on_conflict=mode, updates=updates(plan="mine", count=2, notes="x")
    )
    assert answer.status_code == 409
    body = answer.json()
    assert body["detail"] == "revision conflict: expected 2, actual 4"
    assert body["hint"] == "Read the state again and retry."
    assert (body["keys"], body["base_kept"]) == (["count", "plan"], True)
    count, plan = body["conflicts"]
    assert plan == {
        "key": "plan", "base": "a", "theirs": "c", "yours": "mine",
        "revisions": [
            {"revision": 4, "kind": "commit", "run_id": "r1", "actor": "alice"},
            {"revision": 3, "kind": "commit", "run_id": "r1", "actor": "alice"},
        ],
    }  # fmt: skip
    assert [count[side] for side in ("base", "theirs", "yours")] == [1, 6, 3]
    assert [moved["revision"] for moved in count["revisions"]] == [4]


def test_conflict__other_keys_changed__reports_that_a_rebase_would_succeed(run: Person) -> None:
    commit(run.actor, "r1", {"plan": "b"})
    body = post(run, base_revision=2, updates=updates(count=1)).json()
    assert (body["keys"], body["conflicts"]) == ([], [])
    assert body["hint"] == "Read the state again and retry, or send on_conflict: rebase."
    done = post(run, base_revision=2, on_conflict="rebase", updates=updates(count=1))
    assert done.status_code == 200


def test_conflict__future_base__has_no_details(run: Person) -> None:
    body = post(run, base_revision=9, updates=updates(plan=1)).json()
    assert body["detail"] == "revision conflict: expected 9, actual 2"
    assert "conflicts" not in body


def test_conflict__absent_side__is_left_out(run: Person) -> None:
    commit(run.actor, "r1", {"notes": ["theirs"]})
    clear = commits.Step((Batch((Update("plan", clear=True),)),))
    commits.commit(actor=run.actor, run_id="r1", step=clear)
    body = post(
        run,
        base_revision=2,
        updates=[*updates(notes="mine", plan="x"), {"key": "plan", "clear": True}],
    ).json()
    notes, plan = body["conflicts"]
    assert "base" not in notes
    assert (notes["theirs"], notes["yours"]) == (["first", "theirs"], ["first", "mine"])
    assert plan["base"] == "a"
    assert "theirs" not in plan
    assert "yours" not in plan
    assert plan["revisions"][0]["revision"] == 4


def test_conflict__update_invalid_on_the_base__returns_the_update_itself(run: Person) -> None:
    commit(run.actor, "r1", {"doc": [{"op": "add", "path": "/a", "value": 1}]})
    patch = [{"op": "replace", "path": "/missing", "value": 2}]
    (doc,) = post(run, base_revision=2, updates=updates(doc=patch)).json()["conflicts"]
    assert "yours" not in doc
    assert doc["updates"] == [{"update": patch}]
    assert doc["theirs"] == {"a": 1}


def test_conflict__base_compacted__returns_theirs_and_the_update(run: Person) -> None:
    commit(run.actor, "r1", {"plan": "b"})
    commit(run.actor, "r1", {"plan": "c"})
    Revision.objects.filter(number__in=(2, 3)).update(dropped=True)
    StateValue.objects.filter(key="plan", valid_to__isnull=False).delete()
    body = post(run, base_revision=2, updates=updates(plan="mine")).json()
    assert body["base_kept"] is False
    (plan,) = body["conflicts"]
    assert plan == {
        "key": "plan", "theirs": "c", "updates": [{"update": "mine"}],
        "revisions": [{"revision": 4, "kind": "commit", "run_id": "r1", "actor": "alice"}],
    }  # fmt: skip


def test_conflict__large_values__are_returned_within_a_limit(
    run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_conflicts, "MAX_SHOWN", 300)
    commit(run.actor, "r1", {"plan": "x" * 400, "count": 1})
    conflicts = post(run, base_revision=2, updates=updates(plan=1, count=1)).json()["conflicts"]
    assert [each["key"] for each in conflicts] == ["count", "plan"]
    assert "theirs" in conflicts[0]
    assert conflicts[1].keys() == {"key", "revisions"}


def test_conflict__other_keys__are_not_returned(run: Person) -> None:
    commit(run.actor, "r1", {"plan": "secret", "count": 5})
    answer = post(run, base_revision=2, updates=updates(count=1))
    assert b"secret" not in answer.content
    assert [each["key"] for each in answer.json()["conflicts"]] == ["count"]


def test_conflict__parallel_branches__returns_the_result_of_each(run: Person) -> None:
    make_state_key(run.actor, "other")
    clash = post(
        run,
        batches=[
            updates(plan="left", count=1),
            updates(notes=["l"]),
            updates(plan="right", count=2, notes=["r"]),
        ],
    )
    assert clash.status_code == 409
    body = clash.json()
    assert body["detail"] == "parallel merge conflict on exclusive key: plan"
    notes, plan = body["conflicts"]
    assert plan == {
        "key": "plan", "base": "a", "theirs": "left", "yours": "right", "batches": [0, 2],
    }  # fmt: skip
    assert notes == {
        "key": "notes", "theirs": ["first", "l"], "yours": ["first", "r"], "batches": [1, 2],
    }  # fmt: skip


def test_conflict__unknown_key_in_two_branches__returns_the_updates(run: Person) -> None:
    body = post(run, batches=[updates(nobody=1), updates(nobody=2)]).json()
    assert body["detail"] == "parallel merge conflict on exclusive key: nobody"
    (nobody,) = body["conflicts"]
    assert nobody["batches"] == [0, 1]
    assert "base" not in nobody


def test_conflict__large_and_exact_numbers__are_returned_exactly(run: Person) -> None:
    update = Update("plan", values.read("[1.10, 123456789012345678901234567890]"))
    commits.commit(actor=run.actor, run_id="r1", step=commits.Step((Batch((update,)),)))
    answer = post(run, base_revision=2, updates=updates(plan=raw(1).value))
    assert b'"theirs":[1.10,123456789012345678901234567890]' in answer.content


def test_conflict__changed_by_a_restore__has_no_run(run: Person) -> None:
    commit(run.actor, "r1", {"plan": "b"})
    snapshots.restore_snapshot(actor=run.actor, thread_id="t1", revision=2)
    (plan,) = post(run, base_revision=3, updates=updates(plan="mine")).json()["conflicts"]
    assert plan["revisions"] == [
        {"revision": 4, "kind": "restore", "run_id": None, "actor": "alice"}
    ]


def test_conflict__clear_on_an_unknown_base__returns_the_request(run: Person) -> None:
    commit(run.actor, "r1", {"plan": "b"})
    commit(run.actor, "r1", {"plan": "c"})
    Revision.objects.filter(number__in=(2, 3)).update(dropped=True)
    asked = [{"key": "plan", "clear": True}]
    (plan,) = post(run, base_revision=2, updates=asked).json()["conflicts"]
    assert plan["updates"] == [{"clear": True}]
