"""The tools through the official client: their effects, permissions, and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from state_admin.domain.access import Role
from state_admin.mcp.calls import MOST_BYTES
from state_admin.mcp.tools import TOOLS
from state_admin.models import AuditRow, EntryRevision
from tests.builders import (
    Person,
    append,
    commit,
    make_namespace,
    make_run,
    make_thread,
    make_token,
    put,
)
from tests.mcp.asking import ERAS, MCP, pointers, problem_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)

HELLO = {"role": "user", "content": "hello"}
PLACE = {"namespace": "notes", "key": "a/b"}
# For each tool a call that succeeds in `world`, and what would hide it: a namespace or a thread.
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "list_namespaces": ({}, ""),
    "list_state": ({"namespace": "notes", "include": "value"}, "namespaces"),
    "get_state": (PLACE, "namespaces"),
    "put_state": ({**PLACE, "value": 1, "tags": ["x"], "ttl_seconds": 60}, "namespaces"),
    "patch_state": ({**PLACE, "patch": {"a": 1}}, "namespaces"),
    "delete_state": (PLACE, "namespaces"),
    "batch": (
        {
            "operations": [
                {"op": "get", **PLACE},
                {"op": "put", "namespace": "notes", "key": "c", "value": 1},
                {"op": "delete", "namespace": "notes", "key": "c"},
            ]
        },
        "namespaces",
    ),
    "search_state": ({"text": "ship", "where": [{"path": "/n", "equals": 1}]}, ""),
    "entry_history": ({**PLACE, "include": "value"}, "namespaces"),
    "diff_state": ({**PLACE, "from": 1, "to": 1}, "namespaces"),
    "restore_state": ({**PLACE, "version": 1}, "namespaces"),
    "list_changes": ({"namespace": "notes", "key": "a/b"}, ""),
    "list_threads": ({"limit": 10}, ""),
    "create_thread": ({"id": "t2", "title": "Trip", "parent_thread_id": "t1"}, "parents"),
    "get_thread": ({"thread_id": "t1"}, "threads"),
    "list_messages": ({"thread_id": "t1", "order": "desc"}, "threads"),
    "read_context": ({"thread_id": "t1", "max_tokens": 1000}, "threads"),
    "append_messages": (
        {"thread_id": "t1", "messages": [{"role": "user", "content": "hi"}]},
        "threads",
    ),
    "get_thread_state": ({"thread_id": "t1"}, "threads"),
    "list_runs": ({"thread_id": "t1", "status": "waiting"}, ""),
    "get_run": ({"run_id": "r1"}, "threads"),
    "list_tickets": ({"status": "pending"}, ""),
    "decide_ticket": ({"ticket_id": "k1", "action": "resume", "payload": 1}, "threads"),
}


async def call_all(client: Any) -> dict[str, Any]:
    """Call each tool once: reads first, deletions last."""
    order = sorted(CALLS, key=lambda name: (not TOOLS[name].reads, name == "delete_state"))
    return {name: await client.call_tool(name, CALLS[name][0]) for name in order}


@pytest.fixture
def world(alice: Person) -> None:
    make_namespace(alice.actor, "notes", default={})
    put(alice.actor, "notes", "a/b", {"text": "ship it", "n": 1})
    make_thread(alice.actor)
    append(alice.actor, "t1", HELLO)
    make_run(alice.actor)
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    changed = {"run": {"status": "waiting", "waiting": waiting}}
    done = alice.api("POST", "/runs/r1/commits", changed)
    assert done.status_code == 200, done.content


def test_calls__of_this_module__cover_every_tool() -> None:
    assert set(CALLS) == set(TOOLS)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("era", ERAS)
def test_tools__each__result_matches_its_schema(mcp: MCP, alice: Person, era: str) -> None:
    async def everything(client: Any) -> dict[str, Any]:
        await client.list_tools()  # from now on the client validates every result by its schema
        return await call_all(client)

    results = mcp.do(alice.token, everything, era)

    assert {name: text_of(r) for name, r in results.items() if r.is_error} == {}
    for result in results.values():
        assert json.loads(text_of(result)) == result.structured_content
    assert results["search_state"].structured_content["items"][0]["key"] == "a/b"
    assert results["decide_ticket"].structured_content["status"] == "resumed"


@pytest.mark.usefixtures("world")
def test_tools__viewer__can_read_but_not_write(mcp: MCP, bob: Person) -> None:
    """Denied unless permitted."""

    async def everything(client: Any) -> Any:
        listed = await client.list_tools()
        return {tool.name for tool in listed.tools}, await call_all(client)

    listed, results = mcp.do(bob.token, everything)

    readers = {name for name, tool in TOOLS.items() if tool.reads}
    assert listed == readers
    assert {name for name, result in results.items() if not result.is_error} == readers
    for name in set(CALLS) - readers:
        assert problem_of(results[name])["detail"] == "the role editor is required"


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("who", ["foreign", "other namespaces", "other threads"])
def test_tools__outside_the_permissions__appear_absent(
    mcp: MCP, alice: Person, mallory: Person, who: str
) -> None:
    """Nothing of another workspace, nor outside a token's restrictions."""
    token = {
        "foreign": lambda: mallory.token,
        "other namespaces": lambda: make_token(alice, Role.ADMIN, ["other"])[0],
        "other threads": lambda: make_token(alice, Role.ADMIN, (), ["x-"])[0],
    }[who]()
    hides = {"other namespaces": ("namespaces",), "other threads": ("threads",)}
    hidden = hides.get(who, ("namespaces", "threads"))

    results = mcp.do(token, call_all)

    for name, (_, by) in CALLS.items():
        if by in hidden:
            assert problem_of(results[name])["status"] == 404, name
        elif not by:
            items = results[name].structured_content["items"]
            by_thread = ("list_threads", "list_runs", "list_tickets")
            lost = "threads" if name in by_thread else "namespaces"
            assert (items == []) == (lost in hidden), name


