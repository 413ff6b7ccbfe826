"""Random histories of mailboxes against a model in plain Python.

Time is the model's: a rule lets it pass, and shifts the rows accordingly. The sweep runs in some
histories and never in others: nothing may depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from state_admin.models import AuditRow, Change, Dispatch, Mailbox, dispatches_sql
from state_admin.services import dead_letters, dispatches
from state_admin.services.errors import Conflict
from tests.builders import make_thread, raw
from tests.services.test_models_of_state import LONG, SETTINGS, InTransaction

# A step is fast, and failures need some of them.
USUAL = settings(SETTINGS, max_examples=20, stateful_step_count=30)
THREADS = ["t1", "t2", "t3"]
OPEN = ("Queued", "Claimed")
# Longer than the statements of a history take, so that model and database agree on what is due.
STEP = 1000


# Thread, priority, delay, dedupe key, attempts.
WANTED = st.tuples(
    st.sampled_from(THREADS),
    st.sampled_from([0, 128, 255]),
    st.sampled_from([0, 0, 0, STEP]),
    st.sampled_from(["", "", "", "a"]),
    st.integers(1, 3),
)


@dataclass
class Row:
    """A dispatch in the model; times are in model seconds."""

    number: int
    thread: str
    priority: int
    available: int
    dedupe: str
    epoch: int
    max_attempts: int
    status: str = "Queued"
    attempts: int = 0
    token: str = ""
    lease: int = 0


class MailboxMachine(InTransaction):
    @initialize()
    def begin(self) -> None:
        for thread in THREADS:
            make_thread(self.actor, thread)
        self.rows: dict[str, Row] = {}
        self.epochs = dict.fromkeys(THREADS, 0)
        self.now = 0
        self.verbs = 0
        self.old_tokens = ["wrong"]

    # The model ---------------------------------------------------------------------------

    def of(self, thread: str, *statuses: str) -> list[Row]:
        found = [r for r in self.rows.values() if r.thread == thread and r.status in statuses]
        return sorted(found, key=lambda row: (row.priority, row.number))

    def fail(self, row: Row, available: int) -> None:
        row.attempts += 1
        row.token, row.lease = "", 0
        if row.epoch < self.epochs[row.thread]:
            row.status = "Superseded"
        elif row.attempts >= row.max_attempts:
            row.status = "DeadLetter"
        else:
            row.status, row.available = "Queued", available

    def settle(self, *threads: str) -> int:
        returned = 0
        for thread in threads:
            for row in self.of(thread, "Claimed"):
                if row.lease <= self.now:
                    self.old_tokens.append(row.token)
                    self.fail(row, self.now)
                    returned += 1
        self.verbs += returned
        return returned

    def named(self, *statuses: str) -> list[str]:
        return [n for n, row in self.rows.items() if not statuses or row.status in statuses]

    def has(self, *statuses: str) -> bool:
        return bool(self.named(*statuses))

    def pick(self, data: Any, *statuses: str) -> str:
        name: str = data.draw(st.sampled_from(self.named(*statuses)))
        return name

    # The verbs ---------------------------------------------------------------------------

    @rule(wanted=st.lists(WANTED, min_size=1, max_size=5))
    def enqueue_some(self, wanted: list[tuple[str, int, int, str, int]]) -> None:
        for one in wanted:
            self.enqueue(*one)

    def enqueue(
        self, thread: str, priority: int, delay: int, dedupe: str, max_attempts: int
    ) -> None:
        from django.utils import timezone

        wanted = {
            "actor": self.actor,
            "thread_id": thread,
            "payload": raw(len(self.rows)),
            "priority": priority,
            "available_at": timezone.now() + timedelta(seconds=delay) if delay else None,
            "dedupe_key": dedupe,
            "max_attempts": max_attempts,
        }
        if dedupe and any(row.dedupe == dedupe for row in self.of(thread, *OPEN)):
            with pytest.raises(Conflict):
                dispatches.enqueue_dispatch(**wanted)
            return
        made = dispatches.enqueue_dispatch(**wanted)
        self.verbs += 1
        self.rows[made.public_id] = Row(
            len(self.rows), thread, priority, self.now + delay, dedupe, self.epochs[thread],
            max_attempts,
        )  # fmt: skip

    @rule(thread=st.sampled_from(["", "", *THREADS]), limit=st.integers(1, 4))
    def claim(self, thread: str, limit: int) -> None:
        self.claim_some(thread, limit)

    def claim_some(self, thread: str, limit: int) -> None:
        threads = [thread] if thread else THREADS
        self.settle(*threads)
        heads = []
        for each in threads:
            line = [row for row in self.of(each, "Queued") if row.available <= self.now]
            if line and not self.of(each, "Claimed"):
                heads.append(line[0])
        wanted = sorted(heads, key=lambda row: (row.priority, row.number))[:limit]
        got = dispatches.claim_dispatches(
            actor=self.actor, thread_id=thread, limit=limit, lease_seconds=STEP
        )
        assert [self.rows[d.public_id] for d in got.dispatches] == wanted
        for row in wanted:
            row.status, row.token, row.lease = "Claimed", got.token, self.now + STEP
        self.verbs += len(wanted)

    @precondition(lambda self: self.has("Claimed"))
    @rule(
        data=st.data(),
        verb=st.sampled_from(["ack", "extend", "nack", "nack"]),
        right=st.sampled_from([True, True, True, False]),
    )
    def answer(self, data: Any, verb: str, right: bool) -> None:
        name = self.pick(data, *(("Claimed",) if right else ()))
        row = self.rows[name]
        token = row.token if right else data.draw(st.sampled_from(self.old_tokens))
        stale = row.epoch < self.epochs[row.thread]
        call: Any = {
            "ack": dispatches.ack_dispatch,
            "extend": dispatches.extend_dispatch,
            "nack": dispatches.nack_dispatch,
        }[verb]
        more: dict[str, Any] = {"extend": {"lease_seconds": 2 * STEP}}.get(verb, {})
        if verb == "nack":
            more = {"retry_after": data.draw(st.sampled_from([0, STEP]))}
        refused = token != row.token or row.status != "Claimed" or (stale and verb != "nack")
        if refused:
            with pytest.raises(Conflict):
                call(actor=self.actor, dispatch_id=name, claim_token=token, **more)
            return
        call(actor=self.actor, dispatch_id=name, claim_token=token, **more)
        self.verbs += 1
        if verb == "extend":
            row.lease = self.now + 2 * STEP
            return
        self.old_tokens.append(token)
        if verb == "ack":
            row.status, row.token = "Acked", ""
        else:
            self.fail(row, self.now + more["retry_after"])

    @precondition(lambda self: self.has())
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        name = self.pick(data)
        if self.rows[name].status != "Queued":
            with pytest.raises(Conflict):
                dispatches.cancel_dispatch(actor=self.actor, dispatch_id=name)
            return
        dispatches.cancel_dispatch(actor=self.actor, dispatch_id=name)
        self.rows[name].status = "Cancelled"
        self.verbs += 1

    @rule(thread=st.sampled_from(THREADS))
    def interrupt(self, thread: str) -> None:
        done = dispatches.interrupt_thread(actor=self.actor, thread_id=thread)
        queued = self.of(thread, "Queued")
        active = self.of(thread, "Claimed")
        self.epochs[thread] += 1
        assert (done.epoch, done.superseded_dispatches) == (self.epochs[thread], len(queued))
        assert (self.rows[done.active.id] if done.active else None) == (
            active[0] if active else None
        )
        for row in queued:
            row.status = "Superseded"

    @precondition(lambda self: self.has("DeadLetter"))
    @rule(data=st.data())
    def replay(self, data: Any) -> None:
        name = self.pick(data, "DeadLetter")
        row = self.rows[name]
        if row.dedupe and any(r.dedupe == row.dedupe for r in self.of(row.thread, *OPEN)):
            with pytest.raises(Conflict):
                dead_letters.replay_dispatch(actor=self.actor, dispatch_id=name)
            return
        dead_letters.replay_dispatch(actor=self.actor, dispatch_id=name)
        row.status, row.attempts, row.available = "Queued", 0, self.now
        row.epoch = self.epochs[row.thread]
        self.verbs += 1

    @rule()
    def time_goes_by(self) -> None:
        by = timedelta(seconds=STEP)
        self.now += STEP
        # Also of finished dispatches, which must never become available again.
        Dispatch.objects.update(
            lease_until=F("lease_until") - by, available_at=F("available_at") - by
        )
        Mailbox.objects.update(due_at=F("due_at") - by)

    @rule()
    def sweep(self) -> None:
        assert dispatches.settle_mailboxes()["returned"] == self.settle(*THREADS)
        assert not dispatches_sql.workspaces_with_due()

    # What must hold ----------------------------------------------------------------------

    @invariant()
    def store_agrees(self) -> None:
        if not hasattr(self, "rows"):
            return
        stored = Dispatch.objects.values_list("public_id", "status", "attempts", "epoch")
        assert {row[0]: row[1:] for row in stored} == {
            name: (row.status, row.attempts, row.epoch) for name, row in self.rows.items()
        }
        for thread in THREADS:
            assert len(self.of(thread, "Claimed")) <= 1

    @invariant()
    def free_dispatches_hold_no_claim(self) -> None:
        rows = Dispatch.objects.exclude(status="Claimed")
        assert not rows.exclude(claim_digest="", claimed_by="", lease_until=None).exists()

    def check_at_the_end(self) -> None:
        if not hasattr(self, "rows"):
            return
        trail = {"action__startswith": "dispatch."}
        assert AuditRow.objects.filter(**trail).count() == self.verbs
        assert Change.objects.filter(kind__startswith="dispatch.").count() == self.verbs
        # Nothing is lost: continued work gets every open dispatch, in order, once time has passed.
        for _ in range(3):
            self.time_goes_by()
        while self.has(*OPEN):
            self.claim_some("", 10)
            for name in self.named("Claimed"):
                dispatches.ack_dispatch(
                    actor=self.actor, dispatch_id=name, claim_token=self.rows[name].token
                )
                self.rows[name].status = "Acked"
        self.store_agrees()
        assert not Mailbox.objects.exclude(next_id=None, due_at=None).exists()


@pytest.mark.django_db
def test_mailbox__any_history__equals_the_model() -> None:
    run_state_machine_as_test(MailboxMachine, settings=USUAL)  # type: ignore[no-untyped-call]


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_mailbox__long_histories__equal_the_model() -> None:
    run_state_machine_as_test(MailboxMachine, settings=LONG)  # type: ignore[no-untyped-call]
