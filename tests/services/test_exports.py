"""Export and import in the format of the reference implementation."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from state_admin.domain import values
from state_admin.domain.values import MAX_VALUE_BYTES
from state_admin.models import AuditRow, Change, Revision, StateKey, StateValue, Thread
from state_admin.services import exports, snapshots
from state_admin.services.errors import Forbidden, Gone, Invalid, NotFound, RevisionConflict
from tests import builders
from tests.builders import Person, commit, make_run, make_state_key, make_thread, raw
from tests.services.racing import race, split

LIFE = "__runtime.run_lifecycle"


@pytest.fixture
def run(alice: Person) -> Person:
    """t1 with a running run r1 at revision 2: keys of every kind, each with a value."""
    a = alice.actor
    make_state_key(a, "plan")
    make_state_key(a, "notes", scope="thread", reducer="append", default=[])
    make_state_key(a, "grant", persistent=False)
    make_state_key(a, "count", schema={"type": "integer"}, reducer="add", default=0)
    make_thread(a, "t1")
    make_run(a, "t1", "r1")
    commit(a, "r1", {"plan": {"goal": "x"}, "notes": ["n"], "grant": 1, "count": 2})
    return alice


def export(person: Person, thread_id: str = "t1", **asked: Any) -> dict[str, Any]:
    return exports.export_snapshot(actor=person.actor, thread_id=thread_id, **asked).parsed()


def take(person: Person, extensions: dict[str, Any], thread_id: str = "t2", **how: Any) -> Any:
    return exports.import_snapshot(
        actor=person.actor,
        thread_id=thread_id,
        revision=how.pop("revision", 7),
        extensions={name: raw(value) for name, value in extensions.items()},
        **how,
    )


def state(person: Person, thread_id: str, revision: int | None = None) -> dict[str, Any]:
    return snapshots.read_snapshot(
        actor=person.actor, thread_id=thread_id, revision=revision
    ).parsed()


# Export --------------------------------------------------------------------------------------


def test_export__keys__are_registered_persistent_and_set(run: Person) -> None:
    make_state_key(run.actor, "empty")
    assert export(run).keys() == {"plan", "notes", "count", LIFE}
    StateKey.objects.filter(name="plan").delete()
    assert export(run).keys() == {"notes", "count", LIFE}
    make_state_key(run.actor, "notes", scope="thread", reducer="append", default=[],
                   persistent=False)  # fmt: skip
    assert export(run).keys() == {"count", LIFE}


def test_export__scope_and_revision__filter_it(run: Person) -> None:
    assert export(run, scope="thread") == {"notes": ["n"]}
    assert export(run, scope="run").keys() == {"plan", "count", LIFE}
    assert export(run, revision=1).keys() == {LIFE}
    assert export(run, revision=0) == {}
    with pytest.raises(NotFound):
        export(run, revision=3)
    Revision.objects.filter(number=1).update(dropped=True)
    with pytest.raises(Gone):
        export(run, revision=1)


def test_export__format__is_that_of_the_reference_implementation(run: Person, bob: Person) -> None:
    answer = bob.api("GET", "/threads/t1/state?export=true&scope=thread")
    assert answer.content == b'{"revision":2,"extensions":{"notes":["n"]}}'
    assert answer["ETag"] == '"2"'
    make_thread(run.actor, "new")
    empty = bob.api("GET", "/threads/new/state?export=true").content
    assert empty == b'{"revision":0,"extensions":{}}'
    assert b'"grant":1' in bob.api("GET", "/threads/t1/state?export=false").content
    assert bob.api("GET", "/threads/t1/state?export=yes").status_code == 400


# There and back ------------------------------------------------------------------------------


def test_import__of_an_export__equals_it_byte_for_byte(run: Person) -> None:
    texts = {
        "plan": '{"b": 1.10, "a": [1e2, -0.0, 12345678901234567890123], "é\\u00e9": "\\ud83d\\ude42"}',
        "notes": '[ 1.0,\t2 ]',
        "count": "123456789012345678901234567890",
    }  # fmt: skip
    snapshot = "{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}"
    make_thread(run.actor, "t2")
    body = f'{{"snapshot": {{"revision": 9, "extensions": {snapshot}}}}}'.encode()
    assert run.api("POST", "/threads/t2/import", body).status_code == 200
    exported = run.api("GET", "/threads/t2/state?export=true").content
    for name, text in texts.items():
        assert f'"{name}":{text}'.encode() in exported
    make_thread(run.actor, "t3")
    again = run.api("POST", "/threads/t3/import", b'{"snapshot": %s}' % exported)
    assert (again.status_code, again["ETag"]) == (200, '"1"')
    assert run.api("GET", "/threads/t3/state?export=true").content == exported


def test_import__export_of_a_thread_with_runs__keeps_their_lifecycle_in_a_new_thread(
    run: Person,
) -> None:
    make_thread(run.actor, "t2")
    exported = export(run)
    take(run, exported)
    assert state(run, "t2") == exported
    make_run(run.actor, "t2", "r2")
    now = state(run, "t2")
    assert now.keys() == {"notes", LIFE}
    assert now[LIFE]["run_id"] == "r2"


def test_import__into_a_thread_with_runs__keeps_its_own_lifecycle(run: Person) -> None:
    mine = state(run, "t1")[LIFE]
    take(run, {LIFE: {"run_id": "theirs", "status": "done"}, "plan": 1}, "t1")
    assert state(run, "t1") == {LIFE: mine, "plan": 1}
    take(run, {}, "t1")
    assert state(run, "t1") == {LIFE: mine}


# What an import does -------------------------------------------------------------------------


def test_import__other_keys_of_the_runtime__are_imported(run: Person) -> None:
    done = take(run, {"__runtime.active_agent": "planner", LIFE: {"run_id": "x"}}, "t1")
    assert done.skipped == ()
    assert state(run, "t1")["__runtime.active_agent"] == "planner"
    assert state(run, "t1")[LIFE]["run_id"] == "r1"


def test_import__replace__equals_the_snapshot_as_one_revision(run: Person) -> None:
    done = take(run, {"plan": {"goal": "x"}, "count": 5}, "t1")
    assert done.snapshot.revision == 3
    assert state(run, "t1").keys() == {"plan", "count", LIFE}
    row = Revision.objects.get(number=3)
    # Unchanged values are not copied.
    assert (row.kind, row.touched) == ("import", ["count", "grant", "notes"])
    assert row.reason == "imported a snapshot of revision 7"
    assert StateValue.objects.filter(thread__public_id="t1", key="plan").count() == 1
    assert state(run, "t1", 2)["notes"] == ["n"]


def test_import__merge__keeps_other_keys(run: Person) -> None:
    take(run, {"count": 5}, "t1", mode="merge")
    now = state(run, "t1")
    assert (now["count"], now["notes"], now["grant"]) == (5, ["n"], 1)
    assert Revision.objects.get(number=3).touched == ["count"]


@pytest.mark.parametrize("revision", [0, 1, 2, 10**9])
def test_import__revision_of_the_snapshot__does_not_change_the_threads_own(
    run: Person, revision: int
) -> None:
    assert take(run, {"count": 1}, "t1", revision=revision).snapshot.revision == 3
    assert Thread.objects.get(public_id="t1").revision == 3


def test_import__same_again__is_a_revision_without_changes(run: Person) -> None:
    take(run, {"count": 5}, "t1")
    assert take(run, {"count": 5}, "t1").snapshot.revision == 4
    assert Revision.objects.get(number=4).touched == []


def test_import__any__writes_one_revision_one_audit_row_one_change(run: Person) -> None:
    AuditRow.objects.all().delete()
    Change.objects.all().delete()
    take(run, {"count": 1}, "t1", reason="moved")
    audited = AuditRow.objects.values_list("action", "thread", "version", "reason")
    assert list(audited) == [("thread.import", "t1", 3, "moved")]
    assert list(Change.objects.values_list("kind", "version")) == [("thread.import", 3)]


# Refusals ------------------------------------------------------------------------------------


def refused(person: Person, extensions: dict[str, Any], **how: Any) -> Invalid:
    before = (Thread.objects.get(public_id="t1").revision, state(person, "t1"))
    with pytest.raises(Invalid) as caught:
        take(person, extensions, "t1", **how)
    assert (Thread.objects.get(public_id="t1").revision, state(person, "t1")) == before
    return caught.value


def test_import__unknown_key__is_an_error_or_skipped(run: Person) -> None:
    problem = refused(run, {"zzz": 1, "a/b~c": 2, "count": 1})
    assert problem.detail == "unknown key: a/b~c"
    pointers = [fault["pointer"] for fault in problem.data["errors"]]
    assert pointers == ["/snapshot/extensions/a~1b~0c", "/snapshot/extensions/zzz"]
    done = take(run, {"zzz": 1, "a/b~c": 2, "count": 1}, "t1", unknown_keys="skip")
    assert done.skipped == ("a/b~c", "zzz")
    assert state(run, "t1").keys() == {"count", LIFE}


def test_import__invalid_values__are_all_reported(run: Person) -> None:
    make_state_key(run.actor, "list", schema={"items": {"type": "integer"}})
    problem = refused(run, {"count": 1.5, "list": [1, "x"], "plan": 1})
    pointers = [fault["pointer"] for fault in problem.data["errors"]]
    assert pointers == ["/snapshot/extensions/count", "/snapshot/extensions/list/1"]
    # Skipping applies to unknown keys, never to invalid values.
    refused(run, {"count": "x"}, unknown_keys="skip")


def test_import__value_above_the_limit__is_refused(run: Person) -> None:
    problem = refused(run, {"plan": "x" * (MAX_VALUE_BYTES - 1)})
    (fault,) = problem.data["errors"]
    assert fault["pointer"] == "/snapshot/extensions/plan"
    assert fault["message"] == "has 8388609 bytes; the limit is 8388608 bytes"


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"plan": "a\\u0000"}', "/snapshot/extensions/plan"),
        ('{"plan": ' + "[" * 65 + "]" * 65 + "}", "/snapshot/extensions/plan"),
        ('{"a\\u0000b": 1}', "/snapshot/extensions"),
        ('{"\\ud800": 1}', "/snapshot/extensions"),
        ("[]", "/snapshot/extensions"),
        ('{"plan": 1, "plan": 2}', ""),
    ],
)
def test_import__forbidden_content__is_422_with_its_place(
    run: Person, text: str, pointer: str
) -> None:
    for policy in ("error", "skip"):
        body = (
            f'{{"snapshot": {{"revision": 1, "extensions": {text}}}, "unknown_keys": "{policy}"}}'
        )
        answer = run.api("POST", "/threads/t1/import", body.encode())
        assert answer.status_code == 422, answer.content
        assert all(f["pointer"].startswith(pointer) for f in answer.json()["errors"])
    assert Thread.objects.get(public_id="t1").revision == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"snapshot": {"extensions": {}}}, 422),
        ({"snapshot": {"revision": 1}}, 422),
        ({"snapshot": {"revision": -1, "extensions": {}}}, 422),
        ({"snapshot": {"revision": 1, "extensions": {}}, "mode": "add"}, 422),
        ({"snapshot": {"revision": 1, "extensions": {}}, "unknown_keys": "no"}, 422),
        ({"snapshot": {"revision": 1, "extensions": {}, "more": 1}}, 400),
        ({"snapshot": {"revision": 1, "extensions": {}}, "more": 1}, 400),
        ({"snapshot": []}, 400),
    ],
)
def test_import__malformed_request__is_refused(run: Person, body: Any, status: int) -> None:
    assert run.api("POST", "/threads/t1/import", body).status_code == status


def test_import__stale_if_match__is_refused(run: Person) -> None:
    body = {"snapshot": {"revision": 1, "extensions": {}}}
    answer = run.api("POST", "/threads/t1/import", body, If_Match='"1"')
    assert answer.status_code == 412
    assert answer.json()["detail"] == "revision conflict: expected 1, actual 2"
    done = run.api("POST", "/threads/t1/import", body, If_Match='"2"')
    assert (done.status_code, done["ETag"]) == (200, '"3"')


def test_import__viewer_or_non_member__is_refused(
    run: Person, bob: Person, mallory: Person
) -> None:
    with pytest.raises(Forbidden):
        take(bob, {}, "t1")
    for verb in (partial(take, mallory, {}, "t1"), partial(export, mallory)):
        with pytest.raises(NotFound):
            verb()


def test_import__transient_key__is_removed_at_the_end_of_the_run(run: Person) -> None:
    take(run, {"grant": 5}, "t1", mode="merge")
    assert state(run, "t1")["grant"] == 5
    commit(run.actor, "r1", run=builders.runs.RunChange(status="done"))
    assert "grant" not in state(run, "t1")


@pytest.mark.django_db(transaction=True)
def test_race__8_imports_on_one_revision__exactly_one_lands(run: Person) -> None:
    one = partial(take, run, {"count": 9}, "t1", expected_revision=2)
    won, lost = split(race([one] * 8))
    assert len(won) == 1
    assert {problem.detail for problem in lost} == {"revision conflict: expected 2, actual 3"}
    assert all(isinstance(problem, RevisionConflict) for problem in lost)


def test_restore__transient_key__is_restored_only_into_its_run(run: Person) -> None:
    a = run.actor
    commit(a, "r1", {"grant": 2})
    snapshots.restore_snapshot(actor=a, thread_id="t1", revision=2)
    assert state(run, "t1")["grant"] == 1
    commit(a, "r1", run=builders.runs.RunChange(status="done"))
    snapshots.restore_snapshot(actor=a, thread_id="t1", revision=2)
    assert state(run, "t1").keys() == {"plan", "notes", "count", LIFE}
    make_run(a, "t1", "r2")
    snapshots.restore_snapshot(actor=a, thread_id="t1", revision=2)
    assert "grant" not in state(run, "t1")


# Marks ---------------------------------------------------------------------------------------


def test_mark__label_and_pin__are_set_and_removed_independently(run: Person) -> None:
    def mark(**body: Any) -> Any:
        answer = run.api("PATCH", "/threads/t1/snapshots/2", body)
        assert answer.status_code == 200
        return answer.json()["label"], answer.json()["pinned"]

    assert mark(label="before") == ("before", False)
    assert mark(pinned=True) == ("before", True)
    assert mark() == ("before", True)
    assert mark(label="x" * 128) == ("x" * 128, True)
    assert mark(label="") == ("", True)
    assert mark(pinned=False) == ("", False)
    for bad in ({"label": "x" * 129}, {"label": "a\0"}, {"label": 1}, {"pinned": 1}):
        assert run.api("PATCH", "/threads/t1/snapshots/2", bad).status_code == 422


@pytest.mark.parametrize("body", [{}, {"label": "x"}])
def test_mark__revision_zero__is_refused(run: Person, body: Any) -> None:
    assert run.api("PATCH", "/threads/t1/snapshots/0", body).status_code == 404


def test_values__json_of_export__is_equal_when_parsed(run: Person) -> None:
    text = run.api("GET", "/threads/t1/state?export=true").content.decode()
    assert values.load(text)["extensions"] == json.loads(text)["extensions"] == export(run)
