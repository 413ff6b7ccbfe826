"""What an update does to a state key."""

from __future__ import annotations

import copy
import itertools
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain.patches import PatchTestFailed
from state_admin.domain.reducers import (
    COMMUTATIVE,
    RUNTIME_KEYS,
    Reducer,
    UpdateRefused,
    apply,
    check_default,
    may_commute,
    suspended_calls,
)
from state_admin.domain.values import identity, same
from tests.domain import strategies

LIFE = RUNTIME_KEYS["__runtime.run_lifecycle"]["default"]
STATUSES = ("new", "running", "suspended", "resuming", "succeeded", "failed", "cancelled")
TOOL_MOVES = {
    "new": set(STATUSES),
    "running": {"suspended", "succeeded", "failed", "cancelled"},
    "suspended": {"resuming", "cancelled"},
    "resuming": {"running", "suspended", "succeeded", "failed", "cancelled"},
    "succeeded": set(),
    "failed": set(),
    "cancelled": set(),
}


@pytest.mark.parametrize(
    ("reducer", "value", "update", "result"),
    [
        ("replace", {"a": 1}, {"b": 2}, {"b": 2}),
        ("replace", 1, None, None),
        ("add", 2, 3, 5),
        ("add", 2, 0, 2),
        ("add", None, 3, 3),
        ("max", 2, 3, 3),
        ("min", 2, 3, 2),
        ("append", [], ["fact 1"], ["fact 1"]),
        ("append", ["a"], ["b", "c"], ["a", "b", "c"]),
        ("append", ["a"], "b", ["a", "b"]),
        ("append", None, {"x": 1}, [{"x": 1}]),
        ("append", [1], [], [1]),
        ("union", [1], [1.0, 2, True], [1, 2, True]),
        ("union", [1], 1, [1]),
        ("merge", {"a": 1, "b": {"c": 1}}, {"a": None, "b": {"d": 2}}, {"b": {"c": 1, "d": 2}}),
        ("merge", None, {"a": 1}, {"a": 1}),
        ("json_patch", {"l": [1]}, [{"op": "add", "path": "/l/-", "value": 2}], {"l": [1, 2]}),
        ("json_patch", {"a": 1}, {"op": "remove", "path": "/a"}, {}),
    ],
)
def test_apply__each_reducer__has_its_documented_result(
    reducer: str, value: object, update: object, result: object
) -> None:
    before = copy.deepcopy((value, update))
    assert same(apply(reducer, value, update), result)
    assert (value, update) == before


@pytest.mark.parametrize(
    ("reducer", "value", "update", "message"),
    [
        ("wizard", 1, 1, "unknown reducer 'wizard'"),
        ("add", "x", 1, "add requires a number, but the current value is a string"),
        ("add", 1, "x", "add requires a number, not a string"),
        ("add", 1, True, "add requires a number, not a boolean"),
        ("add", 1, [1], "add requires a number, not an array"),
        ("max", [], 1, "max requires a number, but the current value is an array"),
        ("append", {}, 1, "append requires an array, but the current value is an object"),
        ("union", "x", [1], "union requires an array, but the current value is a string"),
        ("merge", [], {"a": 1}, "merge requires an object, but the current value is an array"),
        ("merge", {}, [1], "merge requires an object, not an array"),
        (
            "json_patch",
            {},
            [{"op": "remove", "path": "/nope"}],
            "/0/path: 'nope' does not exist in an object",
        ),
        ("json_patch", {}, "x", "a patch must be an array, not a string"),
        (
            "lifecycle",
            LIFE,
            "start",
            "the update must be an object with exactly one of: start, step_completed, set_waiting, set_running, done",
        ),
        ("lifecycle", LIFE, {"start": {"run_id": "r"}}, "'updated_at' must be an integer"),
        ("lifecycle", LIFE, {"start": {"updated_at": 1}}, "'run_id' must be a string"),
        (
            "lifecycle",
            LIFE,
            {"start": {"run_id": "r", "updated_at": True}},
            "'updated_at' must be an integer",
        ),
        (
            "lifecycle",
            LIFE,
            {"done": {"updated_at": 1, "reason": 5}},
            "lifecycle: 'reason' must be a string",
        ),
        (
            "lifecycle",
            LIFE,
            {"start": {}, "done": {}},
            "the update must be an object with exactly one of: start, step_completed, set_waiting, set_running, done",
        ),
        (
            "lifecycle",
            LIFE,
            {"flying": {"updated_at": 1}},
            "the update must be an object with exactly one of: start, step_completed, set_waiting, set_running, done",
        ),
        (
            "lifecycle",
            [1],
            {"set_running": {"updated_at": 1}},
            "the stored value must be an object for this reducer",
        ),
        (
            "lifecycle",
            {"step_count": "x"},
            {"set_running": {"updated_at": 1}},
            "'step_count' must be an integer",
        ),
        ("tool_calls", {}, {"put": {"call_id": "c"}}, "'tool_name' must be a string"),
        ("tool_calls", {}, {"put": 1}, "'put' must be an object"),
        ("tool_calls", {}, "shut", "the update must be an object with exactly one of: put, clear"),
        ("tool_calls", {}, None, "the update must be an object with exactly one of: put, clear"),
        (
            "tool_calls",
            {},
            {"put": {"call_id": "c", "tool_name": "t", "status": "flying" * 9, "updated_at": 1}},
            f"tool_calls: unknown status '{('flying' * 9)[:40]}'",
        ),
        (
            "tool_calls",
            {},
            {
                "put": {
                    "call_id": "c",
                    "tool_name": "t",
                    "status": "new",
                    "updated_at": 1,
                    "resume_mode": "x",
                }
            },
            "tool_calls: 'resume_mode' must be one of replay_tool_call, use_decision_as_tool_result, pass_decision_to_tool",
        ),
        (
            "tool_calls",
            {"c": 1},
            {"put": {"call_id": "c", "tool_name": "t", "status": "new", "updated_at": 1}},
            "the stored value must be an object for this reducer",
        ),
    ],
)
def test_apply__invalid_update__is_refused(
    reducer: str, value: object, update: object, message: str
) -> None:
    with pytest.raises(UpdateRefused) as refused:
        apply(reducer, value, update)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("reducer", "default", "accepted"),
    [
        ("add", 1.5, True),
        ("add", None, True),
        ("add", "0", False),
        ("max", [], False),
        ("append", [1], True),
        ("append", {}, False),
        ("union", "x", False),
        ("merge", {"a": 1}, True),
        ("merge", [], False),
        ("replace", "x", True),
        ("json_patch", "x", True),
    ],
)
def test_check_default__type_that_the_reducer_cannot_change__is_refused(
    reducer: str, default: object, accepted: bool
) -> None:
    with nullcontext() if accepted else pytest.raises(UpdateRefused):
        check_default(reducer, default)


