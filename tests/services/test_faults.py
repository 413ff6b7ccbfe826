"""Every verb that writes, failed at each of its SQL statements: all of it or nothing (T7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from state_admin.domain.access import Role
from state_admin.services import (
    batches,
    clearing,
    compactions,
    entries,
    erasures,
    indexing,
    maintenance,
    messages,
    namespaces,
    redactions,
    restores,
    runs,
    snapshots,
    state_keys,
    threads,
    tickets,
    tokens,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_namespace, raw
from tests.services.faults import fail_everywhere
from tests.services.test_entries import let_expire

_TICKET = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
_WAIT = RunChange(status="waiting", waiting={"reason": "tool_permission", "tickets": [_TICKET]})
_DONE = RunChange(status="done", termination_reason={"type": "natural_end"})
_HI = {"role": "user", "content": "hi " * 100}
# Appending anything asks for a compaction.
_EAGER = {"autocompact_threshold": 1, "min_gain_tokens": 0, "min_savings_ratio": 0.0}

Work = Callable[[Any], Any]


def _put(actor: Any, key: str, **options: Any) -> Any:
    return entries.put_entry(
        actor=actor, namespace="notes", key=key, value=raw({"a": 2}), **options
    )


def _batch(actor: Any) -> Any:
    ops = [
        BatchOperation("put", "notes", "z", value=raw(1)),
        BatchOperation("patch", "notes", "k", patch_kind="merge", operations={"b": 1}),
        BatchOperation("get", "notes", "k"),
        BatchOperation("delete", "notes", "expiring"),
    ]
    return batches.run_batch(actor=actor, operations=ops)


WORKS: dict[str, Work] = {
    "put new": lambda a: _put(a, "new"),
    "put again": lambda a: _put(a, "k", when=entries.Precondition(1)),
    "patch": lambda a: entries.patch_entry(
        actor=a, namespace="notes", key="k", kind="merge", operations={"b": 1}
    ),
    "patch missing": lambda a: entries.patch_entry(
        actor=a, namespace="notes", key="new", kind="merge", operations={"b": 1}
    ),
    "delete": lambda a: entries.delete_entry(actor=a, namespace="notes", key="k"),
    "restore": lambda a: entries.restore_entry(actor=a, namespace="notes", key="k", version=1),
    "clear": lambda a: clearing.clear_key(actor=a, key="k"),
    "clear matching": lambda a: clearing.clear_matching(actor=a, namespace="notes"),
    "restore to a moment": lambda a: restores.restore_entries(
        actor=a, at=datetime(2020, 1, 1, tzinfo=UTC), namespace="notes"
    ),
    "redact": lambda a: redactions.redact_entry(actor=a, namespace="notes", key="k", reason="x"),
    "erase resource": lambda a: erasures.erase(actor=a, resource_id="ann", reason="x"),
    "erase key": lambda a: erasures.erase(actor=a, key="k", reason="x"),
    "index": lambda a: indexing.index_entries(),
    "batch": _batch,
    "batch of puts": lambda a: entries.put_entries(
        actor=a, puts=[("notes", key, raw(1)) for key in ("new", "k", "expiring")]
    ),
    "expire": lambda a: maintenance.expire_entries(),
    "register": lambda a: make_namespace(a, "fresh"),
    "change schema": lambda a: make_namespace(a, "notes", schema={"type": "object"}, default={}),
    "unregister": lambda a: namespaces.unregister_namespace(
        actor=a, name="notes", entries="delete"
    ),
    "register state key": lambda a: builders.make_state_key(a, "fresh"),
    "change state key": lambda a: builders.make_state_key(a, "plan", reducer="merge"),
    "create thread": lambda a: builders.make_thread(a, "fresh", parent_thread_id="t1"),
    "change thread": lambda a: threads.change_thread(
        actor=a, thread_id="t2", title="x", parent_thread_id="t1", reparent=True
    ),
    "delete thread": lambda a: threads.delete_thread(actor=a, thread_id="t1", children="cascade"),
    "append": lambda a: builders.append(a, "t1", _HI, _HI),
    "append and ask for compaction": lambda a: builders.append(a, "eager", _HI),
    "start run": lambda a: builders.make_run(a, "t2", "r2", timeout_seconds=60),
    "commit": lambda a: builders.commit(a, "r1", {"plan": 2, "temporary": 3}, messages=[_HI]),
    "commit that waits": lambda a: builders.commit(a, "r1", {"plan": 2}, run=_WAIT),
    "commit that ends": lambda a: builders.commit(
        a, "r1", {"plan": 2}, messages=[_HI], run=_DONE, label="last"
    ),
    "change run": lambda a: runs.change_run(actor=a, run_id="r1", change=_DONE),
    "count tokens": lambda a: runs.change_run(
        actor=a, run_id="r1", change=RunChange(input_tokens=5)
    ),
    "cancel run": lambda a: runs.cancel_run(actor=a, run_id="r1"),
    "heartbeat": lambda a: runs.heartbeat(actor=a, run_id="r1"),
    "decide": lambda a: tickets.decide_ticket(
        actor=a, ticket_id="k9", action="resume", payload=raw({})
    ),
    "restore snapshot": lambda a: snapshots.restore_snapshot(actor=a, thread_id="t1", revision=2),
    "mark": lambda a: snapshots.mark_revision(actor=a, thread_id="t1", revision=2, label="x"),
    "ask for compaction": lambda a: compactions.request_compaction(actor=a, thread_id="t1"),
    "undo compaction": lambda a: compactions.undo_compaction(
        actor=a, compaction_id=_job("long", "done")
    ),
    "cancel compaction": lambda a: compactions.cancel_compaction(
        actor=a, compaction_id=_job("queued", "queued")
    ),
    "compact histories": lambda a: maintenance.compact_histories(),
    "create token": lambda a: tokens.create_token(actor=a, name="x", role=Role.VIEWER),
}


def _job(thread_id: str, status: str) -> str:
    job = compactions.Compaction.objects.get(thread__public_id=thread_id, status=status)
    return job.public_id


@pytest.fixture
def world(alice: Person) -> Person:
    """One of everything that the works above need."""
    a = alice.actor
    make_namespace(a, "notes")
    make_namespace(a, "short", history_keep_last=1)
    for namespace in ("notes", "short"):
        for number in range(2):
            builders.put(a, namespace, "k", {"a": number})
    entries.delete_entry(actor=a, namespace="notes", key="k")
    builders.put(a, "notes", "k", {"a": 1})
    entries.Entry.objects.filter(key="k", namespace__name="notes").update(version=1)
    entries.EntryRevision.objects.filter(
        entry__key="k", entry__namespace__name="notes", version__gt=1
    ).delete()
    builders.put(a, "notes", "expiring", 1, ttl_seconds=60)
    let_expire("expiring")
    builders.make_state_key(a, "plan")
    builders.make_state_key(a, "temporary", persistent=False)
    for thread_id in ("t1", "t2", "asks", "queued", "long"):
        builders.make_thread(a, thread_id, resource_id="ann" if thread_id == "long" else "")
    builders.make_thread(a, "child", parent_thread_id="t1")
    builders.make_thread(a, "eager", policy=raw(_EAGER))
    builders.put(a, "notes", "thread::t1", 1)
    builders.make_run(a, "t1", "r1")
    builders.commit(a, "r1", {"plan": 1, "temporary": 1})
    builders.commit(a, "r1", {"plan": 2})
    builders.make_run(a, "asks", "r9")
    ticket = {**_TICKET, "ticket_id": "k9"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    builders.commit(a, "r9", run=RunChange(status="waiting", waiting=waiting))
    builders.append(a, "long", *builders.conversation(6, rounds=2))
    for thread_id in ("queued", "long"):
        compactions.request_compaction(actor=a, thread_id=thread_id)
    assert compactions.run_compaction(_job("long", "queued")) == "done"
    return alice


@pytest.mark.parametrize("name", WORKS)
def test_verb__failure_at_any_statement__leaves_nothing(world: Person, name: str) -> None:
    assert fail_everywhere(lambda: WORKS[name](world.actor)) >= 1


def test_compaction_run__failure_at_any_statement__can_be_run_again_with_one_effect(
    world: Person,
) -> None:
    """A job is more than one transaction: what must hold is that a later worker finishes it."""
    from django.db import OperationalError, transaction

    from tests.services.faults import Faults, failing

    builders.append(world.actor, "t1", *builders.conversation(6, rounds=2))
    before = builders.Thread.objects.get(public_id="t1").message_count
    job = compactions.request_compaction(actor=world.actor, thread_id="t1").public_id
    number, done = 0, False
    while not done:
        number += 1
        with transaction.atomic():
            with failing(Faults(number)):
                try:
                    done = compactions.run_compaction(job) == "done"
                except OperationalError:
                    transaction.set_rollback(False)  # in production each is a transaction
            if not done:
                compactions.Compaction.objects.filter(public_id=job, status="running").update(
                    lease_expires_at=compactions.Now()
                )
                # The lease is compared with the time of the statement, later than that.
                assert compactions.run_compaction(job) == "done"
            thread = builders.Thread.objects.get(public_id="t1")
            assert thread.message_count == before + 1
            summaries = messages.Message.objects.filter(thread=thread, folds_to__isnull=False)
            assert summaries.count() == 1
            view = messages.effective_messages(thread)
            assert thread.context_tokens == sum(m.estimated_tokens for m in view)
            transaction.set_rollback(True)
    assert number > 8


def test_works__every_verb_of_the_services__is_here() -> None:
    """A verb that is added without a row here fails."""
    verbs = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (
            batches, clearing, compactions, entries, erasures, messages, namespaces,
            redactions, restores, runs, snapshots, state_keys,
            threads, tickets, tokens, builders.commits,
        )
        for name in vars(module)
        if not name.startswith("_")
        and getattr(vars(module)[name], "__module__", "") == module.__name__
        and "require(actor" in _source(vars(module)[name])
    }  # fmt: skip
    assert verbs == {
        "batches.run_batch", "clearing.clear_key", "clearing.clear_matching", "commits.commit",
        "compactions.cancel_compaction",
        "compactions.request_compaction", "compactions.retry_compaction",
        "compactions.undo_compaction", "entries.delete_entry",
        "entries.patch_entry", "entries.put_entries", "entries.put_entry",
        "entries.restore_entry", "erasures.erase", "redactions.redact_entry",
        "restores.restore_entries",
        "messages.append_messages", "namespaces.register_namespace",
        "namespaces.unregister_namespace", "runs.change_run", "runs.heartbeat", "runs.start_run",
        "snapshots.mark_revision", "snapshots.restore_snapshot", "state_keys.register_state_key",
        "threads.change_thread", "threads.create_thread", "threads.delete_thread",
        "tickets.decide_ticket", "tokens.create_token", "tokens.revoke_token",
    }  # fmt: skip


def _source(thing: Any) -> str:
    import inspect

    return inspect.getsource(thing) if inspect.isfunction(thing) else ""
