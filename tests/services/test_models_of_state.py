"""Random histories against models in plain Python: entries, and threads.

Each example runs in a transaction that is rolled back. After every rule the database must equal the
model; at the end every version and every revision is read again, and history, audit rows and
changes are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from state_admin.domain import diffs
from state_admin.domain.access import Role
from state_admin.domain.patches import json_patch, merge_patch
from state_admin.models import (
    AuditRow,
    Change,
    Entry,
    EntryRevision,
    Message,
    Revision,
    StateValue,
    Thread,
)
from state_admin.services import (
    batches,
    entries,
    entry_views,
    maintenance,
    runs,
    snapshots,
    threads,
)
from state_admin.services.commits import Step, commit
from state_admin.services.entries import Precondition
from state_admin.services.errors import Conflict, RevisionConflict, VersionConflict
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import make_namespace, make_person, make_state_key, raw

SETTINGS = settings(
    max_examples=25,
    stateful_step_count=25,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
LONG = settings(SETTINGS, max_examples=100, stateful_step_count=50)

KEYS = st.sampled_from(["a", "b", "thread::c"])
SCALARS = st.sampled_from([None, True, 0, 1, -1.5, "", "x", "é", 10**20])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["p", "q", "r/~"]), inner, max_size=3)
    ),
    max_leaves=6,
)


class InTransaction(RuleBasedStateMachine):
    """Each example runs in a transaction that is rolled back."""

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.actor = make_person("alice", "acme", Role.ADMIN).actor

    def teardown(self) -> None:
        try:
            if not transaction.get_rollback():
                self.check_at_the_end()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def check_at_the_end(self) -> None:
        raise NotImplementedError


@dataclass
class Key:
    """The model of one key: its versions, None for a deletion."""

    versions: list[tuple[str, Any] | None] = field(default_factory=list)
    live: bool = False
    unswept: bool = False

    @property
    def version(self) -> int:
        return len(self.versions) if self.live else 0


class Entries(InTransaction):
    """Entries against a dict of version lists."""

    DEFAULT = {"p": "default"}

    @initialize()
    def start(self) -> None:
        make_namespace(self.actor, default=self.DEFAULT)
        self.keys: dict[str, Key] = {}

    def key(self, name: str) -> Key:
        return self.keys.setdefault(name, Key())

    def value(self, name: str) -> Any:
        key = self.key(name)
        return key.versions[-1][1] if key.live else self.DEFAULT

    def wrote(self, name: str, operation: str, value: Any) -> None:
        key = self.key(name)
        key.versions.append((operation, value))
        key.live, key.unswept = True, False

    def removed(self, name: str) -> None:
        self.key(name).versions.append(None)
        self.key(name).live = False

    def attempt(self, name: str, expected: int | None, write: Callable[[], Any]) -> Any:
        """A conditional write; None if it was refused, which the model must predict."""
        actual = self.key(name).version
        if expected is None or expected == actual:
            return write()
        with pytest.raises(VersionConflict) as refused:
            write()
        told = refused.value.data
        assert (told["expected"], told["actual"]) == (expected, actual)
        return None

    @rule(name=KEYS, value=VALUES, expected=st.none() | st.integers(0, 4))
    def put(self, name: str, value: Any, expected: int | None) -> None:
        live = self.key(name).live
        done = self.attempt(
            name,
            expected,
            lambda: entries.put_entry(
                actor=self.actor,
                namespace="notes",
                key=name,
                value=raw(value),
                precondition=Precondition(expected),
            ),
        )
        if done is not None:
            self.wrote(name, "put", value)
            assert (done.created, done.entry.version) == (not live, self.key(name).version)

    @rule(name=KEYS, value=VALUES)
    def put_if_changed(self, name: str, value: Any) -> None:
        same = self.key(name).live and entries.values.same(self.value(name), value)
        done = entries.put_entry(
            actor=self.actor,
            namespace="notes",
            key=name,
            value=raw(value),
            precondition=Precondition(None, True),
        )
        assert done.changed is not same
        if not same:
            self.wrote(name, "put", value)

    @rule(name=KEYS, change=VALUES, expected=st.none() | st.integers(0, 4))
    def merge(self, name: str, change: Any, expected: int | None) -> None:
        done = self.attempt(
            name,
            expected,
            lambda: entries.patch_entry(
                actor=self.actor,
                namespace="notes",
                key=name,
                kind="merge",
                operations=change,
                precondition=Precondition(expected),
            ),
        )
        if done is not None:
            self.wrote(name, "patch", merge_patch(self.value(name), change))

    @rule(name=KEYS, expected=st.none() | st.integers(0, 4))
    def delete(self, name: str, expected: int | None) -> None:
        live = self.key(name).live
        version = self.attempt(
            name,
            expected,
            lambda: entries.delete_entry(
                actor=self.actor, namespace="notes", key=name, precondition=Precondition(expected)
            ),
        )
        if version is not None and live:
            self.removed(name)
            assert version == len(self.key(name).versions)
        elif version is not None:
            assert version == 0

    @precondition(lambda self: any(key.versions for key in self.keys.values()))
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n for n, key in self.keys.items() if key.versions]))
        version = data.draw(st.integers(1, len(self.key(name).versions)))
        old = self.key(name).versions[version - 1]
        address = {"actor": self.actor, "namespace": "notes", "key": name, "version": version}
        if old is None:
            with pytest.raises(entries.NotFound):
                entries.restore_entry(**address)
            return
        entries.restore_entry(**address)
        self.wrote(name, "restore", old[1])

    @rule(name=KEYS, sweep=st.booleans())
    def expire(self, name: str, sweep: bool) -> None:
        if not self.key(name).live:
            return
        Entry.objects.filter(key=name).update(expires_at=Now() - timedelta(days=1))
        self.key(name).live, self.key(name).unswept = False, True
        if sweep:
            unswept = [key for key in self.keys.values() if key.unswept]
            assert maintenance.expire_entries() == {"expired": len(unswept)}
            for key in unswept:
                key.versions.append(None)
                key.unswept = False

    @rule(sets=st.dictionaries(KEYS, VALUES, min_size=1), drop=KEYS, stale=st.booleans())
    def batch(self, sets: dict[str, Any], drop: str, stale: bool) -> None:
        operations = [
            batches.BatchOperation("put", "notes", name, value=raw(value))
            for name, value in sets.items()
        ]
        operations.append(
            batches.BatchOperation("delete", "notes", drop, if_version=99 if stale else None)
        )
        operations.append(batches.BatchOperation("get", "notes", drop))
        if stale:
            with pytest.raises(VersionConflict):
                batches.run_batch(actor=self.actor, operations=operations)
            return
        outcomes = batches.run_batch(actor=self.actor, operations=operations)
        for name, value in sets.items():
            self.wrote(name, "put", value)
        if self.key(drop).live:
            self.removed(drop)
        assert outcomes[-1].entry.exists is False

    @invariant()
    def reads_agree(self) -> None:
        for name, key in self.keys.items():
            view = entry_views.read_entry(actor=self.actor, namespace="notes", key=name)
            assert (view.exists, view.version) == (key.live, key.version)
            assert entries.values.load(view.value) == self.value(name)

    def check_at_the_end(self) -> None:
        written = 0
        for name, key in self.keys.items():
            past: list[Any] = []
            for version, was in enumerate(key.versions, start=1):
                view = entry_views.read_past(
                    actor=self.actor, namespace="notes", key=name, at_version=version
                )
                assert view.exists is (was is not None)
                past.append(entries.values.load(view.value))
                assert past[-1] == (self.DEFAULT if was is None else was[1])
            for old, new in pairwise(past):
                patch = diffs.json_patch(old, new)
                assert entries.values.same(json_patch(old, patch), new)
            written += len(key.versions)
        counts = (
            EntryRevision.objects.count(),
            AuditRow.objects.filter(action__startswith="entry.").count(),
            Change.objects.filter(kind__startswith="entry.").count(),
        )
        assert counts == (written, written, written)


@pytest.mark.django_db
def test_entries__random_history__equals_a_dict() -> None:
    run_state_machine_as_test(Entries, settings=SETTINGS)


class Threads(InTransaction):
    """A thread's state, messages and runs against a list of states by revision."""

    SCOPES = {"sum": "run", "plan": "run", "notes": "thread", "grant": "run"}

    @initialize()
    def start(self) -> None:
        a = self.actor
        make_state_key(a, "sum", default=0, merge="commutative", reducer="add")
        make_state_key(a, "plan")
        make_state_key(a, "notes", default=[], reducer="append", scope="thread")
        make_state_key(a, "grant", persistent=False)
        builders.make_thread(a, "t1")
        self.states: list[dict[str, Any]] = [{}]
        self.counts = [0]
        self.messages = 0
        self.run: str | None = None
        self.runs = 0

    @property
    def now(self) -> dict[str, Any]:
        return dict(self.states[-1])

    def advanced(self, state: dict[str, Any], to: int) -> None:
        self.states.append(state)
        self.counts.append(self.messages)
        assert to == len(self.states) - 1

    @staticmethod
    def reduced(state: dict[str, Any], updates: dict[str, Any]) -> dict[str, Any]:
        made = dict(state)
        for key, update in updates.items():
            if key == "sum":
                made[key] = made.get(key, 0) + update
            elif key == "notes":
                made[key] = [*made.get(key, []), update]
            else:
                made[key] = update
        return made

    UPDATES = st.fixed_dictionaries(
        {},
        optional={
            "sum": st.integers(-3, 3),
            "plan": VALUES,
            "notes": SCALARS,
            "grant": SCALARS,
        },
    )

    @precondition(lambda self: self.run is None)
    @rule()
    def start_run(self) -> None:
        self.runs += 1
        self.run = f"r{self.runs}"
        run = builders.make_run(self.actor, "t1", self.run)
        kept = {k: v for k, v in self.now.items() if self.SCOPES[k] == "thread"}
        self.advanced(kept, run.last_revision)
        self.started = run.start_revision

    @precondition(lambda self: self.run is not None)
    @rule()
    def start_second_run(self) -> None:
        with pytest.raises(Conflict):
            builders.make_run(self.actor, "t1", "another")

    @precondition(lambda self: self.run is not None)
    @rule(updates=UPDATES, texts=st.integers(0, 2), back=st.none() | st.integers(0, 4))
    def commit(self, updates: dict[str, Any], texts: int, back: int | None) -> None:
        base = None if back is None else max(len(self.states) - 1 - back, 0)
        fields: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}] * texts}
        made = builders.step(updates, base_revision=base, **fields)

        def do() -> Any:
            return commit(actor=self.actor, run_id=self.run or "", step=made)

        if not updates and not texts:
            assert do().revision == len(self.states) - 1
        elif base is not None and base != len(self.states) - 1:
            with pytest.raises(RevisionConflict):
                do()
        else:
            done = do()
            self.messages += texts
            self.advanced(self.reduced(self.now, updates), done.revision)
            assert done.message_count == self.messages

    @precondition(lambda self: self.run is not None)
    @rule(updates=UPDATES, back=st.integers(1, 4))
    def rebase(self, updates: dict[str, Any], back: int) -> None:
        base = max(len(self.states) - 1 - back, 0)
        if not updates:
            return
        step = builders.step(updates, base_revision=base, rebase=True)
        changed = [key for key in updates if not self._same_since(key, base)]
        if changed:
            with pytest.raises(RevisionConflict) as refused:
                commit(actor=self.actor, run_id=self.run or "", step=step)
            assert set(changed) <= set(refused.value.data["keys"]) <= set(updates)
            return
        try:
            done = commit(actor=self.actor, run_id=self.run or "", step=step)
        except RevisionConflict:
            # Updated since, whatever the result: refused too.
            since = Revision.objects.filter(number__gt=base, touched__overlap=list(updates))
            assert since.exists()
        else:
            self.advanced(self.reduced(self.now, updates), done.revision)

    def _same_since(self, key: str, base: int) -> bool:
        missing = object()
        return all(
            state.get(key, missing) == self.states[base].get(key, missing)
            for state in self.states[base:]
        )

    @precondition(lambda self: self.run is not None)
    @rule(key=st.sampled_from(["sum", "plan", "notes", "grant"]))
    def clear(self, key: str) -> None:
        batch = builders.Batch((builders.Update(key, clear=True),))
        done = commit(actor=self.actor, run_id=self.run or "", step=Step((batch,)))
        state = self.now
        state.pop(key, None)
        self.advanced(state, done.revision)

    @precondition(lambda self: self.run is not None)
    @rule(updates=UPDATES, by_commit=st.booleans())
    def finish(self, updates: dict[str, Any], by_commit: bool) -> None:
        change = RunChange(status="done", termination_reason={"type": "natural_end"})
        state = self.now
        if by_commit:
            step = builders.step(updates, run=change)
            number = commit(actor=self.actor, run_id=self.run or "", step=step).revision
            state = self.reduced(state, updates)
        else:
            number = runs.change_run(
                actor=self.actor, run_id=self.run or "", change=change
            ).last_revision
        state.pop("grant", None)
        self.run = None
        self.advanced(state, number)

    @rule(texts=st.integers(1, 3))
    def append(self, texts: int) -> None:
        made = builders.append(self.actor, "t1", *[{"role": "user", "content": "y"}] * texts)
        self.messages += texts
        assert made.thread.message_count == self.messages

    @rule(back=st.integers(0, 6))
    def restore(self, back: int) -> None:
        number = max(len(self.states) - 1 - back, 0)
        done = snapshots.restore_snapshot(actor=self.actor, thread_id="t1", revision=number)
        state = dict(self.states[number])
        if self.run is None or number < self.started:
            state.pop("grant", None)  # its run is over
        self.advanced(state, done.revision)

    @invariant()
    def state_agrees(self) -> None:
        thread = Thread.objects.get(public_id="t1")
        assert (thread.revision, thread.message_count) == (len(self.states) - 1, self.messages)
        assert self._read(None) == self.states[-1]
        assert (thread.active_run is None) is (self.run is None)

    def _read(self, revision: int | None) -> dict[str, Any]:
        held = snapshots.read_snapshot(actor=self.actor, thread_id="t1", revision=revision).parsed()
        life = held.pop("__runtime.run_lifecycle", None)
        if revision is None and self.runs:
            assert life["run_id"] == f"r{self.runs}"
            assert life["status"] == ("done" if self.run is None else "running")
        return held

    def check_at_the_end(self) -> None:
        for number, state in enumerate(self.states):
            assert self._read(number) == state, f"revision {number}"
        numbers = list(Revision.objects.order_by("number").values_list("number", "message_count"))
        assert numbers == [(n, self.counts[n]) for n in range(1, len(self.states))]
        seqs = Message.objects.order_by("seq").values_list("seq", flat=True)
        assert list(seqs) == list(range(1, self.messages + 1))
        with_version = {"thread": "t1", "version__gt": 0}
        audited = AuditRow.objects.filter(**with_version).exclude(action="message.append")
        assert sorted(audited.values_list("version", flat=True)) == [n for n, _ in numbers]
        changed = Change.objects.filter(**with_version).exclude(kind="message.append")
        assert sorted(changed.values_list("version", flat=True)) == [n for n, _ in numbers]


@pytest.mark.django_db
def test_threads__random_history__equals_a_list_of_states() -> None:
    run_state_machine_as_test(Threads, settings=SETTINGS)


@pytest.mark.django_db
def test_threads__deleted_at_the_end__leave_no_rows() -> None:
    class Deleted(Threads):
        def check_at_the_end(self) -> None:
            threads.delete_thread(actor=self.actor, thread_id="t1")
            for model in (Thread, Message, Revision, StateValue):
                assert not model.objects.exists()

    run_state_machine_as_test(Deleted, settings=settings(SETTINGS, max_examples=4))


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", [Entries, Threads])
@pytest.mark.django_db
def test_random_history__for_long__equals_the_model(machine: type[InTransaction]) -> None:
    run_state_machine_as_test(machine, settings=LONG)
