"""Every id that a create operation accepts addresses the created resource, and no other.

The words to try are from the URL tables, so that a new path cannot shadow an id unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
from django.urls import URLPattern, get_resolver, resolve

from project.env import BASE_DIR
from state_admin.contract.entries import PATCH_TYPES
from state_admin.domain.ids import uuid7
from state_admin.domain.scopes import NAME
from tests.builders import Person, make_namespace, make_run, make_thread

PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
ODD = [
    "a/b",
    "/a",
    "a/",
    "//",
    "%2F",
    "a%2Fb",
    "100%",
    "a b",
    "a+b",
    "ü🙂",
    "a?b#c",
    "a;b=c",
    "..a",
]


# Chosen by the server: UUIDs, except for checkpoints, whose ids begin with a revision.
SERVER_CHOSEN = {
    "checkpoint_id": "1",
    "compaction_id": uuid7(),
    "delivery_id": uuid7(),
    "dispatch_id": uuid7(),
    "webhook_id": uuid7(),
    "revision": "1",
    "kind": "models",
}


def routes(pattern: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every route of the API, with its pattern's text."""
    for each in (pattern or get_resolver()).url_patterns:
        text = prefix + str(each.pattern)
        if not isinstance(each, URLPattern):
            yield from routes(each, text)
        elif text.startswith("api/v1/"):
            yield text.removeprefix("api/v1/"), each


ROUTES = list(routes())
# Path segments in the place of an id: collections, and actions on all of them.
WORDS = sorted({word for text, _ in ROUTES for word in text.partition("<")[0].split("/") if word})
# Path segments after an id: sub-resources, and actions on one resource.
TAILS = sorted(
    {tail for text, _ in ROUTES if (tail := text.partition(">/")[2]) and "<" not in tail}
)
CHILDREN = [f"parent/{tail}" for tail in [*TAILS, "snapshots/1"]]
NAMED = [(text, route) for text, route in ROUTES if "<" in text]


@pytest.mark.parametrize(("text", "route"), NAMED, ids=[text for text, _ in NAMED])
def test_route__any_id__is_matched_by_no_other_route(text: str, route: URLPattern) -> None:
    names = [name for _, name in PARAMETER.findall(text)]
    chosen = [name for name in names if name not in SERVER_CHOSEN]
    for name, identity in product(chosen, [*WORDS, *CHILDREN, *ODD]):
        given = {each: SERVER_CHOSEN.get(each, "x") for each in names} | {name: identity}
        path = PARAMETER.sub(lambda found, given=given: quote(given[found[2]], safe=""), text)  # type: ignore[misc]
        match = resolve(f"/api/v1/{path}")
        if getattr(match.func, "shadowed", None) is route.callback.cls:  # type: ignore[attr-defined]
            continue  # the methods are divided: test_id__equal_to_a_path_segment__is_addressable
        assert match.url_name == route.name, path
        assert {each: str(value) for each, value in match.kwargs.items()} == given


def test_words__of_the_table__occur_in_routes() -> None:
    assert {"batch", "claim", "search", "workspace"} <= set(WORDS)
    assert {"messages", "commits", "decision", "history", "ag-ui/stream"} <= set(TAILS)


# Created through the API ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Creation:
    """How an operation creates a resource with a given id, and the URL under which the API returns
    it."""

    operation: str
    method: str
    path: str  # {id}: the id, encoded
    body: Any  # "{id}": the id
    root: str
    named: str = "id"  # the member of the response that contains the id
    names: bool = False  # ids are names, by the grammar of namespaces


