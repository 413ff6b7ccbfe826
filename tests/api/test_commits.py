"""Bodies of POST /runs/{run}/commits that are refused before anything is stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Person, make_run, make_state_key, make_thread


@pytest.fixture
def running(alice: Person) -> Person:
    make_state_key(alice.actor, "plan")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    return alice


UPDATE = {"key": "plan", "update": 1}


@pytest.mark.parametrize(
    ("body", "message", "pointer"),
    [
        ({"updates": UPDATE}, 'is not of type "array"', "/updates"),
        ({"updates": {"plan": 1}}, 'is not of type "array"', "/updates"),
        ({"updates": {"updates": [UPDATE]}}, 'is not of type "array"', "/updates"),
        ({"updates": "plan"}, 'is not of type "array"', "/updates"),
        ({"batches": UPDATE}, 'is not of type "array"', "/batches"),
        ({"batches": [1]}, '1 is not of types "array", "object"', "/batches/0"),
        ({"batches": [{}]}, "is required", "/batches/0/updates"),
        ({"batches": [{"updates": UPDATE}]}, 'is not of type "array"', "/batches/0/updates"),
        (
            {"batches": [{"updates": [UPDATE], "base_revision": -1}]},
            "-1 is less than the minimum of 0",
            "/batches/0/base_revision",
        ),
        (
            {"batches": [{"updates": [{"key": "plan"}]}]},
            "an update must have exactly one of update and clear",
            "/batches/0/updates/0",
        ),
    ],
)
def test_commit__updates_in_another_format__are_refused_with_the_expected_format(
    running: Person, body: dict[str, Any], message: str, pointer: str
) -> None:
    answer = running.api("POST", "/runs/r1/commits", body)
    assert answer.status_code == 422
    assert message in str([answer.json()["detail"], answer.json()["errors"]])
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert running.api("GET", "/threads/t1/state").json()["extensions"].get("plan") is None


def test_commit__update_instead_of_a_batch__is_refused_with_the_fields_of_a_batch(
    running: Person,
) -> None:
    answer = running.api("POST", "/runs/r1/commits", {"batches": [UPDATE]})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "unknown field: key, update"
    assert (
        "Known fields: updates, base_revision. /batches/0/updates: is required."
        in answer.json()["hint"]
    )
    assert [each["pointer"] for each in answer.json()["errors"]] == [
        "/batches/0/key",
        "/batches/0/update",
    ]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"updates": [UPDATE, {"key": "count", "update": "x"}]}, "/updates/1/update"),
        ({"batches": [[UPDATE], [{"key": "count", "update": "x"}]]}, "/batches/1/0/update"),
        (
            {"batches": [{"updates": [UPDATE, {"key": "count", "update": "x"}]}]},
            "/batches/0/updates/1/update",
        ),
        ({"run": {"metadata": 1}}, "/run/metadata"),
        ({"run": {"status": "done", "termination_reason": {}}}, "/run/termination_reason/type"),
    ],
)
def test_commit__refused_part__has_its_place_in_the_body(
    running: Person, body: dict[str, Any], pointer: str
) -> None:
    running.api("PUT", "/state-keys/count", {"reducer": "add", "default": 0})
    answer = running.api("POST", "/runs/r1/commits", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_commit__batches_as_lists_or_objects__are_stored(running: Person) -> None:
    batches = [[UPDATE], {"updates": [], "base_revision": 1}]
    answer = running.api("POST", "/runs/r1/commits", {"batches": batches})
    assert answer.status_code == 200, answer.content
