"""The OpenAPI document: committed, current, complete, and correct."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.drivers import CoverageGenerator
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.generation.overrides import Override
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
)

from project.env import BASE_DIR
from state_admin.contract import OPERATIONS
from state_admin.domain import lifecycle
from state_admin.management.commands import write_docs
from state_admin.management.commands.write_docs import DOCS, OPENAPI, generate_pages, openapi
from state_admin.services import (
    compaction_jobs,
    compactions,
    dispatches,
    namespaces,
    plugins,
    quotas,
    storage,
)
from state_admin.services.snapshots import Read
from tests import builders
from tests.builders import Person, call, make_namespace, raw


@functools.cache
def document() -> Any:
    return json.loads(openapi())


@functools.cache
def operations() -> dict[str, tuple[str, str, Any]]:
    """Method, path and description by operation id."""
    return {
        operation["operationId"]: (method.upper(), path.removeprefix("/api/v1"), operation)
        for path, item in document()["paths"].items()
        for method, operation in item.items()
    }


# The document --------------------------------------------------------------------------------


def test_document__committed__is_current() -> None:
    assert OPENAPI.read_bytes() == openapi(), "run make docs and look at the difference"


def test_generated_pages__all__are_current() -> None:
    old = [
        str(path)
        for path, text in generate_pages().items()
        if not path.exists() or path.read_bytes() != text
    ]
    assert old == [], "run make docs and look at the difference"
    listed = {path for path in generate_pages() if path.parent.name == "api"}
    assert set((DOCS / "reference" / "api").glob("*.md")) == listed


def test_reference__objects_without_a_name__are_listed_by_field() -> None:
    page = (DOCS / "reference" / "api" / "runs.md").read_text()
    assert "| `waiting.tickets[].tool_name`, required | string | Name of the tool. |" in page


def test_write_docs__in_another_folder__writes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {path.relative_to(BASE_DIR): text for path, text in generate_pages().items()}
    pages = {tmp_path / name: text for name, text in names.items()}
    monkeypatch.setattr(write_docs, "BASE_DIR", tmp_path)
    monkeypatch.setattr(write_docs, "generate_pages", lambda: pages)
    call_command("write_docs", verbosity=0)
    assert all(path.read_bytes() == text for path, text in pages.items())


def test_document__every_operation__is_in_it() -> None:
    assert set(operations()) == set(OPERATIONS)


def test_document__every_operation__has_a_description_and_requires_a_token() -> None:
    for name, (_, _, operation) in operations().items():
        assert {"bearer": []} in operation["security"], name
        assert {"default", "401"} & operation["responses"].keys(), name
        assert operation["summary"], name
        assert operation["description"], name


def test_document__every_body_and_response__has_an_example() -> None:
    without = [
        (name, kind)
        for name, (_, _, operation) in operations().items()
        for part in (
            operation.get("requestBody", {}),
            *(each for status, each in operation["responses"].items() if status < "3"),
        )
        for kind, content in part.get("content", {}).items()
        if "example" not in content
    ]
    assert without == []


def test_examples__of_ag_ui_and_ai_sdk__are_complete_sequences() -> None:
    def kinds(name: str) -> list[str]:
        content = operations()[name][2]["responses"]["200"]["content"]
        lines = content["text/event-stream"]["example"].splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [json.loads(each)["type"] for each in data if each != "[DONE]"]

    snapshots = ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    assert kinds("watch_thread") == snapshots
    assert kinds("join_run") == ["RUN_STARTED", *snapshots, "RUN_FINISHED"]
    assert kinds("stream_ui_message") == [
        "start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish",
    ]  # fmt: skip


def test_document__every_field_and_parameter__has_a_description() -> None:
    """A field of a named object has that of the object."""
    schemas = document()["components"]["schemas"]
    fields = {
        f"{name}.{field}": schema
        for name, component in schemas.items()
        for field, schema in component.get("properties", {}).items()
    }
    for name, (_, _, operation) in operations().items():
        fields |= {f"{name}.{each['name']}": each for each in operation.get("parameters", ())}
    assert len(fields) > 1000
    named = {
        name: schemas.get(each.get("$ref", "").rpartition("/")[2], {})
        for name, each in fields.items()
    }
    assert [
        name for name, each in fields.items() if not (named[name] | each).get("description")
    ] == []


def test_document__every_component__has_a_description() -> None:
    components = document()["components"]["schemas"]
    assert [name for name, each in components.items() if not each.get("description")] == []


def test_document__examples__are_valid_under_their_schemas() -> None:
    wrong = {}
    components = document()["components"]
    for name, (_, _, operation) in operations().items():
        parts = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (each for part in parts for each in part.get("content", {}).values()):
            if "example" in content:
                schema = {**content["schema"], "components": components}
                faults = [
                    e.message for e in Draft202012Validator(schema).iter_errors(content["example"])
                ]
                if faults:
                    wrong[name] = faults
    assert wrong == {}


def test_document__waiting__has_the_members_that_are_accepted() -> None:
    """domain/lifecycle.py refuses others, and its lists repeat the names of the contract."""
    waiting = document()["components"]["schemas"]["RunChange"]["properties"]["waiting"][
        "properties"
    ]
    assert waiting.keys() == {*lifecycle.WAITING_MEMBERS}
    tickets = waiting["tickets"]["items"]["properties"]
    assert tickets.keys() == {*lifecycle.TICKET_MEMBERS}


def test_document__tags__are_described() -> None:
    described = {tag["name"] for tag in document()["tags"]}
    assert described == {tag for _, _, each in operations().values() for tag in each["tags"]}


def test_document__query_parameters__match_the_operation(world: Person) -> None:
    wrong = {}
    for name, (method, path, operation) in operations().items():
        answer = world.api(method, _filled(path) + "?nonsense=1")
        documented = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}
        allowed = answer.json().get("allowed")
        if (answer.status_code, allowed) != (400, allowed) or {*allowed} != documented:
            wrong[name] = (answer.status_code, allowed, documented)
    assert wrong == {}


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "If-Changed", "On-Conflict"])
def test_document__conditional_header__is_documented_exactly_where_it_is_supported(
    world: Person, header: str
) -> None:
    wrong = []
    for name, (method, path, operation) in operations().items():
        if method == "GET":
            continue
        answer = world.api(
            method, _filled(path), _BODIES.get(name), **{header.replace("-", "_"): "nonsense"}
        )
        assert answer.status_code in (400, 422), name
        counts = f"does not support {header}" not in answer.text
        if counts != any(p["name"] == header for p in operation.get("parameters", ())):
            wrong.append(name)
    assert wrong == []


# Bodies that are valid enough for the query to be validated.
_BODIES: dict[str, Any] = {
    "erase": {"key": "x", "reason": "x"},
    "redact_entry": {"reason": "x"},
    "restore_entries": {"at": "2026-01-01T00:00:00Z"},
    "register_namespace": {},
}


def _filled(path: str) -> str:
    """The path with the names of resources of `world`."""
    for name, value in _NAMES.items():
        path = path.replace("{" + name + "}", value)
    return path


_NAMES = {
    "namespace": "notes",
    "key": "k",
    "name": "sum",
    "thread_id": "t1",
    "revision": "2",
    "run_id": "r1",
    "ticket_id": "k1",
    "dispatch_id": "none",
    "compaction_id": "none",
    "webhook_id": "none",
    "delivery_id": "none",
    "kind": "providers",
    "record_id": "openai",
}


@pytest.fixture(scope="module")
def world_of_all(one_alice: Person) -> Person:
    """One resource of each kind."""
    a = one_alice.actor
    make_namespace(a, schema={}, default={"a": 1}, history_keep_last=5)
    for value in ({"a": 1.10}, ["x", {"y": None}]):
        builders.put(a, "notes", "k", value, tags=["t"])
    builders.make_record(a, "providers", "openai", {"adapter": "openai", "api_key": "x" * 20})
    builders.make_record(a, "models", "big", {"provider_id": "openai", "upstream_model": "x"})
    builders.make_state_key(a, "sum", default=0, reducer="add", merge="commutative")
    part = {"name": "kit", "schema": builders.raw({}), "default": builders.raw(None)}
    plugins.install_plugin(actor=a, name="sum", state_keys=[part], namespaces=[part])
    builders.make_thread(a, "t1", resource_id="x")
    builders.make_thread(a, "t2", parent_thread_id="t1")
    builders.make_run(a, "t1", "r1")
    builders.commit(a, "r1", {"sum": 1}, messages=[{"role": "user", "content": "hi"}])
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    builders.commit(
        a,
        "r1",
        run=builders.runs.RunChange(status="waiting", waiting=waiting),
        label="asks",
        reads=[Read("notes", "k", 1)],
    )
    builders.append(a, "t2", *builders.conversation(6, rounds=2))
    job = compactions.request_compaction(actor=a, thread_id="t2")
    compaction_jobs.run_compaction(job.public_id)
    compactions.request_compaction(actor=a, thread_id="t1")
    dispatches.enqueue_dispatch(actor=a, thread_id="t1", payload=raw({"n": 1}))
    storage.measure_storage()
    # Records the first use of the token. Otherwise each request would, because each is rolled back.
    assert one_alice.api("GET", "/me").status_code == 200
    return one_alice


@pytest.fixture
def world(world_of_all: Person, db: None, monkeypatch: pytest.MonkeyPatch) -> Person:
    """The same for each test, whose changes are rolled back."""
    monkeypatch.setattr(namespaces, "_definitions", {})
    quotas.forget_accounts()
    return world_of_all


def test_responses__of_every_read__have_exactly_the_documented_members(world: Person) -> None:
    """Fails for undocumented and for missing members, because clients are generated from the
    document."""
    found = document()["components"]["schemas"]
    documented = operations()
    done = compactions.Compaction.objects.get(status="done").public_id
    reads = {
        "list_namespaces": "/namespaces",
        "get_namespace": "/namespaces/notes",
        "list_state": "/state?include=value",
        "list_entries": "/state/notes?include=value",
        "read_entry": "/state/notes/k",
        "read_history": "/history/notes/k?include=value",
        "blame_entry": "/blame/notes/k",
        "list_key": "/keys/k?include=value",
        "list_config": "/config/providers?include=value",
        "read_config": "/config/providers/openai",
        "read_config_history": "/config/providers/openai/history?include=value",
        "list_config_dependents": "/config/providers/openai/dependents",
        "list_state_keys": "/state-keys",
        "list_plugins": "/plugins",
        "get_plugin": "/plugins/sum",
        "list_threads": "/threads",
        "get_thread": "/threads/t1",
        "read_state": "/threads/t1/state",
        "read_context": "/threads/t1/context",
        "list_snapshots": "/threads/t1/snapshots",
        "preview_compaction": "/threads/t1/compactions",
        "preview_history_compaction": "/namespaces/notes/compactions",
        "list_runs": "/runs",
        "get_run": "/runs/r1",
        "list_run_reads": "/runs/r1/reads",
        "list_readers": "/reads/notes/k",
        "list_tickets": "/tickets",
        "list_dispatches": "/dispatches",
        "count_dispatches": "/dispatches/counts",
        "get_ticket": "/tickets/k1",
        "list_compactions": "/compactions",
        "list_policies": "/compaction-policies",
        "get_thread_policy": "/compaction-policies/threads/t1",
        "get_compaction": f"/compactions/{done}",
        "list_folded_messages": f"/compactions/{done}/messages",
        "list_audit": "/audit",
        "get_me": "/me",
        "get_version": "/version",
        "get_usage": "/usage",
        "list_storage": "/usage/storage?group=thread",
        "measure_namespace": "/usage/storage/namespaces/notes",
        "measure_thread": "/usage/storage/threads/t1",
    }
    for name, path in reads.items():
        body = world.api("GET", path).json()
        _, _, operation = documented[name]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        schema = (
            found[schema["$ref"].rpartition("/")[2]]
            if schema.get("$ref", "").endswith("Page")
            else schema
        )
        if "items" in body:
            assert body["items"], name
            body = body["items"][0]
            schema = schema["properties"]["items"]["items"]
        choices = [found[each["$ref"].rpartition("/")[2]] for each in schema.get("anyOf", [schema])]
        assert any(
            set(component["required"]) <= set(body) <= set(component["properties"])
            for component in choices
        ), (name, [set(body) ^ set(component["properties"]) for component in choices])


# Fuzzing -------------------------------------------------------------------------------------

# A request that matches the schemas is refused only with a declared problem, because of stored data
# or permissions (403, 404, 409, 410, 412), a rule that JSON Schema cannot express (422), or one of
# RULES.
CONFIG = schemathesis.Config.from_dict(
    {
        "generation": {"allow-x00": False},
        "checks": {
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", "304", "403", "404", "409", "410", "412", "422"]
            },
            "negative_data_rejection": {"expected-statuses": ["4xx"]},
        },
    }
)
# Why a request is invalid although each of its parts matches its schema. Patterns of `detail`.
RULES = re.compile(
    "|".join(
        [
            "cursor must be a value that this API returned",
            "(cursor|before|after|.*) cannot be combined with .*",
            "On-Conflict requires If-Match",
            r"If-Match \(\d+\) and base_revision \(\d+\) differ",
            "exactly one of .* is required",
            "choose .* or .*, not both",
            "a namespace, .* is required",
            "send either .*",
            "(kind|action) matches no kind of change: (?s:.*)",
            "invalid address: .*",
            "invalid Run-Id: .*",
            "(key|namespace) must not be empty",
        ]
    )
)
SCHEMA = schemathesis.openapi.from_dict(document(), config=CONFIG)
SCHEMA.app = get_wsgi_application()
# A stream never ends.
FUZZED = sorted(
    OPERATIONS.keys() - {"stream_changes", "watch_thread", "join_run", "stream_ui_message"}
)

FEW = settings(
    max_examples=3,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# Authentication has its own matrix of tests; no other header is required.
EXCLUDED = [
    ignored_auth,
    missing_required_header,
]


@pytest.fixture
def one_transaction() -> Iterator[None]:
    """Keeps each request in the test's transaction, as with Django's own test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def _excused(case: Case, response: Any) -> Iterator[Any]:
    """The checks that do not apply to this response."""
    if response.status_code == 400 and RULES.fullmatch(response.json()["detail"]):
        yield positive_data_acceptance
    components = case.meta.components.items()
    violated = {where for where, part in components if part.mode == "negative"}
    sent = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    if {*case.query} - {*sent}:
        # A value that has no text in the URL, such as an empty list, was not sent.
        violated.discard(ParameterLocation.QUERY)
    if case.method == "DELETE" and violated == {ParameterLocation.PATH}:
        # No resource has an invalid id, and an absent resource counts as deleted.
        yield negative_data_rejection