CREATIONS = [
    Creation("create_thread", "POST", "/threads", {"id": "{id}"}, "/threads"),
    Creation("fork_thread", "POST", "/threads/parent/fork", {"id": "{id}"}, "/threads"),
    Creation("start_run", "POST", "/threads/{id}/runs", {"id": "{id}"}, "/runs"),
    Creation("create_agent_thread", "POST", "/agent-protocol/threads", {"thread_id": "{id}"},
             "/agent-protocol/threads", "thread_id"),
    Creation("change_run", "PATCH", "/runs/parent",
             {"status": "waiting", "waiting": {"reason": "user_input", "tickets": [
                 {"ticket_id": "{id}", "tool_call_id": "c", "tool_name": "ask"}]}}, "/tickets"),
    Creation("commit", "POST", "/runs/parent/commits",
             {"run": {"status": "waiting", "waiting": {"reason": "user_input", "tickets": [
                 {"ticket_id": "{id}", "tool_call_id": "c", "tool_name": "ask"}]}}}, "/tickets"),
    Creation("put_agent_policy", "PUT", "/compaction-policies/agents/{id}", {"mode": "keep_recent_raw_suffix"},
             "/compaction-policies/agents", "agent_id"),
    Creation("register_namespace", "PUT", "/namespaces/{id}", {}, "/namespaces", "name", True),
    Creation("register_state_key", "PUT", "/state-keys/{id}", {}, "/state-keys", "key", True),
    Creation("install_plugin", "PUT", "/plugins/{id}", {}, "/plugins", "name", True),
    Creation("write_config", "PUT", "/config/providers/{id}", {"value": {"adapter": "x"}},
             "/config/providers", "id", True),
    Creation("write_entry", "PUT", "/state/notes/{id}", {"value": 1}, "/state/notes", "key"),
]  # fmt: skip
MESSAGES = {"messages": [{"role": "user", "content": "to the child"}]}
# The server chooses these ids: UUIDs.
SERVER_IDS = {
    "add_member",
    "copy_agent_thread",
    "create_token",
    "create_webhook",
    "create_workspace_token",
    "enqueue_dispatch",
    "invite_member",
    "rotate_token",
}
# For operators; a slug follows the grammar of names (tests/api/test_management.py).
SLUGS = {"create_workspace"}
# Messages are read by thread and position, never by id.
NO_ADDRESS = {"append_messages"}


def encoded(identity: str) -> str:
    return quote(identity, safe="")


def create(person: Person, creation: Creation, identity: str) -> Any:
    path = creation.path.replace("{id}", encoded(identity))
    body = json.dumps(creation.body).replace('"{id}"', json.dumps(identity)).encode()
    if creation.operation == "start_run":
        make_thread(person.actor, identity)
    return person.api(creation.method, path, body)


@pytest.fixture
def parent(alice: Person) -> Person:
    """alice, with a thread and a run that are both called parent, and a namespace."""
    make_namespace(alice.actor)
    make_thread(alice.actor, "parent", title="of all")
    make_run(alice.actor, "parent", "parent")
    return alice


def ids_like_paths_below(root: str) -> list[str]:
    """Ids that are equal to path segments below `root`. Those below others belong to other routes, as
    test_route__any_id__is_matched_by_no_other_route shows."""
    beginning = root.strip("/").split("/")
    ids = set()
    for text, _ in ROUTES:
        segments = text.split("/")
        if all(
            each == other or each.startswith("<")
            for each, other in zip(segments, beginning, strict=False)
        ):
            word, _, rest = "/".join(segments[len(beginning) :]).partition("<")
            tail = rest.partition(">/")[2]
            ids |= {word.strip("/"), f"parent/{PARAMETER.sub('1', tail)}" if tail else ""}
    return sorted(ids - {""})


@pytest.mark.parametrize("creation", CREATIONS, ids=[each.operation for each in CREATIONS])
def test_id__equal_to_a_path_segment__is_addressable(parent: Person, creation: Creation) -> None:
    for identity in [*ids_like_paths_below(creation.root), *ODD]:
        created = create(parent, creation, identity)
        address = f"{creation.root}/{encoded(identity)}"
        found = parent.api("GET", address)
        if creation.names and not re.fullmatch(NAME, identity):
            assert created.status_code in (400, 422), (identity, created.content)
            assert found.status_code in (400, 404, 422), (identity, found.content)
            continue
        assert created.status_code in (200, 201), (identity, created.content)
        assert found.status_code == 200, (identity, found.content)
        assert found.json()[creation.named] == identity
    assert parent.api("GET", "/threads/parent").json()["title"] == "of all"


