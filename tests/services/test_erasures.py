"""Erasing all data of a resource, or of a key (the right to be forgotten)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from state_admin.models import (
    AuditRow,
    Change,
    Compaction,
    Entry,
    EntryRevision,
    Message,
    Revert,
    Run,
    RunRead,
    Thread,
    WebhookDelivery,
    erasures_sql,
    webhooks_sql,
)
from state_admin.models.feed_sql import FeedFilter, FeedRow, Position, read_end, read_page
from state_admin.services import (
    compaction_jobs,
    compactions,
    deliveries,
    dispatches,
    entries,
    erasures,
    forks,
    indexing,
    presence,
    retention,
    revert_jobs,
    search,
    tokens,
    webhook_flow,
    webhook_pump,
    webhooks,
)
from state_admin.services.errors import BadRequest, Forbidden, Invalid
from state_admin.services.runs import RunChange
from state_admin.services.snapshots import Read
from tests import builders, feeding
from tests.builders import Person, make_namespace, make_thread, make_token, put, raw
from tests.feeding import wait_for_feed
from tests.services.canary import tables_with
from tests.services.racing import interleave, overlap

SECRET = "canary5e1d08"
# Contained in the resource, its threads and their content, ids included.
RESOURCE = f"customer-{SECRET}"


def erase(person: Any, **options: Any) -> erasures.Erasure:
    actor = getattr(person, "actor", person)
    return erasures.erase(actor=actor, **{"reason": "asked to", **options})


@pytest.fixture
def world(alice: Person) -> Person:
    """Two threads of the resource with all kinds of data, and a third of another resource."""
    actor = alice.actor
    for name in ("notes", "other"):
        make_namespace(actor, name)
    builders.make_state_key(actor, "plan")
    for number in (1, 2):
        thread_id = f"t{number}-{SECRET}"
        kept = alice.api(
            "POST",
            "/threads",
            {"id": thread_id, "resource_id": RESOURCE, "title": SECRET},
            Idempotency_Key=thread_id,
        )
        assert kept.status_code == 201
        run_id = f"r{number}-{SECRET}"
        builders.make_run(actor, thread_id, run_id)
        builders.commit(actor, run_id, {"plan": SECRET}, label=SECRET)
        ticket = {
            "ticket_id": f"k{number}-{SECRET}", "tool_call_id": "c1", "tool_name": "refund",
            "arguments": {"to": SECRET},
        }  # fmt: skip
        waiting = {"reason": "tool_permission", "tickets": [ticket]}
        put(actor, "notes", f"thread::{thread_id}", {"note": SECRET}, reason=SECRET)
        read = Read("notes", f"thread::{thread_id}", 1)
        builders.commit(
            actor, run_id, run=RunChange(status="waiting", waiting=waiting), reads=[read]
        )
        builders.append(
            actor,
            thread_id,
            {"role": "user", "content": SECRET},
            *builders.conversation(6, rounds=2),
        )
        dispatches.enqueue_dispatch(
            actor=actor, thread_id=thread_id, run_id=run_id, agent_id=SECRET, payload=raw(SECRET)
        )
        for key in (f"thread::{thread_id}", f"parent_thread::{thread_id}"):
            put(actor, "notes", key, {"note": SECRET}, reason=SECRET)
        entries.delete_entry(actor=actor, namespace="notes", key=f"thread::{thread_id}")
    job = compactions.request_compaction(actor=actor, thread_id=f"t2-{SECRET}")
    assert compaction_jobs.run_compaction(job.public_id) == "done"
    make_thread(actor, "child", parent_thread_id=f"t1-{SECRET}", resource_id="other")
    builders.append(actor, "child", {"role": "user", "content": "kept"})
    builders.make_run(actor, "child", "kept-run", parent_run_id=f"r1-{SECRET}")
    Thread.objects.filter(public_id="child").update(forked_from={"thread_id": f"t1-{SECRET}"})
    put(actor, "notes", "thread::child", "kept")
    hook, _ = webhooks.create_webhook(actor=actor, name="all", url="https://example.com/hook")
    for change in Change.objects.all():
        row = FeedRow(
            change.xid, change.pk, change.at, change.kind, change.namespace, change.key,
            change.thread, change.run, change.version, change.actor_name,
        )  # fmt: skip
        webhook_pump._delivery(hook, row).save()
    indexing.index_entries()
    return alice


_FULL = {
    "audit",
    "changes",
    "compactions",
    "dispatches",
    "entries",
    "entry_revisions",
    "idempotency_records",
    "mailboxes",
    "messages",
    "revisions",
    "run_reads",
    "runs",
    "search_documents",
    "state_values",
    "threads",
    "tickets",
    "webhook_deliveries",
}  # fmt: skip


def test_erase__resource__is_in_no_table(world: Person) -> None:
    assert tables_with(SECRET) == _FULL
    told = erase(world, resource_id=RESOURCE, dry_run=True)
    assert tables_with(SECRET) == _FULL
    done = erase(world, resource_id=RESOURCE)
    assert tables_with(SECRET) == set()
    assert done.counts.pop("stored_answers") == 2
    assert done == told
    assert {name: done.counts[name] for name in ("threads", "runs", "tickets", "entries")} == {
        "threads": 2, "runs": 2, "tickets": 2, "entries": 4
    }  # fmt: skip
    assert all(done.counts[table] for table in _FULL - {"idempotency_records"})
    indexing.index_entries()
    assert tables_with(SECRET) == set()


def test_erase__resource__keeps_others_unchanged(world: Person, mallory: Person) -> None:
    make_thread(mallory.actor, "theirs", resource_id=RESOURCE)
    erase(world, resource_id=RESOURCE)
    child = Thread.objects.get(public_id="child")
    assert (child.parent_id, child.forked_from) == (None, None)
    assert Message.objects.get(thread=child).body.find("kept") > 0
    assert Run.objects.get().parent_run_id == ""
    assert [entry.key for entry in Entry.objects.all()] == ["thread::child"]
    assert WebhookDelivery.objects.filter(subject="state/notes/thread%3A%3Achild").exists()
    assert Thread.objects.filter(public_id="theirs").exists()
    assert builders.commit(world.actor, "kept-run", {"plan": 1}).revision > 0


def test_erase__audit__has_the_erasure_without_names(world: Person) -> None:
    before = AuditRow.objects.count()
    actions = sorted(AuditRow.objects.values_list("action", flat=True))
    done = erase(world, resource_id=RESOURCE, reason="asked by mail")
    assert AuditRow.objects.count() == before + 1
    row = AuditRow.objects.get(action="erase")
    assert (row.key, row.reason, row.actor_name) == (done.erased, "asked by mail", "alice")
    assert row.detail == done.counts
    assert row.key == erasures.mark_of(RESOURCE)
    assert sorted([*actions, "erase"]) == sorted(AuditRow.objects.values_list("action", flat=True))
    scrubbed = AuditRow.objects.filter(action="entry.put", key=done.erased)
    assert scrubbed.count() == 6
    assert set(scrubbed.values_list("reason", flat=True)) == {""}
    assert Change.objects.filter(kind="erase").count() == 1


@pytest.mark.django_db(transaction=True)
def test_erase__resource__keeps_the_writes_of_its_runs_to_other_entries(alice: Person) -> None:
    """Only the name of the run is removed: followers of the feed still get these changes."""
    make_namespace(alice.actor)
    make_thread(alice.actor, "t1", resource_id=RESOURCE)
    builders.make_run(alice.actor, "t1", f"r1-{SECRET}")
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="all", url="https://example.com/hook")
    indexing.index_entries()
    agent = replace(alice.actor, run_id=f"r1-{SECRET}")
    put(agent, "notes", "shared", {"title": "before"}, reason="a plan")
    webhook_pump.pump_webhook(hook.public_id)
    put(agent, "notes", "shared", {"title": "unicorn"})
    erase(alice, resource_id=RESOURCE)
    indexing.index_entries()
    found = search.search_entries(actor=alice.actor, text="unicorn").hits
    assert [hit.entry.key for hit in found] == ["shared"]
    assert webhook_pump.pump_webhook(hook.public_id) == 2  # the second write, and the erasure
    deliveries = WebhookDelivery.objects.filter(subject="state/notes/shared").order_by("pk")
    told = [json.loads(delivery.body) for delivery in deliveries]
    assert [(event["data"]["version"], event["data"]["run_id"]) for event in told] == [
        (1, None),
        (2, None),
    ]
    audited = AuditRow.objects.filter(action="entry.put", key="shared").order_by("version")
    assert list(audited.values_list("version", "reason")) == [(1, "a plan"), (2, "")]
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
def test_erase__feed__has_one_change(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1)
    before = read_end(alice.workspace.pk).position
    erase(alice, key="k")
    end = read_end(alice.workspace.pk).position
    rows = read_page(alice.actor, after=before, until=end, filters=FeedFilter(), limit=10)
    assert [(row.kind, row.key) for row in rows] == [("erase", erasures.mark_of("k"))]
    rows = read_page(alice.actor, after=Position(), until=end, filters=FeedFilter(), limit=10)
    assert "k" not in {row.key for row in rows}


def test_erase__key__is_deleted_in_every_namespace_with_its_history(world: Person) -> None:
    key = f"mail::{SECRET}"
    for name in ("notes", "other"):
        for value in (1, 2):
            put(world.actor, name, key, {"n": value})
    other = f"thread::t2-{SECRET}"
    told = erase(world, key=key, dry_run=True).counts
    assert (told["entries"], told["entry_revisions"], told["threads"]) == (2, 4, 0)
    erase(world, key=key)
    assert not Entry.objects.filter(key=key).exists()
    assert not AuditRow.objects.filter(key=key).exists()
    assert Entry.objects.filter(key=other).exists()
    assert put(world.actor, "notes", key, 1).version == 1
    assert erase(world, key="nothing here").counts["entries"] == 0


def test_erase__key__keeps_audit_rows_of_others_with_that_name(alice: Person) -> None:
    """A token, a plugin and a state key may have the name of an entry."""
    tokens.create_token(actor=alice.actor, name="prod", role=builders.Role.VIEWER, reason="for CI")
    builders.make_state_key(alice.actor, "prod")
    make_namespace(alice.actor)
    put(alice.actor, "notes", "prod", 1)
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="all", url="https://example.com/hook")
    for change in Change.objects.filter(key="prod"):
        row = FeedRow(
            change.xid, change.pk, change.at, change.kind, change.namespace, change.key,
            change.thread, change.run, change.version, change.actor_name,
        )  # fmt: skip
        webhook_pump._delivery(hook, row).save()
    told = erase(alice, key="prod", dry_run=True).counts
    done = erase(alice, key="prod").counts
    assert (done["audit"], done["changes"], done["webhook_deliveries"]) == (1, 1, 1)
    assert {**done, "stored_answers": 0} == {**told, "stored_answers": 0}
    made = AuditRow.objects.get(action="token.create", reason="for CI")
    assert (made.key, made.detail) == ("prod", {"role": "viewer"})
    kinds = Change.objects.filter(key="prod").values_list("kind", flat=True)
    assert sorted(kinds) == ["state_key.register", "token.create"]
    assert WebhookDelivery.objects.filter(webhook=hook).count() == 2


@pytest.mark.django_db(transaction=True)
def test_erase__replay_of_dead_letters_meanwhile__waits_for_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure changes the deliveries of the run's writes, and then deletes those of the thread."""
    make_namespace(alice.actor, "notes")
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="all", url="https://example.com/hook")
    make_thread(alice.actor, "t1", resource_id=RESOURCE)
    builders.make_run(alice.actor, "t1", "r1")
    put(replace(alice.actor, run_id="r1"), "notes", "shared", 1)
    feeding.pump(hook)
    WebhookDelivery.objects.update(status="dead")
    replay = partial(webhook_flow.replay_dead_letters, actor=alice.actor, webhook_id=hook.public_id)
    with interleave(monkeypatch, erasures_sql, "_delete", replay):
        erase(alice, resource_id=RESOURCE)
    shared = WebhookDelivery.objects.get(subject="state/notes/shared")
    assert shared.status == "queued"