# Headers of all responses, and those of HTTP itself.
_COMMON_HEADERS = {
    "Allow",
    "Cache-Control",
    "Content-Length",
    "Content-Type",
    "Cross-Origin-Opener-Policy",
    "Referrer-Policy",
    "Vary",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-Request-ID",
}


def check_headers(name: str, answer: Any, operation: Any) -> None:
    """Fail for a header that the document does not declare for this status."""
    declared = operation["responses"][str(answer.status_code)].get("headers", {})
    assert {*answer.headers} - {*declared} <= _COMMON_HEADERS, (name, answer.status_code)


def test_responses__headers__are_declared(world: Person) -> None:
    entry = "/state/notes/k"
    webhook = {"name": "x", "url": "https://example.com/"}
    key = {"Idempotency_Key": "once"}
    cases: list[tuple[str, str, Any, dict[str, str], int, str]] = [
        ("enqueue_dispatch", "/threads/t1/dispatches", {}, key, 201, "Location"),
        ("enqueue_dispatch", "/threads/t1/dispatches", {}, key, 201, "Idempotent-Replayed"),
        ("create_webhook", "/webhooks", webhook, {}, 201, "Location"),
        ("request_compaction", "/threads/t2/compactions", {}, {}, 202, "Location"),
        ("request_history_compaction", "/namespaces/notes/compactions", None, {}, 202, "Location"),
        ("request_revert", "/reverts", {"request_id": "x"}, {}, 202, "Location"),
        ("write_entry", entry, {"value": 1}, {"If_Match": '"99"'}, 412, "ETag"),
        ("patch_entry", entry, {}, {}, 415, "Accept-Patch"),
        ("write_entry", entry, {}, {"content_type": "text/plain"}, 415, "Accept"),
    ]
    for name, path, body, headers, status, header in cases:
        method, _, operation = operations()[name]
        answer = world.api(method, path, body, **headers)
        assert (answer.status_code, header in answer.headers) == (status, True), (name, header)
        assert header in operation["responses"][str(status)]["headers"], (name, header)
        check_headers(name, answer, operation)


