"""Every writing operation fails at each of its SQL statements: it is stored completely or not at
all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from state_admin.domain.access import Role
from state_admin.domain.config import Kind
from state_admin.models import ApiToken, Change, Entry, EntryRevision, Membership, ViewPage
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import (
    batches,
    bulk,
    bulk_patches,
    clearing,
    compaction_jobs,
    compactions,
    config,
    dead_letters,
    dispatches,
    entries,
    erasures,
    exports,
    forks,
    indexing,
    leases,
    maintenance,
    members,
    messages,
    namespaces,
    plugins,
    policies,
    recoveries,
    redactions,
    restores,
    retention,
    revert_jobs,
    reverts,
    runs,
    saved_views,
    snapshots,
    state_keys,
    state_removals,
    thread_patches,
    threads,
    tickets,
    tokens,
    users,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.runs import RunChange
from state_admin.services.snapshots import Read
from tests import builders
from tests.builders import Person, make_namespace, raw
from tests.services.faults import beside_others, fail_everywhere
from tests.services.test_entries import let_expire

_TICKET = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
_LATE = {**_TICKET, "expires_at": "2020-01-01T00:00:00Z", "on_expiry": "cancel"}
_WAIT = RunChange(status="waiting", waiting={"reason": "tool_permission", "tickets": [_TICKET]})
_DONE = RunChange(status="done", termination_reason={"type": "natural_end"})
_PROVIDER = {"adapter": "openai", "api_key": "of-no-use-at-all"}
_HI = {"role": "user", "content": "hi " * 100}
# Every append requests a compaction.
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
    "put again": lambda a: _put(a, "k", precondition=entries.Precondition(1)),
    "patch": lambda a: entries.patch_entry(
        actor=a, namespace="notes", key="k", kind="merge", operations={"b": 1}
    ),
    "patch missing": lambda a: entries.patch_entry(
        actor=a, namespace="notes", key="new", kind="merge", operations={"b": 1}
    ),
    "delete": lambda a: entries.delete_entry(actor=a, namespace="notes", key="k"),
    "delete several": lambda a: entries.delete_entries(
        actor=a, namespace="notes", versions={"k": 1}
    ),
    "restore": lambda a: entries.restore_entry(actor=a, namespace="notes", key="k", version=1),
    "bulk tag": lambda a: bulk.change_entries(
        actor=a, action="tag", seen=[bulk.SelectedEntry("notes", "k", 1)], tag="x"
    ),
    "bulk delete": lambda a: bulk.change_entries(
        actor=a, action="delete", seen=[bulk.SelectedEntry("notes", "k", 1)]
    ),
    "bulk patch": lambda a: bulk_patches.patch_entries(
        actor=a,
        seen=[bulk.SelectedEntry("notes", "k", 1)],
        patch=bulk_patches.Patch("merge", {"b": 1}),
    ),
    "share view": lambda a: saved_views.save_view(
        actor=a, page=ViewPage.RUNS, name="v", query="status=done", shared=True
    ),
    "clear": lambda a: clearing.clear_key(actor=a, key="k"),
    "clear matching": lambda a: clearing.clear_matching(actor=a, namespace="notes"),
    "restore to a moment": lambda a: restores.restore_entries(
        actor=a, at=datetime(2020, 1, 1, tzinfo=UTC), namespace="notes"
    ),
    "revert": lambda a: reverts.revert_entries(
        actor=a, written=[WrittenEntry("notes", "k", 1, 1), WrittenEntry("short", "k", 2, 2)]
    ),
    "request revert": lambda a: revert_jobs.request_revert(actor=a, request_id="some request"),
    "cancel revert": lambda a: revert_jobs.cancel_revert(
        actor=a, revert_id=revert_jobs.Revert.objects.get(target="waits").public_id
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
    "unregister state key": lambda a: state_removals.unregister_state_key(
        actor=a, name="plan", clear=True
    ),
    "install plugin": lambda a: plugins.install_plugin(
        actor=a,
        name="more",
        state_keys=[{"name": "more.plan", "schema": raw({}), "default": raw(None)}],
        namespaces=[{"name": "more", "schema": raw({}), "default": raw(None)}],
    ),
    "uninstall plugin": lambda a: plugins.uninstall_plugin(actor=a, name="kit", entries="delete"),
    "create thread": lambda a: builders.make_thread(a, "fresh", parent_thread_id="t1"),
    "change thread": lambda a: threads.change_thread(
        actor=a, thread_id="t2", title="x", parent_thread_id="t1", reparent=True
    ),
    "delete thread": lambda a: threads.delete_thread(actor=a, thread_id="t1", children="cascade"),
    "append": lambda a: builders.append(a, "t1", _HI, _HI),
    "append with operations": lambda a: messages.append_messages(
        actor=a,
        thread_id="t1",
        messages=[raw(_HI)],
        operations=[
            BatchOperation("put", "notes", "z", value=raw(1)),
            BatchOperation("patch", "notes", "k", patch_kind="merge", operations={"b": 1}),
        ],
    ),
    "append and ask for compaction": lambda a: builders.append(a, "eager", _HI),
    "start run": lambda a: builders.make_run(a, "t2", "r2", timeout_seconds=60),
    "commit": lambda a: builders.commit(a, "r1", {"plan": 2, "temporary": 3}, messages=[_HI]),
    "commit that waits": lambda a: builders.commit(a, "r1", {"plan": 2}, run=_WAIT),
    "commit that ends": lambda a: builders.commit(
        a, "r1", {"plan": 2}, messages=[_HI], run=_DONE, label="last"
    ),
    "commit that read": lambda a: builders.commit(
        a, "r1", {"plan": 2}, reads=[Read("notes", "k", 1), Read("notes", "never", 0)]
    ),
    "take lease": lambda a: leases.take_lease(actor=a, run_id="r1"),
    "release lease": lambda a: leases.release_lease(actor=a, run_id="r1"),
    "fail run": lambda a: recoveries.fail_run(actor=a, run_id="r9"),
    "resume run": lambda a: recoveries.resume_run(actor=a, run_id="r9"),
    "resume from a snapshot": lambda a: recoveries.resume_run(actor=a, run_id="r1", revision=2),
    "expire tickets": lambda a: maintenance.expire_tickets(),
    "change run": lambda a: runs.change_run(actor=a, run_id="r1", change=_DONE),
    "change run that waits": lambda a: runs.change_run(actor=a, run_id="r1", change=_WAIT),
    "patch thread": lambda a: thread_patches.patch_thread(
        actor=a,
        thread_id="t1",
        values={"plan": raw(3)},
        new_messages=[raw(_HI)],
        metadata=raw({"a": 1}),
    ),
    "count tokens": lambda a: runs.change_run(
        actor=a, run_id="r1", change=RunChange(input_tokens=5)
    ),
    "cancel run": lambda a: runs.cancel_run(actor=a, run_id="r1"),
    "heartbeat": lambda a: runs.heartbeat(actor=a, run_id="r1"),
    "decide": lambda a: tickets.decide_ticket(
        actor=a, ticket_id="k9", action="resume", payload=raw({})
    ),
    "restore snapshot": lambda a: snapshots.restore_snapshot(actor=a, thread_id="t1", revision=2),
    "import snapshot": lambda a: exports.import_snapshot(
        actor=a, thread_id="t1", revision=9, extensions={"plan": raw(5)}
    ),
    "fork": lambda a: forks.fork_thread(actor=a, thread_id="t1", fork_id="f1", revision=2),
    "fork with a fold": lambda a: forks.fork_thread(actor=a, thread_id="long", fork_id="f1"),
    "mark": lambda a: snapshots.mark_revision(actor=a, thread_id="t1", revision=2, label="x"),
    "enqueue": lambda a: _enqueue(a, "t1", dedupe_key="x"),
    "claim": lambda a: dispatches.claim_dispatches(actor=a, limit=10),
    "claim of a thread": lambda a: dispatches.claim_dispatches(actor=a, thread_id="box"),
    "extend": lambda a: dispatches.extend_dispatch(actor=a, **_claimed("held")),
    "ack": lambda a: dispatches.ack_dispatch(actor=a, **_claimed("held")),
    "nack": lambda a: dispatches.nack_dispatch(actor=a, error="x", **_claimed("held")),
    "cancel dispatch": lambda a: dispatches.cancel_dispatch(
        actor=a, dispatch_id=_dispatch("box", "Queued")
    ),
    "interrupt": lambda a: dispatches.interrupt_thread(actor=a, thread_id="held"),
    "replay": lambda a: dead_letters.replay_dispatch(
        actor=a, dispatch_id=_dispatch("box", "DeadLetter")
    ),
    "replay all": lambda a: dead_letters.replay_dead_letters(actor=a),
    "clear dead letters": lambda a: dead_letters.clear_dead_letters(actor=a),
    "settle mailboxes": lambda a: dispatches.settle_mailboxes(),
    "decide and wake": lambda a: tickets.decide_ticket(
        actor=a, ticket_id="k8", action="resume", payload=raw({})
    ),
    "ask for compaction": lambda a: compactions.request_compaction(actor=a, thread_id="t1"),
    "undo compaction": lambda a: compactions.undo_compaction(
        actor=a, compaction_id=_job("long", "done")
    ),
    "cancel compaction": lambda a: compactions.cancel_compaction(
        actor=a, compaction_id=_job("queued", "queued")
    ),
    "delete compaction policy": lambda a: policies.delete_policy(
        actor=a, scope="thread", name="t1"
    ),
    "put compaction policy": lambda a: policies.put_policy(
        actor=a, scope="agent", name="planner", body=raw({"prompt": "x"})
    ),
    "queue histories": lambda a: retention.queue_histories(),
    "queue snapshots": lambda a: retention.queue_snapshots(),
    "ask for history compaction": lambda a: retention.request_history(actor=a, namespace="short"),
    "ask for snapshot compaction": lambda a: retention.request_snapshots(actor=a, thread_id="t1"),
    "pin version": lambda a: retention.pin_version(
        actor=a, namespace="notes", key="k", version=1, pinned=True
    ),
    "put record": lambda a: builders.make_record(a, "providers", "openai", _PROVIDER),
    "patch record": lambda a: config.patch_record(
        actor=a, kind=Kind.PROVIDERS, identity="openai", patch="merge", operations={"api_key": None}
    ),
    "restore record": lambda a: config.restore_record(
        actor=a, kind=Kind.PROVIDERS, identity="openai", version=1
    ),
    "delete record": lambda a: config.delete_record(
        actor=a, kind=Kind.PROVIDERS, identity="openai"
    ),
    "redact record": lambda a: redactions.redact_entry(
        actor=a, namespace="config.providers", key="openai", reason="x"
    ),
    "create token": lambda a: tokens.create_token(actor=a, name="x", role=Role.VIEWER),
    "change token": lambda a: tokens.change_token(
        actor=a, token_id=ApiToken.objects.earliest("pk").pk, changes={"rate_per_minute": 7}
    ),
    "rotate token": lambda a: tokens.rotate_token(
        actor=a, token_id=ApiToken.objects.earliest("pk").pk, overlap=timedelta(days=1)
    ),
    "add member": lambda a: members.add_member(actor=a, username="carol", role=Role.VIEWER),
    "change role": lambda a: members.change_role(actor=a, member_id=_viewer(a), role=Role.EDITOR),
    "remove member": lambda a: members.remove_member(actor=a, member_id=_viewer(a)),
    "renew link": lambda a: members.renew_link(actor=a, member_id=_viewer(a)),
    "end sessions": lambda a: members.end_member_sessions(actor=a, member_id=_viewer(a)),
}


def _viewer(actor: Any) -> int:
    """A member who is not the last admin, created outside the tested operation."""
    rows = Membership.objects.filter(workspace_id=actor.workspace_id, role="viewer")
    return rows.get().pk


def _enqueue(actor: Any, thread_id: str, **fields: Any) -> str:
    return dispatches.enqueue_dispatch(
        actor=actor, thread_id=thread_id, payload=raw(1), **fields
    ).public_id


def _dispatch(thread_id: str, status: str) -> str:
    row = dispatches.Dispatch.objects.get(thread__public_id=thread_id, status=status)
    return row.public_id


def _claimed(thread_id: str) -> dict[str, str]:
    return {"dispatch_id": _dispatch(thread_id, "Claimed"), "claim_token": TOKENS[thread_id]}


TOKENS: dict[str, str] = {}


def _fill_mailboxes(actor: Any) -> None:
    """box: a dead letter and a queued dispatch. held: a claimed one. lapsed: a claimed one with an
    expired lease."""
    _enqueue(actor, "box", max_attempts=1)
    token = dispatches.claim_dispatches(actor=actor).token
    dispatches.nack_dispatch(
        actor=actor, dispatch_id=_dispatch("box", "Claimed"), claim_token=token
    )
    for thread_id in ("box", "held", "lapsed"):
        _enqueue(actor, thread_id)
        if thread_id != "box":
            claims = dispatches.claim_dispatches(actor=actor, thread_id=thread_id)
            TOKENS[thread_id] = claims.token
    dispatches.Dispatch.objects.filter(thread__public_id="lapsed").update(
        lease_until=dispatches.Now()
    )
    dispatches.Mailbox.objects.filter(thread__public_id="lapsed").update(due_at=dispatches.Now())


def _job(thread_id: str, status: str) -> str:
    job = compactions.Compaction.objects.get(thread__public_id=thread_id, status=status)
    return job.public_id


@pytest.fixture
def world(alice: Person) -> Person:
    """One of everything that the operations above need."""
    a = alice.actor
    bob = builders.make_person("bob", "acme", Role.VIEWER)
    users.make_login_link(bob.user)
    make_namespace(a, "notes")
    make_namespace(a, "short", history_keep_last=1)
    for namespace in ("notes", "short"):
        for number in range(2):
            builders.put(a, namespace, "k", {"a": number})
    entries.delete_entry(actor=a, namespace="notes", key="k")
    builders.put(a, "notes", "k", {"a": 1})
    Entry.objects.filter(key="k", namespace__name="notes").update(version=1)
    EntryRevision.objects.filter(
        entry__key="k", entry__namespace__name="notes", version__gt=1
    ).delete()
    builders.make_record(a, "providers", "openai", _PROVIDER)
    builders.put(a, "notes", "expiring", 1, ttl_seconds=60)
    let_expire("expiring")
    builders.make_state_key(a, "plan")
    builders.make_state_key(a, "temporary", persistent=False)
    kit = [{"name": "kit.plan", "schema": raw({}), "default": raw(None)}]
    plugins.install_plugin(actor=a, name="kit", state_keys=kit, namespaces=kit)
    builders.put(a, "kit.plan", "k", 1)
    for thread_id in ("t1", "t2", "asks", "queued", "long", "box", "held", "lapsed", "wakes"):
        builders.make_thread(a, thread_id, resource_id="ann" if thread_id == "long" else "")
    builders.make_thread(a, "child", parent_thread_id="t1")
    builders.make_thread(a, "eager", policy=raw(_EAGER))
    builders.put(a, "notes", "thread::t1", 1)
    builders.make_run(a, "t1", "r1")
    builders.commit(a, "r1", {"plan": 1, "temporary": 1, "kit.plan": 1})
    builders.commit(a, "r1", {"plan": 2})
    policies.put_policy(actor=a, scope="thread", name="t1", body=raw({"snapshot_keep_last": 1}))
    builders.make_run(a, "asks", "r9")
    opened = [{**_TICKET, "ticket_id": "k9"}, {**_LATE, "ticket_id": "late"}]
    waiting = {"reason": "tool_permission", "tickets": opened}
    builders.commit(a, "r9", run=RunChange(status="waiting", waiting=waiting))
    builders.make_run(a, "wakes", "r8")
    by_dispatch = {**waiting, "tickets": [{**_TICKET, "ticket_id": "k8"}], "wake": "dispatch"}
    builders.commit(a, "r8", run=RunChange(status="waiting", waiting=by_dispatch))
    _fill_mailboxes(a)
    builders.append(a, "long", *builders.conversation(6, rounds=2))
    for thread_id in ("queued", "long"):
        compactions.request_compaction(actor=a, thread_id=thread_id)
    assert compaction_jobs.run_compaction(_job("long", "queued")) == "done"
    revert_jobs.request_revert(actor=a, request_id="waits")
    return alice


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the work: {name}")
        raise


# Creating the world takes as long as several operations, so each test has many of them.
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize(
    "is_sampled", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["sample", "all"]
)
def test_operation__failure_at_any_statement__leaves_nothing(
    world: Person, part: int, is_sampled: bool
) -> None:
    for name in sorted(WORKS)[part::6]:
        with explained(name):
            work = partial(WORKS[name], world.actor)
            assert fail_everywhere(work, is_sampled=is_sampled) >= 1


def test_operation__concurrent_writes_between_its_statements__is_at_one_position_in_the_feed(
    world: Person,
) -> None:
    before = Change.objects.latest("pk").pk
    torn = {}
    for name, work in WORKS.items():
        with transaction.atomic():
            with beside_others():
                work(world.actor)
            rows = Change.objects.filter(pk__gt=before).order_by("pk").values_list("xid", "kind")
            if len({xid for xid, _ in rows}) > 1:
                torn[name] = list(rows)
            transaction.set_rollback(True)
    assert torn == {}


def test_operations__of_the_services__are_all_listed() -> None:
    """Fails for a new operation without a row here."""
    verbs = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (
            batches,
            bulk,
            bulk_patches,
            clearing,
            compactions,
            config,
            dead_letters,
            dispatches,
            entries,
            erasures,
            exports,
            forks,
            leases,
            members,
            messages,
            namespaces,
            plugins,
            policies,
            recoveries,
            redactions,
            restores,
            revert_jobs,
            reverts,
            runs,
            saved_views,
            snapshots,
            state_keys,
            state_removals,
            threads, tickets, tokens, builders.commits,
        )
        for name in vars(module)
        if not name.startswith("_")
        and getattr(vars(module)[name], "__module__", "") == module.__name__
        and "require(actor" in _source(vars(module)[name])
    }  # fmt: skip
    only_look = {"config.check_record", "entries.check_entry"}
    # Creates by register_namespace, which is listed.
    delegating = {"namespaces.ensure_namespace"}
    assert verbs - only_look - delegating == {
        "batches.run_batch", "bulk.change_entries", "bulk_patches.patch_entries", "clearing.clear_key", "clearing.clear_matching", "commits.commit",
        "compactions.cancel_compaction",
        "compactions.request_compaction", "compactions.retry_compaction",
        "compactions.undo_compaction",
        "config.delete_record",
        "config.patch_record",
        "config.put_record",
        "config.restore_record",
        "dead_letters.clear_dead_letters",
        "dead_letters.replay_dead_letters",
        "dead_letters.replay_dispatch",
        "dispatches.ack_dispatch",
        "dispatches.cancel_dispatch",
        "dispatches.claim_dispatches",
        "dispatches.enqueue_dispatch",
        "dispatches.extend_dispatch",
        "dispatches.interrupt_thread",
        "dispatches.nack_dispatch",
        "entries.delete_entries",
        "entries.delete_entry",
        "entries.patch_entry", "entries.put_entries", "entries.put_entry",
        "entries.restore_entry", "erasures.erase", "exports.import_snapshot",
        "forks.fork_thread", "redactions.redact_entry",
        "restores.restore_entries", "revert_jobs.cancel_revert", "reverts.revert_entries",
        "leases.release_lease",
        "leases.take_lease",
        "members.add_member", "members.change_role", "members.end_member_sessions",
        "members.remove_member", "members.renew_link",
        "messages.append_messages",
        "namespaces.register_namespace",
        "policies.delete_policy", "policies.put_policy",
        "recoveries.resume_run",
        "namespaces.unregister_namespace", "runs.change_run", "runs.heartbeat", "runs.start_run",
        "plugins.install_plugin", "plugins.uninstall_plugin",
        "saved_views.save_view", "snapshots.mark_revision", "snapshots.restore_snapshot", "state_keys.register_state_key",
        "state_removals.unregister_state_key",
        "threads.change_thread", "threads.create_thread", "threads.delete_thread",
        "tickets.decide_ticket", "tokens.change_token", "tokens.create_token", "tokens.revoke_token",
        "tokens.rotate_token",
    }  # fmt: skip


def _source(thing: Any) -> str:
    import inspect

    return inspect.getsource(thing) if inspect.isfunction(thing) else ""