def test_creations__of_the_document__are_all_tested() -> None:
    document = json.loads((BASE_DIR / "docs" / "openapi.json").read_text())
    operations = [each for path in document["paths"].values() for each in path.values()]
    creating = {each["operationId"] for each in operations if "201" in each["responses"]}
    tried = {each.operation for each in CREATIONS}
    # Every PATCH of an entry or record can create it, at the URL of the PUT.
    assert creating - tried - SERVER_IDS - SLUGS - NO_ADDRESS == {"patch_entry"}


def test_thread__id_ending_like_a_sub_resource__does_not_affect_its_parent(parent: Person) -> None:
    for child in [f"parent/{tail}" for tail in TAILS]:
        make_thread(parent.actor, child, title="child")
        address = f"/threads/{encoded(child)}"
        assert parent.api("POST", f"{address}/messages", MESSAGES).status_code == 201
        assert parent.api("GET", f"{address}/lineage").json()["thread_id"] == child
        assert parent.api("PATCH", address, {"title": "renamed"}).json()["id"] == child
        assert parent.api("DELETE", address).status_code == 204
        assert parent.api("GET", address).status_code == 404
    kept = parent.api("GET", "/threads/parent").json()
    assert (kept["title"], kept["message_count"]) == ("of all", 0)


def test_namespace__named_batch__is_listed_and_cleared_and_accepts_batches(alice: Person) -> None:
    make_namespace(alice.actor, "batch")
    operation = {"op": "put", "namespace": "batch", "key": "k", "value": 1}
    assert alice.api("POST", "/state/batch", {"operations": [operation]}).status_code == 200
    assert [row["key"] for row in alice.api("GET", "/state/batch").json()["items"]] == ["k"]
    assert alice.api("DELETE", "/state/batch").json()["deleted"] == 1
    refused = alice.api("PUT", "/state/batch", {})
    assert refused.status_code == 405
    assert sorted(refused["Allow"].split(", ")) == ["DELETE", "GET", "HEAD", "OPTIONS", "POST"]


@pytest.mark.parametrize(
    ("path", "methods", "patches"),
    [
        ("/threads", "GET, HEAD, OPTIONS, POST", None),
        ("/runs/r1", "GET, HEAD, OPTIONS, PATCH", "application/json"),
        ("/state/notes/k", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT", ", ".join(PATCH_TYPES)),
    ],
)
def test_options__path__has_its_methods_and_no_content(
    alice: Person, path: str, methods: str, patches: str | None
) -> None:
    answer = alice.api("OPTIONS", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert ", ".join(sorted(answer["Allow"].split(", "))) == methods
    assert answer.get("Accept-Patch") == patches


def test_path__slash_of_an_id_not_encoded__is_404_with_a_hint(alice: Person) -> None:
    make_thread(alice.actor, "a/b")
    answer = alice.api("GET", "/threads/a/b")
    assert answer.status_code == 404
    assert "%2F" in answer.content.decode()


def test_idempotency_key__of_a_path_with_an_encoded_slash__is_not_used_for_another(
    alice: Person,
) -> None:
    make_thread(alice.actor, "a")
    make_thread(alice.actor, "a/messages")
    fork = alice.api("POST", "/threads/a%2Fmessages/fork", {}, Idempotency_Key="k")
    assert fork.json()["forked_from"]["thread_id"] == "a/messages"
    answer = alice.api("POST", "/threads/a/messages/fork", {}, Idempotency_Key="k")
    assert answer.status_code == 404