def test_put_state__by_mcp__writes_what_the_api_would_write(mcp: MCP, alice: Person) -> None:
    """The same actor, reason, request id and audit row as with REST."""
    make_namespace(alice.actor, "notes")
    told = mcp.raw(
        alice.token,
        "put_state",
        '{"namespace":"notes","key":"k","value":{"a":1.10,"b":12345678901234567890123},'
        '"reason":"wegen Ärger"}',
        X_Request_ID="mcp-1",
    )

    assert told["version"] == 1
    row = EntryRevision.objects.get(entry__key="k")
    assert row.value == '{"a":1.10,"b":12345678901234567890123}'  # every byte (ADR 3)
    assert (row.reason, row.request_id) == ("wegen Ärger", "mcp-1")
    audit = AuditRow.objects.get(action="entry.put")
    assert (audit.actor_name, audit.request_id) == ("alice's token", "mcp-1")


def test_batch__atomic__writes_all_or_none_and_returns_versions(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "b", 1)
    both = (
        '{"operations":[{"op":"put","namespace":"notes","key":"a","value":1.10},'
        '{"op":"put","namespace":"notes","key":"b","value":2,"if_version":%d},'
        '{"op":"get","namespace":"notes","key":"a"}],"reason":"both"}'
    )
    refused = mcp.raw(alice.token, "batch", both % 7)
    assert (refused["type"], refused["status"]) == ("/problems/version-conflict", 412)
    assert not EntryRevision.objects.filter(entry__key="a").exists()

    first, second, read = mcp.raw(alice.token, "batch", both % 1)["results"]
    assert (first, second) == ({"status": 201, "version": 1}, {"status": 200, "version": 2})
    assert read["entry"]["value"] == 1.1
    stored = EntryRevision.objects.get(entry__key="a")
    assert (stored.value, stored.reason) == ("1.10", "both")