@pytest.mark.django_db(transaction=True)
def test_erase__commit_that_reports_a_read_meanwhile__leaves_no_key(alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", SECRET, 1)
    make_thread(alice.actor, "t1")
    builders.make_run(alice.actor, "t1", "r1")
    commit = partial(builders.commit, alice.actor, "r1", reads=[Read("notes", SECRET, 1)])
    overlap(commit, lambda: erase(alice, key=SECRET))
    assert not RunRead.objects.exists()
    put(alice.actor, "notes", SECRET, 1)
    with pytest.raises(Invalid, match="no version 1"):
        overlap(lambda: erase(alice, key=SECRET), commit)
    assert not RunRead.objects.exists()


@pytest.mark.parametrize(
    ("sweep", "status"),
    [
        (deliveries.purge_deliveries, "dead"),
        (partial(webhooks_sql.bury_lost_deliveries, most=1), "delivering"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_erase__sweep_of_deliveries_meanwhile__leaves_them_to_the_next_one(
    alice: Person, monkeypatch: pytest.MonkeyPatch, sweep: Callable[[], object], status: str
) -> None:
    """The erasure changes the delivery of the run's write, which is the last one, before the others."""
    make_namespace(alice.actor, "notes")
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="all", url="https://example.com/hook")
    make_thread(alice.actor, "t1", resource_id=RESOURCE)
    builders.make_run(alice.actor, "t1", "r1")
    put(replace(alice.actor, run_id="r1"), "notes", "shared", 1)
    feeding.pump(hook)
    past = timezone.now() - timedelta(days=400)
    rows = WebhookDelivery.objects.all()
    rows.update(test=True, status=status, attempts=1, finished_at=past, lease_expires_at=past)
    with interleave(monkeypatch, erasures_sql, "_delete", sweep):
        erase(alice, resource_id=RESOURCE)
    shared = rows.filter(subject="state/notes/shared", status=status, claim=0)
    assert shared.exists()
    sweep()
    assert not shared.exists()


def test_erase__resource__includes_threads_and_no_keys_of_frameworks(
    world: Person,
) -> None:
    """As the guides of the frameworks say: such entries are erased by their keys."""
    make_namespace(world.actor, "adk.user", default={})
    key = f"shop:{RESOURCE}"
    put(world.actor, "adk.user", key, {"likes": SECRET})
    erase(world, resource_id=RESOURCE)
    assert Entry.objects.filter(key=key).exists()
    erase(world, key=key)
    assert tables_with(SECRET) == set()


def _start_revert(alice: Person, key: str, kind: str) -> Revert:
    """A revert that has found its entries: `a`, which is written again afterwards, `key` and `z`."""
    make_namespace(alice.actor)
    for each in ("a", key, "z"):
        put(replace(alice.actor, request_id="r"), "notes", each, 1)
    options: dict[str, Any] = {"request_id": "r"}
    if kind == "moment":
        options = {"at": timezone.now() - timedelta(minutes=1), "namespace": "notes"}
    job = revert_jobs.request_revert(actor=alice.actor, **options)
    while job.total is None:
        revert_jobs.run_revert(job.pk, seconds=0)
        job.refresh_from_db()
    put(alice.actor, "notes", "a", 2)
    return job


def _end_revert(job: Revert) -> tuple[str, int | None, int, int]:
    while revert_jobs.run_revert(job.pk) == "queued":
        pass
    job.refresh_from_db()
    return job.status, job.total, job.reverted, job.skipped


@pytest.mark.parametrize("kind", ["request", "moment"])
def test_erase__key_at_which_a_revert_paused__is_in_no_table_and_the_revert_continues(
    alice: Person, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(revert_jobs, "MOST", 2)
    job = _start_revert(alice, f"k-{SECRET}", kind)
    assert revert_jobs.run_revert(job.pk, seconds=0) == "queued"
    job.refresh_from_db()
    assert job.progress == {"after": ["notes", f"k-{SECRET}"]}
    erase(alice, key=f"k-{SECRET}")
    assert tables_with(SECRET) == set()
    assert _end_revert(job) == ("done", 3, 2, 1)


def test_erase__key_at_which_the_search_of_a_revert_paused__is_in_no_table(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revert_jobs, "SPAN", 1)
    make_namespace(alice.actor)
    for key in ("a", f"k-{SECRET}", "z"):
        put(alice.actor, "notes", key, 1)
    at = timezone.now() - timedelta(minutes=1)
    job = revert_jobs.request_revert(actor=alice.actor, at=at, namespace="notes")
    for _ in range(2):
        revert_jobs.run_revert(job.pk, seconds=0)
    job.refresh_from_db()
    assert job.progress == {"examined": ["notes", f"k-{SECRET}"]}
    erase(alice, key=f"k-{SECRET}")
    assert tables_with(SECRET) == set()
    assert _end_revert(job) == ("done", 2, 2, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["request", "moment"])
def test_erase__while_a_revert_writes_the_key__waits_for_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    job = _start_revert(alice, f"k-{SECRET}", kind)
    # The filter of a revert that was requested for this key. An erasure changes it.
    Revert.objects.filter(at__isnull=False).update(filters={"key": f"k-{SECRET}"})
    step = "revert_entries" if kind == "request" else "restore_found"
    with interleave(monkeypatch, revert_jobs, step, lambda: erase(alice, key=f"k-{SECRET}")):
        assert _end_revert(job) == ("done", 3, 2, 1)
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
def test_erase__while_changes_are_queued_for_a_webhook__waits_for_them(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    wait_for_feed(alice.workspace.pk)
    hook, _ = webhooks.create_webhook(actor=alice.actor, name="all", url="https://example.com/hook")
    put(alice.actor, "notes", f"k-{SECRET}", 1)
    wait_for_feed(alice.workspace.pk)
    with interleave(
        monkeypatch, webhook_pump, "_delivery", lambda: erase(alice, key=f"k-{SECRET}")
    ):
        webhook_pump.pump_webhook(hook.public_id)
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
def test_erase__thread_that_is_forked_meanwhile__erases_the_fork(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, f"t1-{SECRET}", resource_id=RESOURCE)
    builders.append(alice.actor, f"t1-{SECRET}", {"role": "user", "content": SECRET})

    def fork() -> None:
        forks.fork_thread(actor=alice.actor, thread_id=f"t1-{SECRET}", fork_id="copy")

    with interleave(monkeypatch, erasures, "lock_for_deletion", fork):
        done = erase(alice, resource_id=RESOURCE)
    assert done.counts["threads"] == 2
    assert tables_with(SECRET) == set()


def test_erase__run_that_requested_a_revert__is_in_no_table_and_the_revert_continues(
    alice: Person,
) -> None:
    make_namespace(alice.actor)
    for key in ("a", "b"):
        put(replace(alice.actor, request_id="r"), "notes", key, 1)
    make_thread(alice.actor, "t1", resource_id=RESOURCE)
    builders.make_run(alice.actor, "t1", f"r1-{SECRET}")
    agent = replace(alice.actor, run_id=f"r1-{SECRET}")
    job = revert_jobs.request_revert(actor=agent, request_id="r")
    erase(alice, resource_id=RESOURCE)
    assert tables_with(SECRET) == set()
    assert _end_revert(job) == ("done", 2, 2, 0)


@pytest.mark.django_db(transaction=True)
def test_erase__run_whose_revert_has_begun__is_in_no_table(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    put(replace(alice.actor, request_id="r"), "notes", "a", 1)
    make_thread(alice.actor, "t1", resource_id=RESOURCE)
    builders.make_run(alice.actor, "t1", f"r1-{SECRET}")
    agent = replace(alice.actor, run_id=f"r1-{SECRET}")
    job = revert_jobs.request_revert(actor=agent, request_id="r")
    with interleave(
        monkeypatch, revert_jobs, "_search", lambda: erase(alice, resource_id=RESOURCE)
    ):
        assert _end_revert(job) == ("done", 1, 1, 0)
    assert tables_with(SECRET) == set()


def _request_history(alice: Person, monkeypatch: pytest.MonkeyPatch, key: str) -> Compaction:
    """A history compaction whose worker is killed after the first batch, which ends with `key`, was stored."""
    monkeypatch.setattr(retention, "BATCH", 2)
    make_namespace(alice.actor, history_keep_last=1)
    for name in ("a", key, "y", "z", "z"):
        put(alice.actor, "notes", name, 1)
    save, saved = retention._save_progress, list[Compaction]()

    def save_once(mine: Compaction) -> None:
        if saved:
            raise InterruptedError
        saved.append(mine)
        save(mine)

    monkeypatch.setattr(retention, "_save_progress", save_once)
    return retention.request_history(actor=alice.actor, namespace="notes")


@pytest.mark.parametrize("cancelled", [True, False])
def test_erase__key_at_which_history_compaction_paused__is_in_no_table(
    alice: Person, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    with monkeypatch.context() as patched:
        job = _request_history(alice, patched, f"k-{SECRET}")
        with pytest.raises(InterruptedError):
            retention.run_retention(job.public_id)
    job.refresh_from_db()
    assert job.progress == {"after": f"k-{SECRET}"}
    if cancelled:
        compactions.cancel_compaction(actor=alice.actor, compaction_id=job.public_id)
    erase(alice, key=f"k-{SECRET}")
    assert tables_with(SECRET) == set()
    Compaction.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert retention.run_retention(job.public_id) == (None if cancelled else "done")
    assert EntryRevision.objects.filter(entry__key="z").count() == 1 + cancelled


@pytest.mark.django_db(transaction=True)
def test_erase__while_history_compaction_pauses_at_the_key__waits_for_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _request_history(alice, monkeypatch, f"k-{SECRET}")
    with (
        interleave(
            monkeypatch, retention, "_save_progress", lambda: erase(alice, key=f"k-{SECRET}")
        ),
        pytest.raises(InterruptedError),
    ):
        retention.run_retention(job.public_id)
    assert tables_with(SECRET) == set()


@pytest.mark.django_db(transaction=True)
def test_erase__history_compaction_fails_after_its_last_attempt__leaves_no_key(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _request_history(alice, monkeypatch, f"k-{SECRET}")
    progress = {"after": f"k-{SECRET}"}
    Compaction.objects.update(attempts=retention.MAX_ATTEMPTS, progress=progress)
    with interleave(monkeypatch, retention, "_close", lambda: erase(alice, key=f"k-{SECRET}")):
        assert retention.run_retention(job.public_id) == "failed"
    assert tables_with(SECRET) == set()


def test_erase__thread_whose_policy_is_being_edited__is_in_no_table(alice: Person) -> None:
    make_thread(alice.actor, f"t1-{SECRET}", resource_id=RESOURCE)
    presence.announce_editing_policy(actor=alice.actor, scope="thread", name=f"t1-{SECRET}")
    assert erase(alice, resource_id=RESOURCE).counts["presences"] == 1
    assert tables_with(SECRET) == set()


def test_erase__role_and_arguments__are_checked(world: Person, bob: Person) -> None:
    for narrowing in ({"namespaces": ["*"]}, {"thread_prefixes": ["t"]}):
        _, narrow = make_token(world, builders.Role.ADMIN, **narrowing)
        with pytest.raises(Forbidden):
            erase(narrow, key="k")
    with pytest.raises(Forbidden):
        erase(bob, key="k")
    for options in ({}, {"key": "k", "resource_id": "r"}):
        with pytest.raises(BadRequest):
            erase(world, **options)
    with pytest.raises(Invalid):
        erase(world, key="k", reason=" ")
    told = world.api("POST", "/erase?dry_run=true", {"key": "k", "reason": "x"}).json()
    assert told["erased"] == erasures.mark_of("k")
    assert set(told["counts"]) == {*erasures_sql.DELETED, "audit"}
    assert world.api("POST", "/erase", {"key": "k"}).status_code == 422


def test_erasure__tables_with_references__are_all_listed() -> None:
    roots = {"Thread", "Run", "Message", "Entry", "Revision"}
    missing = {
        model._meta.db_table
        for model in apps.get_app_config("state_admin").get_models()
        for relation in model._meta.get_fields()
        if relation.concrete
        and relation.is_relation
        and relation.related_model is not None
        and getattr(relation.related_model, "__name__", "") in roots
    } - set(erasures_sql.DELETED)
    assert missing == set()
