"""Random histories of a forest of threads against dicts: runs, steps of every reducer, waits and
decisions, restores, exports, imports, forks, deletions.

After every rule the newest state of each thread must be equal; at the end every revision is read
again, and the differences between revisions transform one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from state_admin.domain import diffs, values
from state_admin.domain.merging import Batch, Update
from state_admin.domain.patches import json_patch, merge_patch
from state_admin.models import Message, Revision, Run, StateValue, Thread
from state_admin.services import exports, forks, runs, snapshots, threads, tickets
from state_admin.services.commits import Step, commit
from state_admin.services.errors import Conflict
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import make_run, make_state_key, make_thread, raw
from tests.services.test_models_of_state import LONG, SCALARS, SETTINGS, VALUES, InTransaction

LIFE = "__runtime.run_lifecycle"
# Follows tickets; tests/services/test_tickets.py compares the two.
CALLS = "__runtime.tool_call_states"

# Name: reducer, scope, persistent, commutative, default.
KEYS: dict[str, tuple[str, str, bool, bool, Any]] = {
    "sum": ("add", "run", True, True, 0),
    "high": ("max", "thread", True, True, 0),
    "low": ("min", "run", True, True, 0),
    "tags": ("union", "thread", True, True, []),
    "plan": ("replace", "run", True, False, None),
    "notes": ("append", "thread", True, False, []),
    "doc": ("merge", "thread", True, False, {}),
    "table": ("json_patch", "run", True, False, {}),
    "grant": ("replace", "run", False, False, None),
    "seen": ("replace", "thread", False, False, None),
}
LASTING = {name for name, (_, _, persistent, _, _) in KEYS.items() if persistent}
OF_THREAD = {name for name, (_, scope, _, _, _) in KEYS.items() if scope == "thread"}
COMMUTATIVE = {name for name, (_, _, _, commutative, _) in KEYS.items() if commutative}

_NUMBERS = st.integers(-3, 3)
_PUT = st.builds(lambda name, value: [{"op": "add", "path": f"/{name}", "value": value}],
                 st.sampled_from(["p", "q"]), SCALARS)  # fmt: skip
UPDATES = st.fixed_dictionaries(
    {},
    optional={
        "sum": _NUMBERS,
        "high": _NUMBERS,
        "low": _NUMBERS,
        "tags": st.lists(st.sampled_from("abc"), max_size=2),
        "plan": VALUES,
        "notes": SCALARS,
        "doc": st.dictionaries(st.sampled_from(["p", "q"]), SCALARS, max_size=2),
        "table": _PUT,
        "grant": SCALARS,
        "seen": SCALARS,
    },
)
PICK = st.integers(0, 99)


def reduced(name: str, held: Any, update: Any) -> Any:
    """The result of an update, in plain Python."""
    match KEYS[name][0]:
        case "add":
            return held + update
        case "max":
            return max(held, update)
        case "min":
            return min(held, update)
        case "append":
            return [*held, update]
        case "union":
            return [*held, *dict.fromkeys(each for each in update if each not in held)]
        case "merge":
            return merge_patch(held, update)
        case "json_patch":
            return json_patch(held, update)
    return update


@dataclass
class Model:
    """A thread: its state at each revision, and its number of messages then."""

    name: str
    parent: str | None = None
    states: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    counts: list[int] = field(default_factory=lambda: [0])
    messages: int = 0
    run: str | None = None
    newest_run: str | None = None
    started: int = 0
    ticket: str | None = None

    @property
    def revision(self) -> int:
        return len(self.states) - 1

    def back(self, steps: int) -> int:
        return max(self.revision - steps, 0)

    def advanced(self, state: dict[str, Any], to: int) -> None:
        self.states.append(state)
        self.counts.append(self.messages)
        assert to == self.revision

    def updated(self, updates: list[tuple[str, Any]]) -> dict[str, Any]:
        state = dict(self.states[-1])
        for name, update in updates:
            state[name] = reduced(name, state.get(name, KEYS[name][4]), update)
        return state

    def lasting(self, revision: int) -> dict[str, Any]:
        return {k: v for k, v in self.states[revision].items() if k in LASTING}


class Forest(InTransaction):
    @initialize()
    def start(self) -> None:
        for name, (reducer, scope, persistent, commutative, default) in KEYS.items():
            make_state_key(
                self.actor, name, reducer=reducer, scope=scope, persistent=persistent,
                default=default, merge="commutative" if commutative else "exclusive",
            )  # fmt: skip
        self.models: dict[str, Model] = {}
        self.made = 0
        self.create(None)

    def fresh(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def pick(self, number: int) -> Model:
        return list(self.models.values())[number % len(self.models)]

    def active(self, number: int) -> Model | None:
        """A thread with a running run, if there is one."""
        able = [model for model in self.models.values() if model.run and not model.ticket]
        return able[number % len(able)] if able else None

    @precondition(lambda self: len(self.models) < 5)
    @rule(above=st.none() | PICK)
    def create(self, above: int | None) -> None:
        name = self.fresh("t")
        parent = self.pick(above).name if above is not None else None
        make_thread(self.actor, name, parent_thread_id=parent)
        assert make_thread(self.actor, name, parent_thread_id=parent).revision == 0
        self.models[name] = Model(name, parent)

    @rule(at=PICK)
    def start_run(self, at: int) -> None:
        model, name = self.pick(at), self.fresh("r")
        if model.run:
            with pytest.raises(Conflict) as refused:
                make_run(self.actor, model.name, name)
            assert refused.value.detail == f"thread already has an active run: {model.name}"
            return
        run = make_run(self.actor, model.name, name)
        kept = {k: v for k, v in model.states[-1].items() if k in OF_THREAD}
        model.advanced(kept, run.last_revision)
        model.run = model.newest_run = name
        model.started = model.revision

    @rule(at=PICK, branches=st.lists(UPDATES, min_size=1, max_size=3), texts=st.integers(0, 2))
    def commit(self, at: int, branches: list[dict[str, Any]], texts: int) -> None:
        model = self.active(at)
        if model is None or not (texts or any(branches)):
            return
        step = Step(
            tuple(Batch(tuple(Update(k, raw(v)) for k, v in each.items())) for each in branches),
            messages=[raw({"role": "user", "content": "x"})] * texts,
            expected_message_count=model.messages,
        )
        touched = [name for each in branches for name in each]
        clashing = {name for name in touched if touched.count(name) > 1} - COMMUTATIVE
        if clashing:
            with pytest.raises(Conflict, match="parallel merge conflict on exclusive key") as told:
                commit(actor=self.actor, run_id=model.run or "", step=step)
            assert told.value.detail.rpartition(" ")[2] in clashing
            return
        done = commit(actor=self.actor, run_id=model.run or "", step=step)
        model.messages += texts
        updates = [update for each in branches for update in each.items()]
        model.advanced(model.updated(updates), done.revision)

    @rule(at=PICK, name=st.sampled_from(sorted(KEYS)))
    def clear(self, at: int, name: str) -> None:
        if (model := self.active(at)) is None:
            return
        step = Step((Batch((Update(name, clear=True),)),))
        done = commit(actor=self.actor, run_id=model.run or "", step=step)
        state = {k: v for k, v in model.states[-1].items() if k != name}
        model.advanced(state, done.revision)

    @rule(at=PICK, updates=UPDATES)
    def wait(self, at: int, updates: dict[str, Any]) -> None:
        if (model := self.active(at)) is None:
            return
        model.ticket = self.fresh("k")
        asked = {"ticket_id": model.ticket, "tool_call_id": "c", "tool_name": "f"}
        waiting = {"reason": "tool_permission", "tickets": [asked]}
        step = builders.step(updates, run=RunChange(status="waiting", waiting=waiting))
        done = commit(actor=self.actor, run_id=model.run or "", step=step)
        model.advanced(model.updated(list(updates.items())), done.revision)

    @rule(at=PICK)
    def decide(self, at: int) -> None:
        waiting = [model for model in self.models.values() if model.ticket]
        if not waiting:
            return
        model = waiting[at % len(waiting)]
        tickets.decide_ticket(
            actor=self.actor, ticket_id=model.ticket or "", action="resume", payload=raw({})
        )
        model.ticket = None
        model.advanced(dict(model.states[-1]), Thread.objects.get(public_id=model.name).revision)

    @rule(at=PICK)
    def finish(self, at: int) -> None:
        model = self.pick(at)
        if not model.run:
            return
        change = RunChange(status="done", termination_reason={"type": "natural_end"})
        done = runs.change_run(actor=self.actor, run_id=model.run, change=change)
        model.advanced(model.lasting(model.revision), done.last_revision)
        model.run = model.ticket = None

    @rule(at=PICK, texts=st.integers(1, 3))
    def append(self, at: int, texts: int) -> None:
        model = self.pick(at)
        builders.append(self.actor, model.name, *[{"role": "user", "content": "y"}] * texts)
        model.messages += texts

    @rule(at=PICK, back=st.integers(0, 6))
    def restore(self, at: int, back: int) -> None:
        model = self.pick(at)
        number = model.back(back)
        done = snapshots.restore_snapshot(
            actor=self.actor, thread_id=model.name, revision=number,
            expected_revision=model.revision,
        )  # fmt: skip
        mine = model.run and number >= model.started
        state = dict(model.states[number]) if mine else model.lasting(number)
        model.advanced(state, done.revision)

    @rule(source=PICK, onto=PICK, back=st.integers(0, 4), merge=st.booleans())
    def carry(self, source: int, onto: int, back: int, merge: bool) -> None:
        """Export one thread and import it into another, or into itself."""
        giver, taker = self.pick(source), self.pick(onto)
        number = giver.back(back)
        exported = exports.export_snapshot(actor=self.actor, thread_id=giver.name, revision=number)
        assert exported.revision == number
        done = exports.import_snapshot(
            actor=self.actor,
            thread_id=taker.name,
            revision=exported.revision,
            extensions={key: values.read(text) for key, text in exported.extensions.items()},
            mode="merge" if merge else "replace",
        )
        kept = taker.states[-1] if merge else {}
        taker.advanced({**kept, **giver.lasting(number)}, done.snapshot.revision)

    @precondition(lambda self: len(self.models) < 5)
    @rule(source=PICK, back=st.none() | st.integers(0, 6), cut=st.integers(0, 2))
    def fork(self, source: int, back: int | None, cut: int) -> None:
        model, name = self.pick(source), self.fresh("f")
        number = None if back is None else model.back(back)
        count = model.messages if number is None else model.counts[number]
        asked = max(count - cut, 0) if cut else None
        made, _ = forks.fork_thread(
            actor=self.actor, thread_id=model.name, fork_id=name, revision=number,
            message_count=asked,
        )  # fmt: skip
        copy = Model(name, messages=count if asked is None else asked)
        copy.advanced(model.lasting(model.revision if number is None else number), made.revision)
        self.models[name] = copy

    @precondition(lambda self: len(self.models) > 1)
    @rule(at=PICK, cascade=st.booleans())
    def delete(self, at: int, cascade: bool) -> None:
        doomed = {self.pick(at).name}
        while cascade and (
            more := {m.name for m in self.models.values() if m.parent in doomed} - doomed
        ):
            doomed |= more
        if len(doomed) == len(self.models):
            return
        report = threads.delete_thread(
            actor=self.actor, thread_id=self.pick(at).name,
            children="cascade" if cascade else "detach",
        )  # fmt: skip
        gone = [self.models.pop(name) for name in doomed]
        assert report.threads == len(gone)
        assert report.messages == sum(model.messages for model in gone)
        for model in self.models.values():
            model.parent = None if model.parent in doomed else model.parent

    @invariant()
    def newest_agrees(self) -> None:
        stored = {t.public_id: t for t in Thread.objects.select_related("parent", "active_run")}
        assert stored.keys() == self.models.keys()
        for name, model in self.models.items():
            row = stored[name]
            assert (row.revision, row.message_count) == (model.revision, model.messages)
            assert (row.active_run.public_id if row.active_run else None) == model.run
            assert (row.parent.public_id if row.parent else None) == model.parent
            assert self.read(model, None) == model.states[-1]
            active = Run.objects.filter(thread=row).active()
            assert active.count() == (1 if model.run else 0)

    def read(self, model: Model, revision: int | None) -> dict[str, Any]:
        snapshot = snapshots.read_snapshot(
            actor=self.actor, thread_id=model.name, revision=revision
        )
        held = snapshot.parsed()
        life = held.pop(LIFE, None)
        held.pop(CALLS, None)
        if revision is None and model.newest_run:
            assert life["run_id"] == model.newest_run
            status = "waiting" if model.ticket else "running" if model.run else "done"
            assert life["status"] == status
        return held

    def check_at_the_end(self) -> None:
        for model in self.models.values():
            for number, state in enumerate(model.states):
                assert self.read(model, number) == state, f"{model.name} at {number}"
            pairs = [*pairwise(range(len(model.states))), (model.revision, 0), (0, model.revision)]
            for old, new in pairs:
                before, after = snapshots.diff_snapshots(
                    actor=self.actor, thread_id=model.name, old=old, new=new
                )
                patch = diffs.json_patch(before, after)
                assert values.same(json_patch(before, patch), after)
            rows = Revision.objects.filter(thread__public_id=model.name).order_by("number")
            numbers = list(rows.values_list("number", "message_count"))
            assert numbers == [(n, model.counts[n]) for n in range(1, len(model.states))]
            log = Message.objects.filter(thread__public_id=model.name).in_order()
            assert list(log.values_list("seq", flat=True)) == list(range(1, model.messages + 1))
        # Deletions leave no rows.
        assert Message.objects.count() == sum(m.messages for m in self.models.values())
        assert Revision.objects.count() == sum(m.revision for m in self.models.values())
        for dangling in (StateValue, Run):
            assert not dangling.objects.exclude(thread__in=Thread.objects.all()).exists()


@pytest.mark.django_db
def test_forest__random_history__equals_the_dicts() -> None:
    run_state_machine_as_test(Forest, settings=settings(SETTINGS, max_examples=12))


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.django_db
def test_forest__for_long__equals_the_model() -> None:
    run_state_machine_as_test(Forest, settings=LONG)