def test_batch__not_atomic__reports_each_failure(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    operations = [
        {"op": "delete", "namespace": "nope", "key": "k"},
        {"op": "patch", **PLACE, "patch": {"n": 1}},
    ]
    done = mcp.call(alice.token, "batch", operations=operations, atomic=False)
    failed, written = done.structured_content["results"]
    assert (failed["status"], failed["problem"]["type"]) == (404, "/problems/not-registered")
    assert written == {"status": 201, "version": 1}


def test_batch__result_too_large__error_says_that_it_was_written(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "large", "x" * (MOST_BYTES - 100))
    operations = [
        {"op": "put", **PLACE, "value": 1},
        {"op": "get", "namespace": "notes", "key": "large"},
    ]
    problem = problem_of(mcp.call(alice.token, "batch", operations=operations))
    assert problem["hint"].startswith("The writes were performed; do not repeat them.")
    assert EntryRevision.objects.filter(entry__key="a/b").exists()
    problem = problem_of(mcp.call(alice.token, "batch", operations=operations[1:]))
    assert problem["hint"].startswith("Request less:")


@pytest.mark.usefixtures("world")
def test_expected_version__stale__returns_the_conflict_of_the_api(mcp: MCP, alice: Person) -> None:
    problem = problem_of(mcp.call(alice.token, "put_state", **PLACE, value=1, expected_version=7))

    assert problem["detail"] == "version conflict: expected 7, actual 1"
    assert problem["hint"] == "The entry changed since you read it. Read it again and retry."
    new = mcp.call(alice.token, "put_state", **PLACE, value=1, expected_version=0)
    problem = problem_of(new)
    assert problem["detail"] == "version conflict: expected 0, actual 1"
    assert problem["hint"] == (
        "The entry already exists. To change it, read it and send its version."
    )


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("list_namespaces", {"limit": 0}, "/limit"),
    ("list_state", {"namespace": "a/b"}, "/namespace"),
    ("get_state", {"namespace": "notes", "kye": "k", "key": "k"}, "/kye"),
    ("get_state", {"namespace": "notes", "key": ""}, "/key"),
    ("put_state", {"namespace": "notes", "key": "k"}, "/value"),
    ("put_state", {**PLACE, "value": 1, "expected_version": -1}, "/expected_version"),
    ("put_state", {**PLACE, "value": "\0"}, "/value"),
    ("put_state", {**PLACE, "value": 1, "reason": "x" * 1001}, "/reason"),
    ("put_state", {**PLACE, "value": 1, "ttl_seconds": -1}, "/ttl_seconds"),
    ("patch_state", {**PLACE, "patch": {}, "kind": "magic"}, "/kind"),
    ("patch_state", {**PLACE, "patch": [{"op": "add", "path": "/n", "value": 1}]}, "/patch"),
    ("patch_state", {**PLACE, "patch": {"op": "add", "path": "/n", "value": 1}}, "/patch"),
    ("patch_state", {**PLACE, "patch": "x"}, "/patch"),
    ("delete_state", {**PLACE, "expected_version": "1"}, "/expected_version"),
    ("batch", {"operations": [{"op": "move", **PLACE}]}, "/operations/0/op"),
    ("search_state", {"text": 1}, "/text"),
    ("entry_history", {**PLACE, "include": "all"}, "/include"),
    ("restore_state", {**PLACE, "version": 0}, "/version"),
    ("diff_state", {**PLACE, "from": 1}, "/to"),
    ("list_changes", {"cursor": ""}, "/cursor"),
    ("list_threads", {"limit": 201}, "/limit"),
    ("create_thread", {"metadata": []}, "/metadata"),
    ("get_thread", {"thread_id": 1}, "/thread_id"),
    ("list_messages", {"thread_id": "t1", "order": "up"}, "/order"),
    ("read_context", {"thread_id": "t1", "max_tokens": 0}, "/max_tokens"),
    ("append_messages", {"thread_id": "t1", "messages": []}, "/messages"),
    ("get_thread_state", {"thread_id": "t1", "revision": -1}, "/revision"),
    ("list_runs", {"stuck": "yes"}, "/stuck"),
    ("get_run", {}, "/run_id"),
    ("list_tickets", {"status": "open"}, "/status"),
    ("decide_ticket", {"ticket_id": "k1", "action": "maybe"}, "/action"),
]


@pytest.mark.usefixtures("world")
def test_tools__invalid_arguments__error_names_the_field_and_the_remedy(
    mcp: MCP, alice: Person
) -> None:
    async def everything(client: Any) -> Any:
        return [await client.call_tool(name, arguments) for name, arguments, _ in BAD]

    results = mcp.do(alice.token, everything)

    assert {name for name, _, _ in BAD} == set(TOOLS)
    for (name, _, pointer), result in zip(BAD, results, strict=True):
        problem = problem_of(result)
        assert pointer in pointers(problem), (name, problem)
        assert problem["hint"].startswith("Allowed arguments: "), name


@pytest.mark.usefixtures("world")
def test_tools__limit_exceeded__message_says_which(mcp: MCP, alice: Person) -> None:
    wrong = mcp.call(alice.token, "put_state", **PLACE, value=1, ttl_seconds=-1)

    (fault,) = problem_of(wrong)["errors"]
    assert fault["message"] == "-1 is less than the minimum of 1"
    made = mcp.call(alice.token, "put_state", **PLACE, value=1, ttl_seconds=None)
    assert made.structured_content["expires_at"] is None


