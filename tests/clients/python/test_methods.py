"""The methods of both clients cover the operations of the OpenAPI document, and are the same in both."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from commonhold import Commonhold
from commonhold.calls import NOTHING, Call, Listing
from commonhold.feed import Filters
from commonhold.verbs import Group, Verb

from project.env import BASE_DIR

DOCUMENT = json.loads((BASE_DIR / "docs/openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}

# Why operations have no method, by their tag or id. `request` reaches them.
WITHOUT_METHOD = {
    "agent protocol": "for clients of the Agent Protocol",
    "frontends": "for clients of AG-UI and the AI SDK",
    "management": "administration of members, tokens and workspaces",
    "webhooks": "administration",
    "compaction policies": "administration; threads and keys of agents have parameters of their own",
    "config": "administration",
    "storage": "administration",
    "explain_access": "administration",
    "erase": "administration: rare, and cannot be undone",
    "get_version": "for monitoring",
}
# Why methods have no argument for query parameters and headers of their operations.
WITHOUT_ARGUMENT = {
    "Run-Id": "an option of the client",
    "Idempotency-Key": "an argument of `send`; in TypeScript an option of every write",
    "If-None-Match": "`if_version=0` is the same; the clients have no cache for reads",
    "Last-Event-ID": "`watch` sends it",
    "if_exists": "`replace` chooses it",
    "Prefer": "the result of a write is the entry; `batch` has `minimal`",
    "On-Conflict": "`put` has `merge`; patches and deletions need no version",
    "search Change-Reason": "it changes nothing",
    "redact Change-Reason": "its reason is a field of the body",
    "runs.commit If-Match": "`base_revision` is the same",
}
# Likewise, of Python only, where the result of the method would have two types.
WITHOUT_DRY_RUN = {
    "namespaces.compact": "`namespaces.preview_compaction`",
    "threads.compact": "`threads.preview_compaction`",
    "namespaces.register": "`request`",
}
# The options for headers in TypeScript.
OPTIONS = {"If-Match": "if_version", "If-Changed": "if_changed", "Change-Reason": "reason"}
# Methods that are not exactly one call of the API.
ONLY_PYTHON = {"close", "every"}
ONLY_TYPESCRIPT = {"paged", "threads.read"}
OF_BOTH = {"edit", "read", "register", "request", "send", "watch", "write"}


def verbs() -> dict[str, Verb[Any, Any]]:
    """The methods of the Python client that are one call of the API, such as `threads.create`."""
    with Commonhold("http://127.0.0.1:1", "t") as state:
        groups = {name: each for name, each in vars(state).items() if isinstance(each, Group)}
    owners = {"": Commonhold, **{f"{name}.": type(each) for name, each in groups.items()}}
    del owners["_client."]
    return {
        prefix + name: verb
        for prefix, owner in owners.items()
        for name, verb in inspect.getmembers_static(owner)
        if isinstance(verb, Verb)
    }


def dummy(parameter: inspect.Parameter) -> Any:
    kind = str(parameter.annotation)
    if "Literal" in kind or parameter.name == "kind":
        return {"kind": "update"}.get(parameter.name, "x")
    if "Sequence" in kind or "Iterable" in kind:
        return []
    if "Mapping" in kind or "JsonObject" in kind:
        return {"key": "k"}
    if "datetime" in kind:
        return datetime.now(UTC)
    if "bool" in kind:
        return True
    if "int" in kind or "float" in kind:
        return 1
    if "Dispatch" in kind:
        return SimpleNamespace(id="x", claim_token="x")
    return "x"


def full_call(build: Any) -> Call[Any]:
    """The call with all arguments."""
    positional: list[Any] = []
    named = {}
    for parameter in inspect.signature(build).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = dummy(parameter)
        else:
            positional.append(dummy(parameter))
    made: Call[Any] = build(*positional, **named)
    return made


def operation_of(call: Call[Any]) -> str:
    found = [
        name
        for name, (method, path, _) in OPERATIONS.items()
        if method == call.method.lower()
        and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), "/api/v1" + call.path)
    ]
    # A path without parameters, such as /dispatches/counts, before those that match it, too.
    return min(found, key=lambda name: OPERATIONS[name][1].count("{"))


def typescript() -> dict[str, set[str]]:
    """The methods of the TypeScript client, by their names in Python, with their parameters and options. Its own
    tests ensure that the reference has all of them."""
    page = (BASE_DIR / "docs/reference/typescript.md").read_text()
    found = {}
    for section in re.split(r"^##+ ", page, flags=re.MULTILINE):
        if section.startswith("state."):
            name = section.split()[0].removeprefix("state.")
            signature = re.findall(r"\b(\w+)\??: ", section.split("```")[1])
            lists = re.findall(r"^(?:- `\w+` \(|`\w+`: |- and ).*$", section, re.MULTILINE)
            options = [each for line in lists for each in re.findall(r"`(\w+)`", line)]
            found[re.sub("[A-Z]", lambda at: f"_{at[0].lower()}", name)] = {*signature, *options}
    return found


def declared(name: str, operation: Any) -> set[str]:
    """The query parameters and headers of a method's operation that need an argument."""
    return {
        each["name"]
        for each in operation.get("parameters", [])
        if each["in"] != "path"
        and WITHOUT_ARGUMENT.keys().isdisjoint({each["name"], f"{name} {each['name']}"})
    }


