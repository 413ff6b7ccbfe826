"""Refused commits: the text of the refusal, and that nothing was stored."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.models import StateKey
from state_admin.services import commits
from state_admin.services.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RevisionConflict,
    TooLarge,
    VersionConflict,
)
from state_admin.services.runs import RunChange
from tests import builders
from tests.builders import Person, make_state_key, raw, step
from tests.services.test_commits import USER, do, refused, revision, run, state

__all__ = ["run"]


def test_commit__stale_base__reports_both_revisions(run: Person) -> None:
    do(run, {"counter": 1})
    problem = refused(run, RevisionConflict, {"plan": 1}, base_revision=1)
    assert problem.detail == "revision conflict: expected 1, actual 2"
    assert (problem.data["expected"], problem.data["actual"]) == (1, 2)
    problem = refused(run, RevisionConflict, {"plan": 1}, base_revision=9)
    assert problem.detail == "revision conflict: expected 9, actual 2"
    assert problem.hint == "Read the state again and retry."


def test_commit__base_zero__is_an_ordinary_base(run: Person) -> None:
    problem = refused(run, RevisionConflict, {"plan": 1}, base_revision=0)
    assert problem.detail == "revision conflict: expected 0, actual 1"
    problem = refused(run, RevisionConflict, {"plan": 1}, {"counter": 1}, bases=(0, None))
    assert problem.detail == "revision conflict: expected 0, actual 1"


def test_commit__without_a_base__is_stored_after_any_change(run: Person) -> None:
    for number in range(3):
        do(run, {"plan": number})
    assert do(run, {"plan": "last"}).revision == 5


def test_commit__unknown_key__is_reported(run: Person) -> None:
    problem = refused(run, Invalid, {"counter": 1, "nobody.knows": 1})
    assert problem.hint == "Register the state key with PUT /api/v1/state-keys/{key}."
    assert problem.detail == "unknown key: nobody.knows"


@pytest.mark.parametrize(
    ("parts", "detail"),
    [
        (({"plan": 1}, {"plan": 2}), "parallel merge conflict on exclusive key: plan"),
        (({"counter": 1, "plan": 1}, {"counter": 2, "plan": 2}),
         "parallel merge conflict on exclusive key: plan"),
        (({"nobody": 1}, {"nobody": 2}), "parallel merge conflict on exclusive key: nobody"),
        (({"counter": 1}, {"plan": 1}, {"plan": 2}),
         "parallel merge conflict on exclusive key: plan"),
    ],
)  # fmt: skip
def test_commit__conflicting_batches__are_refused_completely(
    run: Person, parts: Any, detail: str
) -> None:
    problem = refused(run, Conflict, *parts)
    assert (problem.detail, problem.hint) == (detail, "No part of the commit was applied.")


def test_commit__batches_of_different_bases__are_refused(run: Person) -> None:
    problem = refused(run, Conflict, {"counter": 1}, {"counter": 2}, bases=(1, 2))
    assert problem.detail == "patch base revision mismatch: 1 vs 2"
    assert problem.hint == "No part of the commit was applied."


def test_commit__step_and_batch_of_different_bases__are_refused(run: Person) -> None:
    problem = refused(run, Conflict, {"counter": 1}, bases=(2,), base_revision=1)
    assert problem.detail == "patch base revision mismatch: 1 vs 2"
    assert do(run, {"counter": 1}, {"plan": 1}, bases=(1, 1), base_revision=1).revision == 2


def test_commit__branch_of_another_base__is_reported_before_a_conflict_of_keys(run: Person) -> None:
    problem = refused(run, Conflict, {"plan": 1}, {"plan": 2}, bases=(1, 2))
    assert problem.detail == "patch base revision mismatch: 1 vs 2"


def test_commit__four_branches__are_merged_or_refused_completely(run: Person) -> None:
    four = ({"counter": 1}, {"counter": 2, "plan": "p"}, {}, {"counter": 3, "notes": ["n"]})
    refused(run, Conflict, *four, {"notes": ["m"]})
    assert do(run, *four, bases=(None, 1, None, 1)).revision == 2
    assert state(run) == {"counter": 6, "plan": "p", "notes": ["n"]}


def test_commit__one_batch_has_a_base__it_applies_to_all(run: Person) -> None:
    do(run, {"counter": 1})
    problem = refused(run, RevisionConflict, {"counter": 1}, {"counter": 2}, bases=(None, 1))
    assert problem.detail == "revision conflict: expected 1, actual 2"
    assert do(run, {"counter": 1}, {"counter": 2}, bases=(2, None)).revision == 3


def test_commit__disjoint_and_commutative_batches__are_merged_in_order(run: Person) -> None:
    do(run, {"counter": 1}, {"counter": 2, "plan": "b"}, {"notes": ["c"]}, {"counter": 4})
    assert state(run) == {"counter": 7, "plan": "b", "notes": ["c"]}
    assert revision() == 2


def test_commit__invalid_update__changes_nothing(run: Person) -> None:
    problem = refused(run, Invalid, {"plan": 1, "counter": "many"})
    assert problem.detail == "the update of counter cannot be applied"
    problem = refused(run, Invalid, {"plan": 1, "counter": 1.5})
    assert problem.detail == "the value of counter would not satisfy its schema"


def test_commit__value_unsuited_to_the_reducer__is_refused(run: Person) -> None:
    do(run, {"plan": "text"})
    make_state_key(run.actor, "plan", reducer="add")
    problem = refused(run, Invalid, {"plan": 1})
    assert problem.detail == "the update of plan cannot be applied"


def test_commit__failing_json_patch_test__is_a_conflict(run: Person) -> None:
    make_state_key(run.actor, "doc", reducer="json_patch", default={})
    test = [{"op": "test", "path": "/a", "value": 1}]
    assert refused(run, Conflict, {"doc": test}).detail == "test failed at /a"


def test_commit__value_grows_beyond_the_limits__is_refused(run: Person) -> None:
    do(run, {"notes": [0] * 9000})
    refused(run, Invalid, {"notes": [0] * 9000})
    make_state_key(run.actor, "texts", reducer="append", default=[])
    do(run, {"texts": ["x" * (5 << 20)]})
    problem = refused(run, TooLarge, {"texts": ["x" * (5 << 20)]})
    assert problem.detail.startswith("the value of texts would have ")
    assert problem.hint


def test_commit__invalid_transition__changes_nothing(run: Person) -> None:
    problem = refused(run, Conflict, {"plan": 1}, run=RunChange(status="created"))
    assert problem.detail == "invalid run transition: running -> created"


@pytest.mark.parametrize("expected", [0, 2, 3])
def test_commit__message_count_differs__reports_both_counts(run: Person, expected: int) -> None:
    builders.append(run.actor, "t1", USER)
    problem = refused(
        run, VersionConflict, {"plan": 1}, messages=[raw(USER)], expected_message_count=expected
    )
    assert problem.detail == f"version conflict: expected {expected}, actual 1"


def test_commit__message_id_in_use__changes_nothing(run: Person) -> None:
    builders.append(run.actor, "t1", {**USER, "id": "m1"})
    fields = {"messages": [raw(USER), raw({**USER, "id": "m1"})]}
    assert refused(run, Conflict, {"plan": 1}, **fields).detail == "message already committed: m1"
    twice = {"messages": [raw({**USER, "id": "m2"})] * 2}
    assert refused(run, Conflict, {"plan": 1}, **twice).detail == (
        "duplicate message id in the request: m2"
    )


def test_commit__done_run__is_refused(run: Person) -> None:
    do(run, run=RunChange(status="done"))
    problem = refused(run, Conflict, {"plan": 1})
    assert (problem.detail, problem.hint) == ("run is done: r1", "Start a new run on the thread.")


def test_commit__viewer_or_non_member__is_refused(
    run: Person, bob: Person, mallory: Person
) -> None:
    with pytest.raises(Forbidden):
        commits.commit(actor=bob.actor, run_id="r1", step=step({"plan": 1}))
    with pytest.raises(NotFound):
        commits.commit(actor=mallory.actor, run_id="r1", step=step({"plan": 1}))


def test_commit__several_reasons_to_refuse__reports_the_first_of_the_contract(
    run: Person,
) -> None:
    """In this order: merge, base, known keys, updates and schemas, run transition, message
    count."""
    everything: dict[str, Any] = {
        "base_revision": 7,
        "run": RunChange(status="created"),
        "messages": [raw(USER)],
        "expected_message_count": 9,
    }
    bad = {"nobody": 1, "counter": "x"}
    told = [refused(run, Conflict, {**bad, "plan": 1}, {"plan": 2}, **everything).detail]
    told.append(refused(run, RevisionConflict, bad, **everything).detail)
    del everything["base_revision"]
    told.append(refused(run, Invalid, bad, **everything).detail)
    told.append(refused(run, Invalid, {"counter": "x"}, **everything).detail)
    told.append(refused(run, Conflict, {"counter": 1}, **everything).detail)
    del everything["run"]
    told.append(refused(run, VersionConflict, {"counter": 1}, **everything).detail)
    assert told == [
        "parallel merge conflict on exclusive key: plan",
        "revision conflict: expected 7, actual 1",
        "unknown key: nobody",
        "the update of counter cannot be applied",
        "invalid run transition: running -> created",
        "version conflict: expected 9, actual 0",
    ]


def test_state_key__default_of_a_type_that_its_reducer_cannot_change__is_refused(
    run: Person,
) -> None:
    with pytest.raises(Invalid) as refused:
        make_state_key(run.actor, "sum", reducer="add", default="0")
    assert refused.value.detail == "the reducer add cannot start from the default"
    assert refused.value.data["errors"] == [
        {
            "pointer": "/default",
            "message": "add requires a number, but the current value is a string",
        }
    ]
    assert not StateKey.objects.filter(name="sum").exists()


def test_state_key__registered_before_the_check_of_defaults__can_be_registered_again(
    run: Person,
) -> None:
    make_state_key(run.actor, "sum", default="0")
    StateKey.objects.filter(name="sum").update(reducer="add")
    key = make_state_key(run.actor, "sum", reducer="add", default="0")
    assert key.reducer == "add"
    with pytest.raises(Invalid):
        make_state_key(run.actor, "sum", reducer="add", default="1")