@pytest.mark.usefixtures("world")
def test_patch_state__operations_as_a_merge_patch__need_the_kind(mcp: MCP, alice: Person) -> None:
    """Without it, the operations would become members of the value, or replace all of it."""
    operation = {"op": "add", "path": "/n", "value": 1}

    refused = problem_of(mcp.call(alice.token, "patch_state", **PLACE, patch=operation))
    counted = mcp.call(alice.token, "patch_state", **PLACE, patch=operation, kind="update")
    merged = mcp.call(alice.token, "patch_state", **PLACE, patch=operation, kind="merge")

    assert "set kind to update" in refused["errors"][0]["message"]
    assert counted.structured_content["value"]["n"] == 2
    assert merged.structured_content["value"] == {"text": "ship it", "n": 2, **operation}


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("get_state", {"namespace": "nope", "key": "k"}, "list_namespaces"),
        ("search_state", {"namespace": "nope", "text": "x"}, "list_namespaces"),
        ("batch", {"operations": [{"op": "get", **PLACE, "namespace": "x"}]}, "list_namespaces"),
        ("get_state", {**PLACE, "at_version": 9}, "entry_history"),
        ("restore_state", {**PLACE, "version": 9}, "entry_history"),
        ("get_thread", {"thread_id": "nope"}, "list_threads"),
        ("read_context", {"thread_id": "nope"}, "list_threads"),
        ("append_messages", {"thread_id": "nope", "messages": [HELLO]}, "create_thread"),
        ("get_run", {"run_id": "nope"}, "list_runs"),
        ("decide_ticket", {"ticket_id": "nope", "action": "cancel"}, "list_tickets"),
    ],
)
def test_tools__not_found__hint_names_a_tool_and_no_path(
    mcp: MCP, alice: Person, tool: str, arguments: dict[str, Any], said: str
) -> None:
    problem = problem_of(mcp.call(alice.token, tool, **arguments))

    assert problem["status"] == 404
    assert said in TOOLS
    assert said in problem["hint"]
    assert "/api/v1" not in problem["hint"]


def test_reason__of_several_lines__is_stored_as_one(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "notes")

    mcp.call(alice.token, "put_state", **PLACE, value=1, reason="one\r\ntwo\n")

    assert EntryRevision.objects.get().reason == "one two"


def test_tools__invalid_value__error_points_into_the_value(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "typed", {"properties": {"count": {"type": "integer"}}}, default={})

    wrong = mcp.call(alice.token, "put_state", namespace="typed", key="k", value={"count": "x"})

    assert "/count" in " ".join(pointers(problem_of(wrong)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"namespace":"notes","key":"a","key":"b"}', "the object has this key twice"),
        ('{"namespace":"notes","key":"k","value":1e999}', "outside the range of a double"),
    ],
)
def test_tools__json_that_cannot_be_stored__is_refused_as_by_the_api(
    mcp: MCP, alice: Person, arguments: str, said: str
) -> None:
    assert said in json.dumps(mcp.raw(alice.token, "put_state", arguments))


def test_tools__deeply_nested_and_hostile_names__are_treated_as_data(
    mcp: MCP, alice: Person
) -> None:
    make_namespace(alice.actor, "notes")
    for key in ("../../config", "a?b#c", "%2F", "batch", "k' OR 1=1 --", "a//b", "é🙂"):
        made = mcp.call(alice.token, "put_state", namespace="notes", key=key, value=key)
        assert made.structured_content["key"] == key


def test_tools__result_too_large__error_says_how_to_request_less(mcp: MCP, alice: Person) -> None:
    make_namespace(alice.actor, "notes")
    for number in range(6):
        put(alice.actor, "notes", str(number), "x" * (MOST_BYTES // 5))

    problem = problem_of(mcp.call(alice.token, "list_state", namespace="notes", include="value"))

    assert "Request less" in problem["hint"]
    some = mcp.call(alice.token, "list_state", namespace="notes", include="value", limit=2)
    assert len(some.structured_content["items"]) == 2


def test_tools__unknown__is_a_protocol_error(mcp: MCP, alice: Person) -> None:
    with pytest.raises(MCPError, match="Unknown tool"):
        mcp.call(alice.token, "drop_tables")


def test_config_registry__by_tools__is_not_accessible(mcp: MCP, alice: Person) -> None:
    problem = problem_of(
        mcp.call(alice.token, "put_state", namespace="config.providers", key="p", value={})
    )
    assert problem["status"] in (403, 404)


@pytest.mark.usefixtures("world")
def test_run_id__of_the_request__is_in_the_history(mcp: MCP, alice: Person) -> None:
    commit(alice.actor, "r1", None)
    mcp.raw(alice.token, "put_state", '{"namespace":"notes","key":"r","value":1}', Run_Id="r1")

    assert EntryRevision.objects.get(entry__key="r").run == "r1"