def test_apply__json_patch_with_failed_test__raises_it() -> None:
    with pytest.raises(PatchTestFailed):
        apply("json_patch", {"a": 1}, [{"op": "test", "path": "/a", "value": 2}])


def test_commutative__reducers__are_the_four_that_the_contract_names() -> None:
    assert {"add", "max", "min", "union"} == COMMUTATIVE
    assert set(Reducer) - COMMUTATIVE == {
        "replace", "append", "merge", "json_patch", "lifecycle", "tool_calls",
    }  # fmt: skip


@given(
    st.sampled_from(["add", "max", "min"]),
    st.integers(),
    st.lists(st.integers(), min_size=1, max_size=4),
)
def test_commutative__number_reducers__are_independent_of_order(
    reducer: str, start: int, updates: list[int]
) -> None:
    results = set()
    for order in itertools.permutations(updates):
        value: Any = start
        for update in order:
            value = apply(reducer, value, update)
        results.add(value)
    assert len(results) == 1


@given(st.lists(st.lists(strategies.close_values, max_size=3), min_size=1, max_size=3))
def test_commutative__union__has_the_same_members_in_any_order(
    updates: list[list[object]],
) -> None:
    results = set()
    for order in itertools.permutations(updates):
        value: Any = []
        for update in order:
            value = apply("union", value, update)
        results.add(frozenset(map(identity, value)))
    assert len(results) == 1


def test_runtime_keys__definitions__are_those_of_the_reference_implementation() -> None:
    """The keys of the reference runtime that begin with `__`: merge, scope, all persistent."""
    marks = {name: (key["merge"], key["scope"]) for name, key in RUNTIME_KEYS.items()}
    assert marks == {
        "__runtime.run_lifecycle": ("exclusive", "run"),
        "__runtime.tool_call_states": ("commutative", "thread"),
        "__runtime.context_throttle": ("exclusive", "run"),
        "__runtime.context_message_store": ("commutative", "run"),
        "__runtime.pending_work": ("exclusive", "run"),
        "__runtime.tool_filter_state": ("commutative", "run"),
        "__runtime.inference_override_state": ("commutative", "run"),
        "__runtime.stop_condition_stats": ("exclusive", "run"),
        "__runtime.pending_scheduled_actions": ("exclusive", "run"),
        "__runtime.failed_scheduled_actions": ("exclusive", "run"),
        "__runtime.active_agent": ("exclusive", "thread"),
        "__context_compaction": ("exclusive", "run"),
    }
    assert all(key["persistent"] for key in RUNTIME_KEYS.values())
    own = {name: (key["reducer"], key["default"]) for name, key in RUNTIME_KEYS.items()}
    assert own.pop("__runtime.run_lifecycle") == ("lifecycle", LIFE)
    assert own.pop("__runtime.tool_call_states") == ("tool_calls", {})
    assert dict(own.values()) == {"replace": None, "merge": {}}
    assert {(marks[name][0], reducer) for name, (reducer, _) in own.items()} == {
        ("exclusive", "replace"),
        ("commutative", "merge"),
    }