def check_answer(case: Case, world: Person) -> None:
    """Send the request, and compare its response with the document."""
    fits = case.meta.generation.mode == GenerationMode.POSITIVE
    for name, value in (case.path_parameters or {}).items():
        # Half of the calls use the name of an existing resource.
        if fits and name in _NAMES and len(str(value)) % 2:
            case.path_parameters[name] = _NAMES[name]
    if case.query and "wait" in case.query:
        del case.query["wait"]
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {world.token}"}
    with transaction.atomic():
        try:
            response = case.call()
            case.validate_response(response, excluded_checks=[*EXCLUDED, *_excused(case, response)])
        finally:
            transaction.set_rollback(True)


@pytest.fixture(scope="module")
def feedback() -> FeedbackSources:
    """The constants of the code, which Schemathesis tries as values."""
    return FeedbackSources(constants_value_source=make_constants_value_source(SCHEMA))


def systematic_cases(name: str, feedback: FeedbackSources) -> list[Case]:
    """A request for each field, rule and kind of value: valid ones, invalid types, lengths just
    beyond a limit, and so on. Thousands for all operations."""
    operation = SCHEMA.find_operation_by_id(name)
    config = SCHEMA.config.generation_for(operation=operation, phase="coverage")
    return list(
        CoverageGenerator(
            operation=operation,
            generation_modes=config.modes,
            generation_config=config,
            auth_storage=None,
            override=Override(),
            feedback=feedback,
        )
    )


