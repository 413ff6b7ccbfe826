"""Commits through the lane: what Django would answer and store, by fewer round trips."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from state_admin.services import runs
from state_admin.services.policies import put_policy
from tests.builders import raw

from .lanes import GENERATED, JSON, Header, Request, Side, bearer, check_same, shown

pytestmark = pytest.mark.django_db


def commit(run: str = "r0", body: Any = None, *headers: Header, by: str = "editor") -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ("POST", f"/api/v1/runs/{run}/commits", (bearer(by), JSON, *headers), content)


def update(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "update": value}


PLAN = {"updates": [update("plan", {"a": 1})]}
HELLO = {"id": "m1", "role": "user", "content": "Hello"}
END = {"status": "done", "termination_reason": {"type": "natural_end"}}


def test_lane__plain_commits__are_answered_like_django(sides: tuple[Side, Side]) -> None:
    requests = [
        commit(body=PLAN),
        commit(body={"updates": [update("log", [1]), update("log", [2.50]), update("plan", "ü")]}),
        commit(body={"batches": [[update("log", [3])], [update("log", [4])]], "label": "merged"}),
        commit(body={"messages": [HELLO, {"id": "m2", "role": "assistant", "content": "Hi"}]}),
        commit("r1", {"updates": [{"key": "plan", "clear": True}], "base_revision": 1}),
        commit("r0", {**PLAN, "fencing_token": 1}, ("Run-Id", "r9"), ("Change-Reason", "für")),
        commit("r%32", {**PLAN, "expected_message_count": 0}, ("If-Match", '"1"')),
    ]
    answers = check_same(sides, requests)
    assert [answer.status for answer in answers] == [200] * 7
    assert sides[0].joined == 7


def test_lane__commit_with_a_key__is_kept_and_replayed_by_django(sides: tuple[Side, Side]) -> None:
    key = ("Idempotency-Key", "one")
    request = commit("r%30", PLAN, key)
    first, second, third, other = check_same(
        sides, [request, request, commit("r0", PLAN, key), commit("r0", {"label": "x"}, key)]
    )
    assert sides[0].joined == 1
    assert first.body == second.body == third.body
    assert other.status == 422


@pytest.mark.parametrize(
    "request_",
    [
        commit("absent", PLAN),
        commit("r0/x", PLAN),
        commit("%00", PLAN),
        commit(body=b""),
        commit(body=b"{"),
        commit(body={}),
        commit(body={"updates": [], "batches": []}),
        commit(body={"unknown": 1}),
        commit(body={"updates": [update("absent", 1)]}),
        commit(body={"updates": [{"key": "plan"}]}),
        commit(body={"updates": [update("text", "A")]}),  # the schema refuses it
        commit(body={"batches": [[update("plan", 1)], [update("plan", 2)]]}),
        commit(body={**PLAN, "run": {"step_count": 3}}),
        commit(body={**PLAN, "run": END}),
        commit(body={**PLAN, "reads": [{"namespace": "notes", "key": "k", "version": 0}]}),
        commit(body={**PLAN, "base_revision": 7}),
        commit(body={**PLAN, "base_revision": 0}),
        commit(body={**PLAN, "base_revision": 0, "on_conflict": "rebase"}),
        commit("r0", {**PLAN, "base_revision": 0}, ("If-Match", '"1"')),
        commit("r0", PLAN, ("If-Match", "1")),
        commit(body={**PLAN, "fencing_token": 9}),
        commit(body={"messages": [{"role": "nobody", "content": "x"}]}),
        commit(body={"messages": [HELLO, HELLO]}),
        commit(body={"messages": [HELLO], "expected_message_count": 4}),
        commit(body={"label": "x" * 70_000}),
        commit("r0", PLAN, by="viewer"),
        commit("r0", PLAN, by="slow"),
        commit("r0", PLAN, ("X-Unlisted", "1")),
        ("POST", "/api/v1/runs/r0/commits?dry_run=true", (bearer(), JSON), b'{"label": "x"}'),
        ("POST", "/api/v1/runs/r0/commits", (bearer(),), b'{"label": "x"}'),
    ],
    ids=lambda request: " ".join(map(str, request))[:120],
)
def test_lane__unusual_commit__is_django_s(sides: tuple[Side, Side], request_: Request) -> None:
    check_same(sides, [request_])
    assert sides[0].joined == 0


def test_lane__message_id_that_is_taken__is_refused_by_django(sides: tuple[Side, Side]) -> None:
    request = commit(body={"messages": [HELLO]})
    first, second = check_same(sides, [request, request])
    assert [first.status, second.status] == [200, 409]
    assert sides[0].joined == 1


def test_lane__large_value__is_changed_by_django(sides: tuple[Side, Side]) -> None:
    large = commit(body={"updates": [update("plan", "x" * 140_000)]})
    check_same(sides, [large, commit(body=PLAN), commit(body=PLAN)])
    assert sides[0].joined == 1


def test_lane__commit_of_a_run_that_is_done__is_refused_by_django(sides: tuple[Side, Side]) -> None:
    for side in sides:
        change = runs.RunChange(**END)
        runs.change_run(actor=side.actor, run_id="r0", change=change)
    (answer,) = check_same(sides, [commit(body=PLAN)])
    assert answer.status == 409
    assert sides[0].joined == 0


@pytest.mark.parametrize("scope", ["workspace", "thread"])
def test_lane__thread_that_compacts_by_its_size__is_django_s(
    scope: Any, sides: tuple[Side, Side]
) -> None:
    for side in sides:
        name = "t0" if scope == "thread" else ""
        policy = raw({"autocompact_threshold": 1, "min_gain_tokens": 0})
        put_policy(actor=side.actor, scope=scope, name=name, body=policy)
    check_same(sides, [commit(body={"messages": [HELLO]}), commit(body=PLAN)])
    assert sides[0].joined == 1  # updates make no message


def test_lane__commit__takes_two_round_trips(sides: tuple[Side, Side]) -> None:
    request = commit("r0", {**PLAN, "messages": [HELLO]}, ("Idempotency-Key", "one"))
    sides[0].send(*commit("r1", PLAN))  # the token was used
    with CaptureQueriesContext(connection) as queries:
        sides[0].send(*request)
    assert sides[0].joined == 2
    assert sides[0].sessions.taken[-1].trips == [False, True]
    assert not [each for each in queries if "SAVEPOINT" not in each["sql"]]


# Generated requests ----------------------------------------------------------------------------

VALUES = st.sampled_from([None, 1, "x", [1], {"a": 1}, [2.50, "ü"]])
UPDATES = st.lists(
    st.one_of(
        st.builds(update, st.sampled_from(["plan", "log", "text", "absent"]), VALUES),
        st.just({"key": "plan", "clear": True}),
        st.just({"key": "plan"}),
    ),
    max_size=3,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "nobody"]), "content": st.just("Hello")},
        optional={"id": st.sampled_from(["m1", "m2", "m3"])},
    ),
    max_size=2,
)
STEPS = st.fixed_dictionaries(
    {},
    optional={
        "updates": UPDATES,
        "batches": st.lists(UPDATES, max_size=2),
        "messages": MESSAGES,
        "base_revision": st.integers(0, 8) | st.none(),
        "on_conflict": st.just("rebase"),
        "expected_message_count": st.integers(0, 3) | st.none(),
        "label": st.sampled_from(["", "named"]),
        "fencing_token": st.sampled_from([1, 2]),
        "run": st.sampled_from([{}, {"step_count": 2}]),
    },
)
HEADERS = st.lists(
    st.sampled_from(
        [("If-Match", '"1"'), ("Idempotency-Key", "same"), ("Idempotency-Key", "other"),
         ("Change-Reason", "why"), ("Run-Id", "r9")]
    ),
    max_size=2,
)  # fmt: skip
REQUESTS = st.builds(
    lambda run, body, headers, by: commit(run, body, *headers, by=by),
    st.sampled_from(["r0", "r1", "r2", "r%30", "absent"]),
    STEPS,
    HEADERS,
    st.sampled_from(["editor", "editor", "editor", "viewer"]),
)


@pytest.mark.usefixtures("sides")
@GENERATED
@given(requests=st.lists(REQUESTS, min_size=1, max_size=6))
def test_lane__generated_commits__are_answered_like_django(
    sides: tuple[Side, Side], requests: list[Request]
) -> None:
    """The examples share the two workspaces: what one leaves, the next meets on both sides."""
    check_same(sides, requests)


# Errors ----------------------------------------------------------------------------------------


def test_lane__commit_whose_outcome_is_unknown__is_not_repeated(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("state_admin.models.snapshots_sql.advancing", fail)
    joined, apart = (side.send(*commit(body=PLAN)) for side in sides)
    assert sides[0].joined == 1
    assert shown(joined) == shown(apart)
    assert joined.status == 503
