"""POST /threads/delete and POST /runs/cancel: each item has its own result."""

from __future__ import annotations

import pytest

from state_admin.models import AuditRow, Run, Thread
from tests.builders import Person, make_run, make_thread


@pytest.fixture
def threads(alice: Person) -> Person:
    for name in ("t1", "t2", "delete", "cancel"):
        make_thread(alice.actor, name)
    make_thread(alice.actor, "child", parent_thread_id="t2")
    make_run(alice.actor, "t1", "r1")
    make_run(alice.actor, "t2", "r2")
    make_run(alice.actor, "cancel", "cancel")
    return alice


def test_delete__several_threads__each_has_a_result(threads: Person, mallory: Person) -> None:
    make_thread(mallory.actor, "theirs")
    body = {"ids": ["t1", "none", "t2", "theirs"], "children": "reject"}
    answer = threads.api("POST", "/threads/delete", body, Change_Reason="cleanup")
    results = answer.json()["results"]
    assert [(each["id"], each["status"]) for each in results] == [
        ("t1", 204), ("none", 204), ("t2", 409), ("theirs", 204)
    ]  # fmt: skip
    assert results[2]["problem"]["type"] == "/problems/conflict"
    left = {"t2", "child", "delete", "cancel", "theirs"}
    assert set(Thread.objects.values_list("public_id", flat=True)) == left
    row = AuditRow.objects.get(action="thread.delete")
    assert (row.thread, row.reason) == ("t1", "cleanup")


def test_delete__dry_run__deletes_nothing(threads: Person) -> None:
    body = {"ids": ["t1", "t2"], "children": "reject"}
    told = threads.api("POST", "/threads/delete?dry_run=true", body).json()
    assert told["dry_run"] is True
    assert [each["status"] for each in told["results"]] == [204, 409]
    assert Thread.objects.filter(public_id="t1").exists()


def test_cancel__several_runs__each_has_a_result(threads: Person) -> None:
    threads.api("POST", "/runs/r1/cancel")
    dry = threads.api("POST", "/runs/cancel?dry_run=true", {"ids": ["r1", "r2", "none"]}).json()
    assert Run.objects.get(public_id="r2").status != "done"
    results = threads.api("POST", "/runs/cancel", {"ids": ["r1", "r2", "none"]}).json()["results"]
    assert [each["status"] for each in results] == [200, 200, 404]
    assert [each["status"] for each in dry["results"]] == [200, 200, 404]
    assert Run.objects.get(public_id="r2").status == "done"
    assert AuditRow.objects.filter(run="r2", action="run.done").count() == 1


def test_bulk__repeated_with_one_key__answers_from_the_record(threads: Person) -> None:
    sent = [
        threads.api("POST", "/runs/cancel", {"ids": ["r1"]}, Idempotency_Key="k1") for _ in range(2)
    ]
    assert [each.json()["results"][0]["status"] for each in sent] == [200, 200]


@pytest.mark.parametrize("path", ["/threads/delete", "/runs/cancel"])
@pytest.mark.parametrize("ids", [[], ["x"] * 201, [""], "x", None])
def test_bulk__wrong_ids__is_422(path: str, ids: object, threads: Person) -> None:
    assert threads.api("POST", path, {"ids": ids}).status_code == 422


def test_bulk__thread_or_run_with_the_id_of_the_bulk_path__is_addressable(threads: Person) -> None:
    assert threads.api("GET", "/threads/delete").json()["id"] == "delete"
    assert threads.api("GET", "/runs/cancel").json()["id"] == "cancel"
    assert threads.api("DELETE", "/threads/delete").status_code == 204
    assert threads.api("POST", "/runs/cancel/cancel").json()["status"] == "done"
