"""Undeclared input is refused before anything happens, and a dry run changes nothing. The requests
are those of the permission table, each of which would otherwise succeed."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest

from state_admin.contract import OPERATIONS
from state_admin.rest.parameters import read_query
from tests.builders import MERGE_PATCH, Person, call, make_namespace, put
from tests.contract.test_permissions import TABLE, Row, World, paths, world
from tests.services.faults import fingerprint

__all__ = ["world"]

JSON = "application/json"
UPDATE = "application/vnd.commonhold.update+json"


def operation_of(row: Row) -> str:
    """The operation id."""
    return str(paths()[row.path].cls.operations[row.method].id)


ROWS = {
    f"{row.method} {row.url}": (operation_of(row), row) for row in TABLE if row.path != "unknown"
}
# Without that of an operator: see tests/api/test_management.py.
DRY = {
    name: row
    for name, (operation, row) in ROWS.items()
    if OPERATIONS[operation].dry_run and operation != "delete_workspace"
}


def send(world: World, row: Row, query: str = "", **changes: Any) -> Any:
    """The request of a row as an admin, with an extended query, another body or another media
    type."""
    url, body, content_type = world.request_of(row)
    url += ("&" if "?" in url else "?") + query if query else ""
    sent = {"body": body, "content_type": content_type, **changes}
    return call(world.secrets["admin"], row.method, url, sent.pop("body"), **sent)


def test_rows__every_operation__is_listed() -> None:
    assert {operation for operation, _ in ROWS.values()} == set(OPERATIONS)


# The query --------------------------------------------------------------------------------------


def test_query__undeclared_parameter__is_400_and_changes_no_row(world: World) -> None:
    before, wrong = fingerprint(), {}
    for name, (operation, row) in ROWS.items():
        allowed = OPERATIONS[operation].parameters
        for parameter in {"nonsense", "dry_run"} - allowed.keys():
            answer = send(world, row, f"{parameter}=true")
            problem = answer.json() if answer.status_code == 400 else {}
            if (problem.get("detail", ""), problem.get("allowed")) != (
                f"unknown query parameter: {parameter}",
                list(allowed),
            ):
                wrong[name, parameter] = (answer.status_code, problem)
    assert (wrong, fingerprint()) == ({}, before)


def test_query__integers__declare_both_limits() -> None:
    for operation in OPERATIONS.values():
        for name, schema in operation.parameters.items():
            if schema["type"] == "integer":
                assert {"minimum", "maximum"} <= schema.keys(), (operation.id, name)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_query__every_declared_parameter__refuses_a_value_of_another_type(operation: str) -> None:
    """By its schema: an empty value of a typed parameter, a value beyond a limit, a repeated
    one."""
    from django.http import QueryDict

    from state_admin.services.errors import BadRequest

    for name, schema in OPERATIONS[operation].parameters.items():
        wrong = {
            "boolean": ["", "yes", "1", "TRUE"],
            "integer": ["", "x", "-1", "1.0", "+1", "٣", "9" * 19],
        }.get(schema["type"], [])
        if "maximum" in schema:
            wrong.append(str(schema["maximum"] + 1))
        if "enum" in schema or schema.get("format") == "date-time":
            wrong += ["", "nonsense"]
        if "minLength" in schema or not re.search(schema.get("pattern", ""), ""):
            wrong.append("")
        if "maxLength" in schema:
            wrong.append("x" * (schema["maxLength"] + 1))
        for value in wrong:
            query = QueryDict(mutable=True)
            query[name] = value
            with pytest.raises(BadRequest, match=f"^{name} must be ") as refused:
                read_query({name: schema}, set(), query)
            assert refused.value.data["parameter"] == name
        if schema["type"] != "array":
            with pytest.raises(BadRequest, match=f"{name} is given more than once"):
                read_query({name: schema}, set(), QueryDict(f"{name}=1&{name}=1"))


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/changes?wait=31", "wait must be an integer between 0 and 30"),
        ("/state/notes/k?wait=31", "wait must be an integer between 0 and 30"),
        ("/state/notes?updated_since=", "updated_since must be an RFC 3339 time such as 2026-01-31T12:00:00Z"),
        ("/state/notes?valid=yes", "valid must be true or false"),
        ("/state/notes?limit=", "limit must be an integer between 1 and 200"),
        ("/threads?root=1", "root must be true or false"),
        ("/threads?cursor=", "cursor must be a string that is not empty"),
        ("/changes?cursor=", "cursor must be a string that is not empty"),
        ("/threads?limit=2&limit=3", "query parameter limit is given more than once"),
        ("/diff/notes/k?from=1", "query parameter to is required"),
        ("/state/notes/k?at_version=0", "at_version must be an integer of at least 1"),
        ("/state/notes/k?at_version=1&wait=1", "at_version and at cannot be combined with other parameters"),
        ("/threads/t1/messages?order=up", "order must be one of: asc, desc"),
        ("/agent-protocol/threads/t1/history?limit=101", "limit must be an integer between 1 and 100"),
    ],
)  # fmt: skip
def test_query__value_that_the_schema_does_not_allow__is_400(
    path: str, detail: str, alice: Person
) -> None:
    answer = alice.api("GET", path)
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


def test_query__declared_values__have_their_types(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", 1, tags=["a,b"])
    put(alice.actor, "notes", "l", 1, tags=["c"])

    def keys(query: str) -> list[str]:
        items = alice.api("GET", f"/state/notes?{query}").json()["items"]
        return [item["key"] for item in items]

    assert keys("updated_since=2020-01-01T00:00:00+01:00&valid=true&prefix=") == ["k", "l"]
    assert keys("tag=a,b") == ["k"]
    assert keys("tags=c,a") == keys("valid=false") == []
    assert keys("order=desc&limit=1") == ["l"]


# The body ---------------------------------------------------------------------------------------


def test_body__not_json__is_415_with_the_supported_types_and_changes_no_row(world: World) -> None:
    before, wrong = fingerprint(), {}
    for name, (_, row) in ROWS.items():
        _, _, supported = world.request_of(row)
        for content_type in ("text/plain", "application/x-www-form-urlencoded", f"{JSON},{UPDATE}"):
            answer = send(world, row, body=row.body or {}, content_type=content_type)
            accepted = answer.headers.get("Accept", answer.headers.get("Accept-Patch", ""))
            if answer.status_code != 415 or supported not in accepted.split(", "):
                wrong[name, content_type] = (answer.status_code, accepted)
    assert (wrong, fingerprint()) == ({}, before)


@pytest.mark.parametrize(
    "body", [gzip.compress(b'{"value": 1}'), b'{"value": 1}'], ids=["compressed", "plain"]
)
def test_body__compressed__is_415_and_changes_no_row(world: World, body: bytes) -> None:
    before = fingerprint()
    secret = world.secrets["admin"]
    answer = call(secret, "PUT", "/state/notes/k", body, Content_Encoding="gzip")
    assert answer.status_code == 415
    assert answer.json()["detail"] == "unsupported Content-Encoding: gzip"
    assert fingerprint() == before


def test_body__of_an_operation_without_one__is_refused_and_changes_no_row(world: World) -> None:
    before, wrong = fingerprint(), {}
    for name, (_, row) in ROWS.items():
        if row.method != "GET" and row.body is None:
            answer = send(world, row, body={"dry_run": True})
            if answer.status_code != 400:
                wrong[name] = answer.status_code
    assert (wrong, fingerprint()) == ({}, before)


def test_body__empty_object_for_an_operation_without_one__is_accepted(world: World) -> None:
    assert call(world.secrets["admin"], "POST", "/runs/r1/cancel", {}).status_code == 200


@pytest.mark.parametrize("path", ["/state/notes/k", "/config/providers/openai"])
@pytest.mark.parametrize("content_type", [JSON, f"{JSON},{UPDATE}", "", "application/xml"])
def test_patch__without_a_patch_media_type__is_415_with_accept_patch(
    path: str, content_type: str, world: World
) -> None:
    before = fingerprint()
    operation = {"op": "set", "path": "/timeout_secs", "value": 9}
    answer = call(world.secrets["admin"], "PATCH", path, operation, content_type=content_type)
    supported = [MERGE_PATCH, "application/json-patch+json", UPDATE]
    assert answer.status_code == 415
    assert answer["Accept-Patch"].split(", ") == answer.json()["supported"] == supported
    assert answer.json()["type"] == "/problems/unsupported-media-type"
    assert fingerprint() == before


def test_patch__without_a_body__is_400(world: World) -> None:
    answer = call(world.secrets["admin"], "PATCH", "/state/notes/k", b"", content_type=MERGE_PATCH)
    assert (answer.status_code, answer.json()["detail"]) == (400, "the request body is missing")


@pytest.mark.parametrize("content_type", [UPDATE, f"{UPDATE}; charset=utf-8", UPDATE.upper()])
def test_patch__media_type_with_parameters_or_capitals__is_accepted(
    content_type: str, world: World
) -> None:
    body = {"op": "set", "path": "/a", "value": 9}
    answer = call(
        world.secrets["admin"], "PATCH", "/state/notes/k", body, content_type=content_type
    )
    assert (answer.status_code, answer.json()["value"]) == (200, {"a": 9})


# Dry runs ---------------------------------------------------------------------------------------


def test_dry_run__destructive_and_bulk_operations__support_it() -> None:
    offered = {operation for operation, each in OPERATIONS.items() if each.dry_run}
    deletions = {
        operation
        for operation, row in ROWS.values()
        if row.method == "DELETE" and "/agent-protocol/" not in row.url
    }
    assert deletions - offered == {"release_lease"}
    assert offered - deletions == {
        *("write_entry", "patch_entry", "run_batch", "restore_entry", "restore_entries"),
        *("redact_entry", "erase", "write_config", "patch_config", "restore_config"),
        *("register_namespace", "install_plugin", "restore_snapshot", "import_snapshot", "commit"),
        *("delete_threads", "cancel_runs", "request_revert"),
        *("interrupt_thread", "replay_dead_letters", "clear_dead_letters", "replay_webhook"),
        *("request_compaction", "request_history_compaction", "change_token"),
    }


def test_dry_run__each_operation_that_supports_it__reports_it_and_changes_no_row(
    world: World, django_capture_on_commit_callbacks: Any
) -> None:
    before, wrong = fingerprint(), {}
    # Job notifications are sent on commit.
    with django_capture_on_commit_callbacks() as callbacks:
        for name, row in DRY.items():
            answer = send(world, row, "dry_run=true")
            if (answer.status_code, answer.json().get("dry_run")) != (200, True):
                wrong[name] = (answer.status_code, answer.content)
            if {"ETag", "Location"} & answer.headers.keys() or fingerprint() != before:
                wrong[name] = (answer.headers, "changed rows")
    assert (wrong, fingerprint(), callbacks) == ({}, before, [])


def test_dry_run__followed_by_the_operation__predicts_its_effect(world: World) -> None:
    def entry(method: str, body: Any = None, **sent: Any) -> tuple[Any, Any]:
        url, secret = "/state/notes/k", world.secrets["admin"]
        dry = call(secret, method, f"{url}?dry_run=true", body, **sent).json()
        real = call(secret, method, url, body, **sent)
        return dry, real.json() if real.content else None

    def visible_fields(shown: Any) -> Any:
        return {name: shown[name] for name in ("value", "version", "exists", "tags")}

    dry, real = entry("PUT", {"value": {"a": 7}, "tags": ["x"]})
    assert visible_fields(dry) == visible_fields(real)
    dry, real = entry("PATCH", {"b": 8}, content_type=MERGE_PATCH)
    assert visible_fields(dry) == visible_fields(real)
    assert real["value"] == {"a": 7, "b": 8}
    assert entry("DELETE") == ({"dry_run": True, "deleted": 0, "matched": 1}, None)
    assert entry("DELETE") == ({"dry_run": True, "deleted": 0, "matched": 0}, None)


def test_dry_run__request_that_the_operation_refuses__is_refused_too(world: World) -> None:
    secret = world.secrets["admin"]
    for query in ("", "?dry_run=true"):
        stale = call(secret, "PUT", f"/state/notes/k{query}", {"value": 1}, If_Match='"1"')
        assert (stale.status_code, stale.json()["actual"]) == (412, 2)
        held = call(secret, "DELETE", f"/namespaces/notes{query}")
        assert (held.status_code, held.json()["count"]) == (409, 1)


def test_dry_run__false__performs_the_operation(world: World) -> None:
    answer = call(world.secrets["admin"], "DELETE", "/state/notes/k?dry_run=false")
    assert answer.status_code == 204


def test_dry_run__with_an_idempotency_key__records_the_response_and_writes_nothing(
    world: World,
) -> None:
    secret = world.secrets["admin"]
    answers = [
        call(secret, "PUT", "/state/notes/k?dry_run=true", {"value": 7}, Idempotency_Key="a")
        for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert answers[1]["Idempotent-Replayed"] == "true"
    assert call(secret, "GET", "/state/notes/k").json()["version"] == 2


def test_dry_run__of_a_thread_compaction__counts_what_would_be_summarized(world: World) -> None:
    def preview(kind: str) -> tuple[Any, Any]:
        secret, url = world.secrets["admin"], "/threads/t2/compactions"
        dry = call(secret, "POST", f"{url}?dry_run=true", {"kind": kind}).json()
        return dry, call(secret, "GET", f"{url}?kind={kind}").json()

    for kind in ("context", "snapshot"):
        dry, shown = preview(kind)
        assert dry == {"dry_run": True, **shown}


def test_request_compaction__without_dry_run__notifies_a_worker(
    world: World, django_capture_on_commit_callbacks: Any
) -> None:
    """Shows that the test of dry runs could fail."""
    with django_capture_on_commit_callbacks() as callbacks:
        call(world.secrets["admin"], "POST", "/namespaces/notes/compactions")
    assert callbacks


@pytest.mark.parametrize(
    ("operation", "unused"),
    [
        ({"op": "get", "if_version": 1, "value": 1}, ["value", "if_version"]),
        ({"op": "patch", "patch": {}, "ttl_seconds": 5, "tags": ["a"]}, ["ttl_seconds", "tags"]),
        ({"op": "put", "value": 1, "patch": {}}, ["patch"]),
        ({"op": "delete", "pinned": True, "patch_type": "json"}, ["pinned", "patch_type"]),
    ],
)
def test_batch__member_that_the_operation_does_not_use__is_422(
    alice: Person, operation: dict[str, Any], unused: list[str]
) -> None:
    make_namespace(alice.actor)
    address = {"namespace": "notes", "key": "k"}
    answer = alice.api("POST", "/state/batch", {"operations": [address | operation]})
    places = [f"/operations/0/{name}" for name in unused]
    assert (answer.status_code, [each["pointer"] for each in answer.json()["errors"]]) == (
        422,
        places,
    )


def test_if_match__any_version__is_refused_with_the_reason(alice: Person) -> None:
    make_namespace(alice.actor)
    answer = alice.api("PUT", "/state/notes/k", {"value": 1}, If_Match="*")
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "If-Match must name a version; * is not supported",
    )


@pytest.mark.parametrize(
    "patch",
    [[], [{"op": "add", "path": "/n", "value": 1}], {"op": "add", "path": "/n", "value": 1}],
)
def test_batch__operations_without_patch_type__are_not_stored_as_a_merge_patch(
    alice: Person, patch: Any
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"n": 1})
    operation = {"op": "patch", "namespace": "notes", "key": "k", "patch": patch}
    answer = alice.api("POST", "/state/batch", {"operations": [operation]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/operations/0/patch_type"
    assert alice.api("GET", "/state/notes/k").json()["value"] == {"n": 1}
    operation["patch_type"] = "merge"
    assert alice.api("POST", "/state/batch", {"operations": [operation]}).status_code == 200


def test_threads__empty_text__is_as_if_it_were_not_sent(alice: Person) -> None:
    assert alice.api("GET", "/threads?text=").status_code == 200