def test_lifecycle__complete_run__has_the_values_of_the_reference_implementation() -> None:
    value: Any = None
    steps = [
        ({"start": {"run_id": "r1", "updated_at": 1}}, ("running", None, 1, 0)),
        ({"step_completed": {"updated_at": 2}}, ("running", None, 2, 1)),
        ({"StepCompleted": {"updated_at": 3}}, ("running", None, 3, 2)),
        ({"set_waiting": {"reason": "input_required", "updated_at": 4}}, ("waiting", "input_required", 4, 2)),
        ({"set_running": {"updated_at": 5, "reason": "resumed"}}, ("running", None, 5, 2)),
        ({"done": {"reason": "natural", "updated_at": 6}}, ("done", "natural", 6, 2)),
    ]  # fmt: skip
    for update, (status, reason, at, count) in steps:
        value = apply("lifecycle", value, update)
        expected = {"run_id": "r1", "status": status, "updated_at": at, "step_count": count}
        assert value == expected | ({"status_reason": reason} if reason else {})


@pytest.mark.parametrize(
    ("status", "update"),
    [
        ("done", {"set_running": {"updated_at": 9}}),
        ("done", {"set_waiting": {"updated_at": 9}}),
        ("created", {"set_waiting": {"updated_at": 9}}),
    ],
)
def test_lifecycle__invalid_transition__keeps_the_value(status: str, update: object) -> None:
    value = {**LIFE, "status": status}
    assert apply("lifecycle", value, update) is value


def test_lifecycle__start_after_done__resets_it() -> None:
    done = {
        "run_id": "r1",
        "status": "done",
        "status_reason": "natural",
        "updated_at": 1,
        "step_count": 7,
    }
    assert apply("lifecycle", done, {"start": {"run_id": "r2", "updated_at": 2}}) == {
        "run_id": "r2", "status": "running", "updated_at": 2, "step_count": 0,
    }  # fmt: skip


@pytest.mark.parametrize("old_name", ["done_reason", "pause_reason"])
def test_lifecycle__old_reason_names__are_read(old_name: str) -> None:
    value = {
        "run_id": "r",
        "status": "waiting",
        old_name: "rate_limit",
        "updated_at": 1,
        "step_count": 0,
    }
    made = apply("lifecycle", value, {"step_completed": {"updated_at": 2}})
    assert made["status_reason"] == "rate_limit"
    assert old_name not in made


def put(status: str, call_id: str = "c1", **more: object) -> dict[str, object]:
    return {
        "put": {"call_id": call_id, "tool_name": "t", "status": status, "updated_at": 1, **more}
    }


@pytest.mark.parametrize("old", STATUSES)
@pytest.mark.parametrize("new", STATUSES)
def test_tool_calls__every_transition__is_applied_or_ignored(old: str, new: str) -> None:
    value = {"c1": put(old)["put"]}
    made = apply("tool_calls", value, put(new, updated_at=2))
    taken = new == old or new in TOOL_MOVES[old]
    assert made["c1"]["status"] == (new if taken else old)
    assert (made is value) is not taken


def test_tool_calls__many__are_independent_and_cleared_together() -> None:
    value = apply("tool_calls", None, put("running"))
    value = apply("tool_calls", value, {"Put": put("suspended", "c2", suspension_id="s")["put"]})
    assert {call: state["status"] for call, state in value.items()} == {
        "c1": "running",
        "c2": "suspended",
    }
    assert value["c1"]["resume_mode"] == "replay_tool_call"
    assert value["c2"]["suspension_id"] == "s"
    clearings: list[object] = ["clear", {"clear": {}}, {"Clear": None}]
    for update in clearings:
        assert apply("tool_calls", value, update) == {}


@pytest.mark.parametrize(
    ("name", "reducer", "allowed"),
    [
        ("votes", "add", True),
        ("votes", "union", True),
        ("votes", "merge", False),
        ("votes", "replace", False),
        ("permission_policy", "merge", True),
        ("permission_policy", "replace", False),
    ],
)
def test_may_commute__key_and_reducer__follow_the_reference_implementation(
    name: str, reducer: str, allowed: bool
) -> None:
    assert may_commute(name, reducer) is allowed


def test_suspended_calls__of_a_value__are_those_that_wait() -> None:
    calls = {"c1": {"status": "suspended"}, "c2": {"status": "running"}}
    assert suspended_calls(calls) == {"c1": {"status": "suspended"}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the stored value must be an object for this reducer"),
        ({"c1": []}, "the stored value must be an object for this reducer"),
        ({"c1": {}}, "'status' must be a string"),
    ],
)
def test_suspended_calls__malformed_value__is_refused(value: object, message: str) -> None:
    with pytest.raises(UpdateRefused) as refused:
        suspended_calls(value)
    assert str(refused.value) == message


@pytest.mark.parametrize(("new", "taken"), [("succeeded", True), ("running", False)])
def test_tool_calls__unknown_stored_status__may_only_end(new: str, taken: bool) -> None:
    value = {"c1": {"status": "of a later release"}}
    made = apply("tool_calls", value, put(new))
    assert (made["c1"]["status"] == new) is taken
