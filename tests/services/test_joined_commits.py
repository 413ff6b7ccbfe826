"""Commits of several runs in one transaction: each as if it were alone, none at another's expense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, transaction

from state_admin.domain.access import Actor
from state_admin.models import AuditRow, Change, IdempotencyRecord, Message, Revision, snapshots_sql
from state_admin.models.hot_async import Session
from state_admin.services import idempotency, runs, snapshots, state_keys
from state_admin.services.commits import Committed
from state_admin.services.errors import Invalid
from state_admin.services.idempotency import Key, StoredResponse
from state_admin.services.joined_commits import JoinedCommit, commit_joined
from tests.builders import Person, commit, make_run, make_state_key, make_thread, step
from tests.services.racing import race
from tests.sessions import Work, run_in_test, run_on_loop

pytestmark = pytest.mark.django_db

HELLO = {"id": "m1", "role": "user", "content": "Hello"}


@pytest.fixture(autouse=True)
def threads(alice: Person, mallory: Person) -> None:
    for person in (alice, mallory):
        make_state_key(person.actor, "plan")
        make_state_key(person.actor, "log", reducer="append", default=[])
        for number in range(3):
            make_thread(person.actor, f"t{number}")
            make_run(person.actor, f"t{number}", f"r{number}")


def call(
    actor: Actor, run_id: str, updates: Any = None, once: Key | None = None, **fields: Any
) -> JoinedCommit:
    reason = fields.pop("reason", "")
    return JoinedCommit(actor, run_id, step(updates, **fields), reason, once)


def join(
    calls: Sequence[JoinedCommit], run: Callable[[Work[Any]], Any] = run_in_test
) -> list[Committed | Exception | None]:
    """What commit_joined made of the calls: the outcome in place of the response."""
    outcomes: list[Committed] = []

    def respond(_: JoinedCommit, committed: Committed) -> StoredResponse:
        outcomes.append(committed)
        return StoredResponse(200, {}, str(len(outcomes) - 1).encode())

    return [
        outcomes[int(each.body)] if isinstance(each, StoredResponse) else each
        for each in run(lambda session: commit_joined(calls, respond, session))
    ]


def revisions(outcomes: list[Committed | Exception | None]) -> list[int | None]:
    return [each.revision if isinstance(each, Committed) else None for each in outcomes]


def state(person: Person, thread_id: str) -> dict[str, Any]:
    held = snapshots.read_snapshot(actor=person.actor, thread_id=thread_id).parsed()
    return {key: value for key, value in held.items() if not key.startswith("__")}


def test_commit_joined__calls_of_several_actors__each_leaves_its_own_trail(
    alice: Person, mallory: Person
) -> None:
    calls = [
        call(replace(alice.actor, request_id="q1"), "r0", {"plan": 1}, reason="x", label="named"),
        call(replace(mallory.actor, request_id="q2"), "r0", {"plan": 2}, messages=[HELLO]),
        call(replace(alice.actor, request_id="q3"), "r1", {"log": [3]}),
    ]
    assert revisions(join(calls)) == [2, 2, 2]
    assert state(alice, "t0") == {"plan": 1}
    assert state(mallory, "t0") == {"plan": 2}
    assert state(alice, "t1") == {"log": [3]}
    of_commit = ("workspace_id", "thread", "run", "version", "actor_name")
    owners = [(each.actor.workspace_id, each.actor.name) for each in calls]
    expected = [
        (owners[0][0], "t0", "r0", 2, owners[0][1]),
        (owners[1][0], "t0", "r0", 2, owners[1][1]),
        (owners[2][0], "t1", "r1", 2, owners[2][1]),
    ]
    changes = Change.objects.filter(kind="run.commit").values_list(*of_commit)
    assert sorted(changes) == sorted(expected)
    audit = AuditRow.objects.filter(action="run.commit")
    assert sorted(audit.values_list(*of_commit, "reason", "request_id")) == sorted(
        (*row, reason, request)
        for row, reason, request in zip(expected, ["x", "", ""], ["q1", "q2", "q3"], strict=True)
    )
    kept = Revision.objects.filter(number=2).order_by("request_id")
    assert list(kept.values_list("label", "message_count", "step", "touched")) == [
        ("named", 0, 2, ["plan"]),
        ("", 1, 2, ["plan"]),
        ("", 0, 2, ["log"]),
    ]
    assert Message.objects.get().thread.workspace_id == mallory.actor.workspace_id


def test_commit_joined__outcome__is_what_is_stored(alice: Person) -> None:
    (outcome,) = join([call(alice.actor, "r0", {"plan": 1}, messages=[HELLO])])
    assert isinstance(outcome, Committed)
    run = runs.find_run(alice.actor, "r0")
    for name in ("last_revision", "lease_expires_at", "updated_at", "flagged_at", "status"):
        assert getattr(outcome.run, name) == getattr(run, name)
    assert (outcome.message_count, outcome.touched) == (1, ("plan",))


def test_commit_joined__one_run_several_times__goes_in_order(alice: Person) -> None:
    calls = [call(alice.actor, "r0", {"log": [n]}) for n in range(3)]
    assert revisions(join([*calls, call(alice.actor, "r1", {"log": [9]})])) == [2, 3, 4, 2]
    assert state(alice, "t0") == {"log": [0, 1, 2]}


def test_commit_joined__calls_that_are_refused__leave_the_others_alone(alice: Person) -> None:
    viewer = replace(alice.actor, role=type(alice.actor.role).VIEWER)
    narrow = replace(alice.actor, thread_prefixes=("other",))
    calls = [
        call(viewer, "r0", {"plan": 1}),
        call(narrow, "r0", {"plan": 1}),
        call(alice.actor, "absent", {"plan": 1}),
        call(alice.actor, "r0", {"absent": 1}),
        call(alice.actor, "r0", {"plan": 1}, fencing_token=9),
        call(alice.actor, "r0", {"plan": 1}, base_revision=0),
        call(alice.actor, "r0", {"plan": 1}, expected_message_count=5),
        call(alice.actor, "r0", messages=[{"role": "nobody"}]),
        call(alice.actor, "r0"),
        call(alice.actor, "r1", {"plan": 2}),
        call(alice.actor, "r0", {"plan": 3}),
    ]
    assert revisions(join(calls)) == [*[None] * 9, 2, 2]
    assert state(alice, "t0") == {"plan": 3}


def test_commit_joined__message_that_is_in_the_log__is_left_alone(alice: Person) -> None:
    calls = [call(alice.actor, run_id, messages=[HELLO]) for run_id in ("r0", "r1")]
    assert revisions(join(calls[:1])) == [2]
    assert revisions(join(calls)) == [None, 2]


def test_commit_joined__two_runs_of_one_thread__only_one_is_stored(alice: Person) -> None:
    end = runs.RunChange(status="done", termination_reason={"type": "natural_end"})
    runs.change_run(actor=alice.actor, run_id="r0", change=end)
    make_run(alice.actor, "t0", "again")
    calls = [call(alice.actor, run_id, {"plan": run_id}) for run_id in ("r0", "again")]
    assert revisions(join(calls)) == [None, 4]
    assert revisions(join([*reversed(calls)])) == [5, None]


def test_commit_joined__keys__are_kept_with_the_responses(alice: Person) -> None:
    calls = [
        call(alice.actor, "r0", {"plan": 1}, once=Key("one", "f")),
        call(alice.actor, "r1", {"plan": 1}, once=Key("one", "f")),
        call(alice.actor, "r2", {"plan": 1}, once=Key("two", "g")),
    ]
    assert revisions(join(calls)) == [2, None, 2]
    kept = IdempotencyRecord.objects.order_by("scope").values_list("scope", "fingerprint")
    assert list(kept) == [("one", "f"), ("two", "g")]
    assert revisions(join(calls)) == [None] * 3


@pytest.mark.django_db(transaction=True)
def test_commit_joined__what_others_hold__is_left_alone_and_not_waited_for(
    alice: Person, mallory: Person
) -> None:
    calls = [
        call(alice.actor, "r0", {"plan": 1}),
        call(alice.actor, "r1", {"plan": 1}, once=Key("one", "f")),
        call(mallory.actor, "r0", {"plan": 1}),
        call(alice.actor, "r2", {"plan": 1}),
    ]
    with transaction.atomic():
        commit(alice.actor, "r0", {"plan": 0})
        assert idempotency.claim(Key("one", "f")) is None
        state_keys.close_registry(mallory.actor)
        outcomes = join(calls, run_on_loop)
    assert revisions(outcomes) == [None, None, None, 2]
    assert revisions(join(calls)) == [3, 2, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_commit_joined__many_threads_append_to_three_runs__nothing_is_lost(alice: Person) -> None:
    stored: list[int] = []

    def work() -> None:
        for turn in range(15):
            calls = [call(alice.actor, f"r{n}", {"log": [turn]}) for n in range(3)]
            outcomes = join(calls, run_on_loop)
            stored.append(sum(isinstance(each, Committed) for each in outcomes))

    race([work] * 4)
    assert len(stored) == 60
    assert sum(stored) > 0
    logs = [state(alice, f"t{n}").get("log", []) for n in range(3)]
    assert sum(map(len, logs)) == sum(stored)
    assert Revision.objects.count() == 6 + sum(stored)


@pytest.mark.django_db(transaction=True)
def test_commit_joined__group__takes_two_round_trips(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[None] = []
    exchange = Session._exchange

    async def count(session: Session) -> Any:
        trips.append(None)
        return await exchange(session)

    monkeypatch.setattr(Session, "_exchange", count)
    calls = [
        call(alice.actor, f"r{n}", {"plan": n}, once=Key(str(n), "f"), messages=[HELLO])
        for n in range(3)
    ]
    assert revisions(join(calls, run_on_loop)) == [2, 2, 2]
    assert len(trips) == 2
    assert state(alice, "t2") == {"plan": 2}


@pytest.mark.django_db(transaction=True)
def test_commit_joined__statement_that_fails__undoes_the_group(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [call(alice.actor, run_id, {"plan": 1}) for run_id in ("r0", "r1")]
    with monkeypatch.context() as patch:
        broken = snapshots_sql._ADVANCE.replace("SELECT t.thread,", "SELECT 1 / (t.thread * 0),")
        patch.setattr(snapshots_sql, "_ADVANCE", broken)
        assert join(calls, run_on_loop) == [None, None]
    assert state(alice, "t0") == {}
    assert revisions(join(calls, run_on_loop)) == [2, 2]


@pytest.mark.parametrize(
    ("sqlstate", "known"), [("40P01", True), ("55P03", True), ("57P01", False), (None, False)]
)
def test_commit_joined__error_of_the_database__says_whether_it_was_taken_back(
    sqlstate: str | None, known: bool, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OperationalError("boom")
    cause = psycopg.OperationalError("boom")
    cause.sqlstate = sqlstate
    error.__cause__ = cause

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("state_admin.models.snapshots_sql.advancing", fail)
    calls = [call(alice.actor, "r0", {"plan": 1}), call(alice.actor, "absent", {"plan": 1})]
    assert join(calls) == ([None, None] if known else [error, None])


def test_commit_joined__patch_that_nests_without_end__leaves_its_neighbours_alone(
    alice: Person, mallory: Person
) -> None:
    make_state_key(mallory.actor, "tree", reducer="json_patch", default={"a": {"a": 1}})
    deepen = [{"op": "copy", "from": "", "path": "/a" * 60}]
    start = [{"op": "add", "path": "/a" * depth, "value": {}} for depth in range(1, 60)]
    calls = [
        call(mallory.actor, "r0", {"tree": [*start, *deepen * 200]}),
        call(alice.actor, "r0", {"plan": "fine"}),
    ]

    assert [each and each.revision for each in join(calls)] == [None, 2]  # type: ignore[union-attr]
    with pytest.raises(Invalid, match="cannot be stored"):
        commit(mallory.actor, "r0", {"tree": [*start, *deepen * 200]})