def test_operations__of_the_api__have_a_method_or_a_reason() -> None:
    reached = {operation_of(full_call(verb.build)) for verb in verbs().values()}
    reached.add("stream_changes")  # watch
    reasons = {
        name: reason
        for name, (_, _, operation) in OPERATIONS.items()
        for reason in (name, *operation["tags"])
        if reason in WITHOUT_METHOD
    }
    assert OPERATIONS.keys() - reached - reasons.keys() == set()
    assert reached & reasons.keys() == set()
    assert WITHOUT_METHOD.keys() - set(reasons.values()) == set()


def test_methods__of_both_clients__have_the_same_names() -> None:
    """camelCase in TypeScript, snake_case in Python. So the test above is also about TypeScript."""
    assert {*verbs(), *OF_BOTH, *ONLY_TYPESCRIPT} == typescript().keys()
    with Commonhold("http://127.0.0.1:1", "t") as state:
        others = {name for name in dir(state) if callable(getattr(state, name))}
    public = {name for name in others if not name.startswith("_")}
    assert public - verbs().keys() == OF_BOTH | ONLY_PYTHON | {"from_env"}


def test_methods__all__have_a_description_for_editors() -> None:
    assert [name for name, verb in verbs().items() if not verb.__doc__] == []


@pytest.mark.parametrize("name", list(verbs()))
def test_method__path_query_and_body__exist_in_the_api(name: str) -> None:
    build = verbs()[name].build
    call = full_call(build)
    _, _, operation = OPERATIONS[operation_of(call)]
    parameters = {each["name"] for each in operation.get("parameters", [])}
    assert set(call.query) - parameters == set()
    assert {name for name, value in call.headers.items() if value} - parameters == set()
    if call.body is not NOTHING:
        content = operation.get("requestBody", {}).get("content", {})
        assert call.media_type in content or not call.body
        reference = content.get(call.media_type, {}).get("schema", {}).get("$ref", "")
        if reference and isinstance(call.body, dict):
            shape = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
            assert set(call.body) == set(shape["properties"])
    sent = {*call.query, *(name for name, value in call.headers.items() if value)}
    shared = {"page": Listing, "filters": Filters}
    for parameter in shared.keys() & inspect.signature(build).parameters.keys():
        sent.update(shared[parameter].__annotations__)
    missing = declared(name, operation) - sent
    assert missing == ({"dry_run"} if name in WITHOUT_DRY_RUN else set())


@pytest.mark.parametrize("name", list(verbs()))
def test_method__of_typescript__has_an_option_for_each_parameter(name: str) -> None:
    _, _, operation = OPERATIONS[operation_of(full_call(verbs()[name].build))]
    expected = {OPTIONS.get(each, each) for each in declared(name, operation)}
    assert expected - typescript()[name] == set()
