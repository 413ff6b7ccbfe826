"""Commits: order of checks, exact texts, merging, races."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from state_admin.domain import values
from state_admin.domain.json_pointers import MAX_HASHED
from state_admin.domain.merging import Batch, Update
from state_admin.domain.reducers import EXTENSION_KEYS
from state_admin.models import AuditRow, Change, Message, Revision, Run, StateValue, Thread
from state_admin.services import commits, runs, snapshots, state_keys
from state_admin.services.errors import (
    Conflict,
    Invalid,
    NotFound,
    RevisionConflict,
)
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, append, commit, make_run, make_state_key, make_thread, raw
from tests.services.racing import race, split

USER = {"role": "user", "content": "hi"}


@pytest.fixture
def run(alice: Person) -> Person:
    """A thread t1 at revision 1 with a running run r1, and three keys."""
    a = alice.actor
    make_state_key(a, "counter", schema={"type": "integer"}, default=0, merge="commutative",
                   reducer="add")  # fmt: skip
    make_state_key(a, "plan")
    make_state_key(a, "notes", reducer="append", default=[], scope="thread")
    make_thread(a, "t1")
    make_run(a, "t1", "r1")
    return alice


def state(person: Person, revision: int | None = None, thread_id: str = "t1") -> dict[str, Any]:
    """The state without the runtime's own key for the run."""
    snapshot = snapshots.read_snapshot(
        actor=person.actor, thread_id=thread_id, revision=revision
    ).parsed()
    return {key: value for key, value in snapshot.items() if not key.startswith("__")}


def batches(*parts: dict[str, Any], bases: tuple[int | None, ...] = ()) -> tuple[Batch, ...]:
    return tuple(
        Batch(
            tuple(
                Update(key, raw(value), pointer=f"/batches/{index}/{key}")
                for key, value in part.items()
            ),
            bases[index] if bases else None,
        )
        for index, part in enumerate(parts)
    )


def do(person: Person, *parts: dict[str, Any], **fields: Any) -> commits.Committed:
    bases = fields.pop("bases", ())
    return commits.commit(
        actor=person.actor,
        run_id="r1",
        step=commits.Step(batches=batches(*parts, bases=bases), **fields),
    )


def revision(thread_id: str = "t1") -> int:
    return Thread.objects.get(public_id=thread_id).revision


def refused(person: Person, kind: type[Exception], *parts: Any, **fields: Any) -> Any:
    before = (revision(), state(person), Message.objects.count(), Run.objects.values_list().get())
    with pytest.raises(kind) as caught:
        do(person, *parts, **fields)
    now = (revision(), state(person), Message.objects.count(), Run.objects.values_list().get())
    assert now == before
    return caught.value


# One revision --------------------------------------------------------------------------------


def test_commit__several_updates__are_one_revision(run: Person) -> None:
    done = commits.commit(
        actor=run.actor,
        run_id="r1",
        step=commits.Step(
            (
                Batch(
                    (
                        Update("counter", raw(2)),
                        Update("counter", raw(3)),
                        Update("plan", raw({"goal": "x"})),
                        Update("notes", raw(["a"])),
                        Update("notes", raw("b")),
                    )
                ),
            )
        ),
    )
    assert (done.revision, done.touched) == (2, ("counter", "notes", "plan"))
    assert state(run) == {"counter": 5, "plan": {"goal": "x"}, "notes": ["a", "b"]}
    assert StateValue.objects.filter(key="counter").count() == 1


