"""What is wrong in a body is named by its place: `errors` of a problem."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Person, make_namespace, make_run, make_state_key, make_thread, put


@pytest.fixture
def equipped(alice: Person) -> Person:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"goal": "x"})
    make_state_key(alice.actor, "plan")
    make_thread(alice.actor, "t1")
    make_thread(alice.actor, "t2", parent_thread_id="t1")
    make_run(alice.actor, "t1", "r1")
    return alice


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.content
    assert all(error["message"] for error in answer.json()["errors"])
    return [error["pointer"] for error in answer.json()["errors"]]


AGENT_PROTOCOL = "/agent-protocol"
GET = {"op": "get", "namespace": "notes", "key": "k"}
KNOWN, UNKNOWN = {"key": "plan", "update": 1}, {"key": "x", "update": 1}
TICKET = {"tool_call_id": "c", "tool_name": "t"}


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer"),
    [
        ("POST", "/threads", {"id": "a\nb"}, "/id"),
        ("POST", "/threads", {"parent_thread_id": "nope"}, "/parent_thread_id"),
        ("POST", "/threads", {"id": "a", "parent_thread_id": "a"}, "/parent_thread_id"),
        ("PATCH", "/threads/t1", {"parent_thread_id": "t1"}, "/parent_thread_id"),
        ("PATCH", "/threads/t1", {"parent_thread_id": "t2"}, "/parent_thread_id"),
        ("POST", "/threads/t1/fork", {"id": "a\nb"}, "/id"),
        ("POST", "/threads/t2/runs", {"id": "a\nb"}, "/id"),
        ("POST", "/threads/t1/messages", {"messages": []}, "/messages"),
        ("POST", "/state/batch", {"operations": []}, "/operations"),
        ("POST", "/state/batch", {"operations": [GET] * 1001}, "/operations"),
        ("POST", "/runs/r1/commits", {"updates": [KNOWN, UNKNOWN]}, "/updates/1/key"),
        ("POST", "/runs/r1/commits", {"batches": [[KNOWN], [UNKNOWN]]}, "/batches/1/0/key"),
        (
            "POST",
            "/runs/r1/commits",
            {"batches": [{"updates": [UNKNOWN]}]},
            "/batches/0/updates/0/key",
        ),
        ("POST", "/runs/r1/commits", {"updates": [KNOWN], "batches": []}, "/batches"),
        ("POST", "/runs/r1/commits", {"updates": [KNOWN] * 10_001}, "/updates"),
        (
            "PATCH",
            "/runs/r1",
            {
                "status": "waiting",
                "waiting": {
                    "reason": "tool_permission",
                    "tickets": [TICKET, TICKET | {"ticket_id": "a\nb"}],
                },
            },
            "/waiting/tickets/1/ticket_id",
        ),
        ("POST", "/restore", {"namespace": "notes", "at": "yesterday"}, "/at"),
        ("POST", "/restore", {"namespace": "notes", "at": "2999-01-01T00:00:00Z"}, "/at"),
        ("POST", "/search", {}, "/text"),
        ("POST", "/search", {"text": "?"}, "/text"),
        (
            "POST",
            "/search",
            {
                "text": "/goal = 1",
                "where": [{"path": "/a", "equals": 1}, {"path": "a", "equals": 1}],
            },
            "/where/1/path",
        ),
        ("POST", "/redact/notes/k", {"reason": " "}, "/reason"),
        ("POST", "/erase", {"key": "k", "reason": " "}, "/reason"),
        ("POST", "/tokens", {"name": " ", "role": "viewer"}, "/name"),
    ],
)
def test_body__not_valid__is_named_by_its_place(
    equipped: Person, method: str, path: str, body: dict[str, Any], pointer: str
) -> None:
    if method == "PATCH" and path.startswith("/runs"):
        assert equipped.api("PATCH", path, {"status": "running"}).status_code == 200
    assert pointers(equipped.api(method, path, body)) == [pointer]


@pytest.mark.parametrize("path", ["/namespaces/a b", "/state-keys/a b", "/plugins/a b"])
def test_name__in_the_path_not_valid__has_no_pointer_and_a_detail(alice: Person, path: str) -> None:
    body = {} if "plugins" in path else {"schema": {}, "default": 1}
    answer = alice.api("PUT", path, body)
    assert pointers(answer) == []
    assert "a name is 1 to 128 characters" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/state/notes?foo=1", "foo"),
        ("/state/notes?cursor=abc", "cursor"),
        ("/state/notes/k?at_version=1&since=1", "at_version"),
        ("/state/notes/k?at=2026-01-31T12:00:00Z&since=1", "at"),
    ],
)
def test_query__not_valid__is_named_by_parameter(
    equipped: Person, path: str, parameter: str
) -> None:
    answer = equipped.api("GET", path)
    assert (answer.status_code, answer.json().get("parameter")) == (400, parameter)


def test_cursor__of_other_filters__is_named_by_parameter(equipped: Person) -> None:
    put(equipped.actor, "notes", "l", {"goal": "y"})
    cursor = equipped.api("GET", "/state/notes?limit=1").json()["next_cursor"]
    answer = equipped.api("GET", f"/state/notes?limit=1&prefix=k&cursor={cursor}")
    assert answer.json()["parameter"] == "cursor"


def test_cursor__in_a_body__is_named_by_its_place(equipped: Person) -> None:
    webhook = {"name": "billing", "url": "https://hooks.example.com/secret-path"}
    hook = equipped.api("POST", "/webhooks", webhook).json()
    for path, body in {
        "/search": {"text": "x"},
        "/webhooks": webhook,
        f"/webhooks/{hook['id']}/replay": {},
    }.items():
        answer = equipped.api("POST", path, {**body, "cursor": "abc"})
        assert answer.status_code == 400, answer.content
        assert "parameter" not in answer.json()
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/cursor"]


def test_commit__ticket_without_a_tool__is_refused_as_waiting(equipped: Person) -> None:
    assert equipped.api("PATCH", "/runs/r1", {"status": "running"}).status_code == 200
    for member, value in (("tickets", [{"tool_call_id": "c"}]), ("wake", "shout")):
        waiting = {"reason": "tool_permission", member: value}
        run = {"status": "waiting", "waiting": waiting}
        answer = equipped.api("POST", "/runs/r1/commits", {"run": run})
        place = f"/run/waiting/{member}" + ("/0/tool_name" if member == "tickets" else "")
        assert pointers(answer) == [place]
        assert answer.json()["detail"] == "`waiting` is not valid"


def test_agent_protocol__unknown_key_of_values__is_named_by_its_place(equipped: Person) -> None:
    path = f"{AGENT_PROTOCOL}/threads/t1/state"
    answer = equipped.api("POST", path, {"values": {"no/key": 1}})
    assert pointers(answer) == ["/values/no~1key"]


def test_entry__that_cannot_be_stored__is_named_by_its_place_in_the_value(
    equipped: Person,
) -> None:
    answer = equipped.api("PUT", "/state/notes/k", {"value": {"goal": "a\0b"}})
    assert pointers(answer) == ["/goal"]
    patch = {"op": "patch", "namespace": "notes", "key": "k", "patch_type": "json"}
    patch["patch"] = [{"op": "remove", "path": "/absent"}]  # type: ignore[assignment]
    answer = equipped.api("POST", "/state/batch", {"operations": [GET, patch]})
    assert answer.json()["index"] == 1
    assert pointers(answer) == ["/0/path"]