def sample(cases: list[Case]) -> list[Case]:
    """One case of each kind, another in each run, except in a pipeline."""
    seed = 0 if settings.default.derandomize else random.random()
    choose = random.Random(seed).choice
    kinds: dict[Any, list[Case]] = {}
    for case in cases:
        kinds.setdefault(kind_of(case), []).append(case)
    return [choose(each) for each in kinds.values()]


def kind_of(case: Case) -> tuple[Any, ...]:
    """What is tested: for a valid request a field and the kind of its value, for an invalid one a
    field, or a rule that is about no field."""
    tested = case.meta.phase.data
    mode = case.meta.generation.mode
    where = (mode, tested.parameter_location, tested.parameter)
    if mode == GenerationMode.NEGATIVE and tested.location is not None:
        return (*where, tested.location.rpartition("/")[0])
    return (*where, tested.location, tested.scenario)


def fuzz(
    name: str, world: Person, feedback: FeedbackSources, cases: list[Case], amount: settings
) -> None:
    """Send `cases`, the examples of the document, and as many random requests as `amount` says."""
    for case in cases:
        check_answer(case, world)

    @amount
    def check(case: Case) -> None:
        check_answer(case, world)

    config = HypothesisTestConfig(
        project=SCHEMA.config,
        modes=[HypothesisTestMode.EXAMPLES, HypothesisTestMode.FUZZING],
        feedback=feedback,
    )
    create_test(operation=SCHEMA.find_operation_by_id(name), test_func=check, config=config)()


@pytest.mark.parametrize("name", FUZZED)
def test_fuzz__each_operation__conforms_to_the_document(
    name: str, world: Person, one_transaction: None, feedback: FeedbackSources
) -> None:
    """test_openapi_for_long.py sends all of the systematic cases, and more random ones."""
    fuzz(name, world, feedback, sample(systematic_cases(name, feedback)), FEW)


def test_schema__served__is_the_committed_one(db: None) -> None:
    from django.test import Client

    served = Client().get("/api/schema?format=json")
    assert served.status_code == 200
    assert call(None, "GET", "/me").status_code == 401
    assert json.loads(served.content)["paths"].keys() == document()["paths"].keys()