def test_commit__many_updates_of_one_key__serialize_its_value_once(
    run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_state_key(run.actor, "facts", reducer="union", merge="commutative", default=[])
    do(run, {"facts": [{"i": i} for i in range(100)]})
    written: list[Any] = []
    dump = state_keys.values.dump

    def counted(value: Any) -> str:
        if isinstance(value, list):
            written.append(value)
        return dump(value)

    monkeypatch.setattr(state_keys.values, "dump", counted)
    done = do(run, *({"facts": [{"i": i}]} for i in range(50, 150)))
    assert len(written) == 1
    assert done.touched == ("facts",)
    assert state(run)["facts"] == [{"i": i} for i in range(150)]


def test_commit__updates_that_compare_too_much__are_refused_at_the_limit(
    run: Person,
) -> None:
    for name in ("facts", "more"):
        make_state_key(run.actor, name, reducer="union", merge="commutative", default=[])
    items = ["x" * 2_000_000]
    with pytest.raises(Invalid) as refused:
        do(run, *({"facts": items, "more": items} for _ in range(10)))
    # One limit for all keys of the commit.
    assert [error["pointer"] for error in refused.value.data["errors"]] == [
        f"/batches/{MAX_HASHED // 2_000_000 // 2}/facts/update"
    ]
    assert revision() == 1


@pytest.mark.parametrize("parts", [1, 3])
def test_commit__too_many_updates__are_refused(run: Person, parts: int) -> None:
    updates = tuple(Update("counter", raw(1)) for _ in range(commits.MAX_UPDATES // parts + 1))
    with pytest.raises(Invalid, match="at most 10,000 updates"):
        commits.commit(actor=run.actor, run_id="r1", step=commits.Step((Batch(updates),) * parts))
    assert revision() == 1


@pytest.mark.parametrize("fields", [{}, {"base_revision": 99}, {"expected_message_count": 5}])
def test_commit__empty__returns_the_revision_even_with_a_stale_base(
    run: Person, fields: dict[str, Any]
) -> None:
    done = do(run, **fields)
    assert (done.revision, done.touched, done.message_count) == (1, (), 0)
    assert done.run.public_id == "r1"
    assert revision() == 1
    assert do(run, {}, {}, **fields).revision == 1


def test_commit__empty_batches_of_different_bases__count_as_empty(run: Person) -> None:
    """Emptiness is checked first, before bases are compared."""
    assert do(run, {}, {}, bases=(1, 2)).revision == 1


def test_thread__new__is_at_revision_zero_and_empty(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    assert revision() == 0
    assert state(alice) == {}


def test_commit__successive_updates__accumulate_in_order(run: Person) -> None:
    for number in range(1, 4):
        do(run, {"counter": number, "plan": number, "notes": [number]})
    assert state(run) == {"counter": 6, "plan": 3, "notes": [1, 2, 3]}
    assert revision() == 4


def test_commit__transaction_began_before_the_last_change__does_not_turn_back_its_times(
    run: Person,
) -> None:
    started = Run.objects.select_related("thread").get()
    assert started.created_at <= started.updated_at
    assert started.thread.created_at <= started.thread.updated_at
    do(run, {"counter": 1})
    append(run.actor, "t1", {"role": "user", "content": "hello"})
    now = Run.objects.select_related("thread").get()
    assert now.updated_at >= started.updated_at
    assert now.thread.updated_at >= started.thread.updated_at


def test_commit__zero_update_and_same_value__are_revisions(run: Person) -> None:
    assert do(run, {"counter": 0}).revision == 2
    assert do(run, {"plan": 1}).revision == 3
    assert do(run, {"plan": 1}).revision == 4


def test_state__never_written__is_absent(run: Person) -> None:
    assert state(run) == {}
    do(run, {"counter": 1})
    assert state(run) == {"counter": 1}


def test_commit__clear__removes_the_value_from_that_revision_on(run: Person) -> None:
    do(run, {"plan": 1, "counter": 5})
    clear = Batch((Update("counter", clear=True), Update("plan", clear=True)))
    commits.commit(actor=run.actor, run_id="r1", step=commits.Step((clear,)))
    assert state(run) == {}
    assert state(run, 2) == {"plan": 1, "counter": 5}
    do(run, {"counter": 1})
    assert state(run) == {"counter": 1}


def test_commit__clear_of_an_absent_value__is_a_revision(run: Person) -> None:
    clear = Batch((Update("plan", clear=True),))
    done = commits.commit(actor=run.actor, run_id="r1", step=commits.Step((clear,)))
    assert (done.revision, done.touched) == (2, ("plan",))
    assert state(run) == {}
    assert not StateValue.objects.filter(key="plan").exists()


def test_commit__clear_of_an_unknown_key__is_refused_like_an_update(run: Person) -> None:
    clear = Batch((Update("plan", raw(1)), Update("nobody", clear=True)))
    with pytest.raises(Invalid) as refusal:
        commits.commit(actor=run.actor, run_id="r1", step=commits.Step((clear,)))
    assert refusal.value.detail == "unknown key: nobody"
    assert (revision(), state(run)) == (1, {})


def test_commit__clear_in_a_branch__counts_as_an_update(run: Person) -> None:
    """Exclusive: refused. Commutative: merged in the order of the branches."""
    do(run, {"counter": 5, "plan": 1})

    def clear(key: str) -> Batch:
        return Batch((Update(key, clear=True),))

    for clash in ((clear("plan"), *batches({"plan": 2})), (clear("plan"), clear("plan"))):
        with pytest.raises(Conflict) as refusal:
            commits.commit(actor=run.actor, run_id="r1", step=commits.Step(clash))
        assert refusal.value.detail == "parallel merge conflict on exclusive key: plan"
    joined = (clear("counter"), *batches({"counter": 2}))
    commits.commit(actor=run.actor, run_id="r1", step=commits.Step(joined))
    assert state(run)["counter"] == 2
    commits.commit(actor=run.actor, run_id="r1", step=commits.Step(joined[::-1]))
    assert "counter" not in state(run)


def test_commit__key_updated_twice_in_one_batch__is_reported_once(run: Person) -> None:
    twice = Batch((Update("plan", raw(1)), Update("counter", raw(1)), Update("plan", raw(2))))
    done = commits.commit(actor=run.actor, run_id="r1", step=commits.Step((twice, Batch())))
    assert done.touched == ("counter", "plan")
    assert Revision.objects.get(number=2).touched == ["counter", "plan"]
    assert state(run) == {"counter": 1, "plan": 2}


def test_commit__clear_then_update__starts_from_the_default(run: Person) -> None:
    do(run, {"counter": 5})
    both = Batch((Update("counter", clear=True), Update("counter", raw(1))))
    commits.commit(actor=run.actor, run_id="r1", step=commits.Step((both,)))
    assert state(run) == {"counter": 1}


def test_commit__updates_messages_and_transition__are_stored_together(run: Person) -> None:
    done = do(
        run,
        {"counter": 1},
        messages=[raw(USER), raw({**USER, "id": "m2"})],
        expected_message_count=0,
        run=RunChange(step_count=1, input_tokens=10, output_tokens=5, cost_usd="0.01"),
        label="first",
    )
    assert (done.revision, done.message_count) == (2, 2)
    row = Revision.objects.get(number=2)
    assert (row.label, row.message_count, row.kind) == ("first", 2, "commit")
    stored = Run.objects.get(public_id="r1")
    assert (stored.step_count, stored.input_tokens, stored.last_revision) == (1, 10, 2)
    assert done.run.last_revision == 2
    assert list(Message.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2]
    assert Message.objects.filter(run=stored).count() == 2


def test_commit__any__writes_one_revision_one_audit_row_one_change(run: Person) -> None:
    AuditRow.objects.all().delete()
    Change.objects.all().delete()
    do(run, {"counter": 1, "plan": 2}, messages=[raw(USER)])
    assert list(AuditRow.objects.values_list("action", "version", "thread", "run")) == [
        ("run.commit", 2, "t1", "r1")
    ]
    assert list(Change.objects.values_list("kind", "version")) == [("run.commit", 2)]


# Rebase --------------------------------------------------------------------------------------


def test_rebase__updated_keys_unchanged_since__is_stored(run: Person) -> None:
    do(run, {"counter": 1})
    assert do(run, {"plan": 1}, base_revision=1, rebase=True).revision == 3


@pytest.mark.parametrize("how", ["written", "cleared", "created and cleared"])
def test_rebase__updated_key_changed_since__is_refused(run: Person, how: str) -> None:
    clear = commits.Step((Batch((Update("plan", clear=True),)),))
    if how == "cleared":
        do(run, {"plan": 0})
    base = revision()
    if how != "cleared":
        do(run, {"plan": 1})
    if how != "written":
        commits.commit(actor=run.actor, run_id="r1", step=clear)
    do(run, {"counter": 1})
    problem = refused(
        run, RevisionConflict, {"counter": 1, "plan": 2}, base_revision=base, rebase=True
    )
    assert problem.detail == f"revision conflict: expected {base}, actual {revision()}"
    assert problem.data["keys"] == ["counter", "plan"]


def test_rebase__future_base__is_refused(run: Person) -> None:
    refused(run, RevisionConflict, {"plan": 1}, base_revision=5, rebase=True)


# Scopes over runs ----------------------------------------------------------------------------


def test_run_scope__next_run__starts_empty_and_the_previous_remains_readable(run: Person) -> None:
    do(run, {"counter": 1, "notes": ["kept"]})
    do(run, run=RunChange(status="done"))
    last = revision()
    make_run(run.actor, "t1", "r2")
    assert revision() == last + 1
    assert state(run) == {"notes": ["kept"]}
    assert state(run, last) == {"counter": 1, "notes": ["kept"]}
    assert set(Revision.objects.get(number=last + 1).touched) == {
        "__runtime.run_lifecycle",
        "counter",
    }


def test_transient_key__run_ends__is_removed_with_its_last_step(run: Person) -> None:
    for name, scope in (("grants", "run"), ("visible", "thread")):
        make_state_key(run.actor, name, persistent=False, scope=scope)
    do(run, {"grants": 1, "visible": 2, "plan": 3})
    assert state(run) == {"grants": 1, "visible": 2, "plan": 3}
    do(run, {"visible": 5, "plan": 4}, run=RunChange(status="done"))
    assert state(run) == {"plan": 4}
    assert state(run, 2) == {"grants": 1, "visible": 2, "plan": 3}


@pytest.mark.parametrize("status", ["created", "running", "waiting"])
@pytest.mark.parametrize("how", ["commit", "change", "cancel"])
def test_transient_key__run_ends_in_any_way__is_removed_at_once(
    alice: Person, how: str, status: str
) -> None:
    """Keys with `persistent: false` exist only until their run ends."""
    a = alice.actor
    for name, scope in (("grants", "run"), ("visible", "thread")):
        make_state_key(a, name, persistent=False, scope=scope)
    make_state_key(a, "plan", scope="thread")
    make_thread(a, "t1")
    make_run(a, "t1", "r1", status="created")
    commit(a, "r1", {"grants": 1, "visible": 2, "plan": 3})
    for move in {"created": (), "running": ("running",)}.get(status, ("running", "waiting")):
        runs.change_run(actor=a, run_id="r1", change=RunChange(status=move))
    live = revision()
    assert state(alice) == {"grants": 1, "visible": 2, "plan": 3}
    done = RunChange(status="done", termination_reason={"type": "error", "message": "x"})
    ends: dict[str, Any] = {
        "commit": partial(commit, a, "r1", {"grants": 5}, run=done),
        "change": partial(runs.change_run, actor=a, run_id="r1", change=done),
        "cancel": partial(runs.cancel_run, actor=a, run_id="r1"),
    }
    ends[how]()
    assert state(alice) == {"plan": 3}
    assert revision() == live + 1
    assert state(alice, live) == {"grants": 1, "visible": 2, "plan": 3}
    assert not StateValue.objects.current().filter(persistent=False).exists()


def test_runtime_keys__unregistered__have_the_definition_of_the_reference_implementation(
    run: Person,
) -> None:
    """Parallel branches are merged for commutative keys, and conflict on the others."""
    messages, throttle = "__runtime.context_message_store", "__runtime.context_throttle"
    do(run, {messages: {"a": 1}}, {messages: {"b": 2}}, {throttle: {"x": 1}})
    held = snapshots.read_snapshot(actor=run.actor, thread_id="t1").parsed()
    assert (held[messages], held[throttle]) == ({"a": 1, "b": 2}, {"x": 1})
    problem = refused(run, Conflict, {throttle: {}}, {throttle: {}})
    assert problem.detail == f"parallel merge conflict on exclusive key: {throttle}"


def test_extension_keys__registered_commutative__are_merged_as_in_the_reference_implementation(
    run: Person,
) -> None:
    """Their members are independent."""
    for name in sorted(EXTENSION_KEYS):
        marks = {"merge": "commutative", "reducer": "merge", "default": {}}
        assert run.api("PUT", f"/state-keys/{name}", marks).status_code == 201
        for reducer in ("replace", "append"):
            other = {**marks, "reducer": reducer}
            assert run.api("PUT", f"/state-keys/{name}", other).status_code == 422
        do(run, {name: {"a": 1}}, {name: {"b": 2}})
        assert state(run)[name] == {"a": 1, "b": 2}
    mine = run.api("PUT", "/state-keys/my_policy", {"merge": "commutative", "reducer": "merge"})
    assert mine.status_code == 422


def test_lifecycle__key_in_the_state__follows_the_run(run: Person) -> None:
    def mirror() -> tuple[Any, ...]:
        life = snapshots.read_snapshot(actor=run.actor, thread_id="t1").parsed()[
            "__runtime.run_lifecycle"
        ]
        assert life["run_id"] == "r1"
        assert life["updated_at"] > 1_600_000_000_000
        return life["status"], life.get("status_reason"), life["step_count"]

    seen = [mirror()]
    for change in (
        RunChange(step_count=1),
        RunChange(status="waiting", waiting={"reason": "user_input"}),
        RunChange(step_count=2),
        RunChange(status="running"),
        RunChange(status="done", termination_reason={"type": "stopped", "code": "max_rounds"}),
    ):
        do(run, run=change)
        seen.append(mirror())
    assert seen == [
        ("running", None, 0),
        ("running", None, 1),
        ("waiting", "input_required", 1),
        ("waiting", "input_required", 2),
        ("running", None, 2),
        ("done", "stopped:max_rounds", 2),
    ]


# Snapshots -----------------------------------------------------------------------------------


def test_snapshot__each_revision__never_changes(run: Person) -> None:
    seen = {1: {}}
    for number in range(1, 8):
        done = do(run, {"counter": 1, "notes": [number]} if number % 2 else {"plan": number})
        seen[done.revision] = state(run)
    assert {number: state(run, number) for number in seen} == seen
    assert state(run, 0) == {}


def test_read__concurrent_commit__has_the_revision_of_its_values(
    run: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is read before its values: a commit between the two must not become visible."""
    commit(run.actor, "r1", {"plan": "before"})
    find = snapshots.find_thread

    def find_and_be_overtaken(*arguments: Any, **options: Any) -> Thread:
        thread = find(*arguments, **options)
        monkeypatch.setattr(snapshots, "find_thread", find)
        commit(run.actor, "r1", {"plan": "after"})
        return thread

    monkeypatch.setattr(snapshots, "find_thread", find_and_be_overtaken)
    read = snapshots.read_snapshot(actor=run.actor, thread_id="t1")
    assert (read.revision, read.parsed()["plan"]) == (2, "before")


def test_restore__old_revision__is_a_new_one(run: Person) -> None:
    do(run, {"counter": 1, "plan": "a"})
    do(run, {"counter": 1, "notes": ["x"]})
    snapshots.restore_snapshot(actor=run.actor, thread_id="t1", revision=2)
    assert (revision(), state(run)) == (4, {"counter": 1, "plan": "a"})
    assert state(run, 3) == {"counter": 2, "plan": "a", "notes": ["x"]}
    assert set(Revision.objects.get(number=4).touched) == {"counter", "notes"}
    with pytest.raises(NotFound):
        snapshots.restore_snapshot(actor=run.actor, thread_id="t1", revision=99)


def test_restore__same_state__is_a_revision_without_changes(run: Person) -> None:
    do(run, {"plan": "a"})
    snapshots.restore_snapshot(actor=run.actor, thread_id="t1", revision=2)
    assert (revision(), state(run)) == (3, {"plan": "a"})
    assert Revision.objects.get(number=3).touched == []


def test_restore__stale_expected_revision__changes_nothing(run: Person) -> None:
    do(run, {"plan": "a"})
    with pytest.raises(RevisionConflict) as refusal:
        snapshots.restore_snapshot(actor=run.actor, thread_id="t1", revision=1, expected_revision=1)
    assert refusal.value.detail == "revision conflict: expected 1, actual 2"
    assert state(run) == {"plan": "a"}


def test_values__any_json__are_stored_byte_for_byte(run: Person) -> None:
    texts = ['{"b": 1.10, "a": [1e2, -0.0]}', "123456789012345678901234567890", '"\\u00e9"', "null"]
    for text in texts:
        update = Update("plan", values.read(text))
        commits.commit(actor=run.actor, run_id="r1", step=commits.Step((Batch((update,)),)))
        body = run.api("GET", "/threads/t1/state").content.decode()
        assert f'"plan":{text}' in body


def test_diff__two_revisions__transforms_one_into_the_other(run: Person) -> None:
    from state_admin.domain.patches import json_patch

    do(run, {"plan": {"a": [1, 2]}, "counter": 1})
    do(run, {"plan": {"a": [2], "b": 10**30}})
    old, new = snapshots.diff_snapshots(actor=run.actor, thread_id="t1", old=2, new=3)
    answer = run.api("GET", "/threads/t1/diff?from=2&to=3")
    assert answer.status_code == 200
    assert json_patch(old, json.loads(answer.content)["patch"]) == new


# Races ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_race__16_unconditional_commits__all_land(run: Person) -> None:
    add = partial(commit, run.actor, "r1", {"counter": 1}, messages=[USER])
    won, lost = split(race([add] * 16))
    assert lost == []
    assert sorted(done.revision for done in won) == list(range(2, 18))
    assert state(run) == {"counter": 16}
    assert list(Message.objects.order_by("seq").values_list("seq", flat=True)) == [*range(1, 17)]
    assert AuditRow.objects.filter(action="run.commit").count() == 16
    assert Revision.objects.count() == 17


@pytest.mark.django_db(transaction=True)
def test_race__8_commits_on_one_base__exactly_one_lands(run: Person) -> None:
    for _ in range(3):
        base = revision()
        one = partial(commit, run.actor, "r1", {"counter": 1}, base_revision=base)
        won, lost = split(race([one] * 8))
        assert [done.revision for done in won] == [base + 1]
        assert {p.detail for p in lost} == {
            f"revision conflict: expected {base}, actual {base + 1}"
        }


@pytest.mark.django_db(transaction=True)
def test_race__8_appends_with_one_expected_count__exactly_one_is_stored(run: Person) -> None:
    one = partial(commit, run.actor, "r1", {}, messages=[USER], expected_message_count=0)
    won, lost = split(race([one] * 8))
    assert (len(won), len(lost)) == (1, 7)
    assert {p.detail for p in lost} == {"version conflict: expected 0, actual 1"}


@pytest.mark.django_db(transaction=True)
def test_race__commits_appends_and_restores__revisions_and_seqs_are_consecutive(
    run: Person,
) -> None:
    commit(run.actor, "r1", {"plan": 1})
    works = [partial(commit, run.actor, "r1", {"plan": n}, messages=[USER]) for n in range(6)]
    works += [partial(builders.append, run.actor, "t1", USER) for _ in range(6)]
    works += [
        partial(snapshots.restore_snapshot, actor=run.actor, thread_id="t1", revision=2)
        for _ in range(4)
    ]
    _, lost = split(race(works))
    assert lost == []
    thread = Thread.objects.get()
    assert (thread.revision, thread.message_count) == (12, 12)
    numbers = Revision.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 13))
    seqs = Message.objects.order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == list(range(1, 13))
