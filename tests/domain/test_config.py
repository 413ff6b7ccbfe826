"""Which records the config registry accepts, and that stored values contain no secret."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_admin.domain import config, schemas, values
from state_admin.domain.config import BadSecret, Kind
from state_admin.domain.scopes import BadName
from tests.domain import strategies

PROVIDER = {"id": "openai", "adapter": "openai"}
MODEL = {"id": "big", "provider_id": "openai", "upstream_model": "gpt-big"}
AGENT = {"id": "planner", "model_id": "big"}
SECRET = "sk-live-0123456789abcdef"
HELD = {"/api_key": {"$secret": "s0", "hint": "…zzzz"}}


def seal(value: Any, held: Any = None) -> tuple[Any, list[config.Secret]]:
    ids = map("s{}".format, itertools.count(1))
    return config.seal(Kind.PROVIDERS, value, held or {}, lambda: next(ids))


@pytest.mark.parametrize("kind", Kind)
def test_schema__every_kind__can_be_registered(kind: Kind) -> None:
    schemas.compile_schema(values.dump(config.SCHEMAS[kind]))
    assert config.kind_of(kind.namespace) is kind
    assert config.kind_of("config.others") is None


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        (Kind.PROVIDERS, {"base_url": "https://api.example.com/v1", "timeout_secs": 30}),
        (Kind.PROVIDERS, {"base_url": "http://localhost:11434/?at=a@b"}),
        (Kind.PROVIDERS, {"base_url": None, "adapter_options": {"max_tokens": 5, "region": "eu"}}),
        (Kind.MODELS, {"context_window": 200_000, "knowledge_cutoff": "2025-03"}),
        (Kind.MODELS, {"knowledge_cutoff": "2024-02-29", "max_output_tokens": None}),
        (Kind.MODELS, {"modalities": {"input": ["text", "pdf"], "output": ["text"]}}),
        (Kind.MODELS, {"input_token_price_per_million_usd": 2.5}),
        (Kind.AGENTS, {"backend": {"kind": "a2a", "version": 1}, "allowed_tools": None}),
        (Kind.AGENTS, {"delegates": ["critic"], "sections": {"compaction": {"on": True}}}),
    ],
)
def test_faults__fields_of_the_reference_implementation__are_accepted(
    kind: Kind, extra: Any
) -> None:
    base = {Kind.PROVIDERS: PROVIDER, Kind.MODELS: MODEL, Kind.AGENTS: AGENT}[kind]
    assert config.faults(kind, base["id"], base | extra) == []


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        (
            Kind.PROVIDERS,
            {**PROVIDER, "apikey": SECRET},
            "Additional properties are not allowed ('apikey' was unexpected)",
        ),
        (
            Kind.PROVIDERS,
            {**PROVIDER, "api_key": SECRET},
            '/api_key: the value is not of type "object"',
        ),
        (
            Kind.PROVIDERS,
            {**PROVIDER, "timeout_secs": 0},
            "/timeout_secs: the value is less than the minimum of 1",
        ),
        (
            Kind.PROVIDERS,
            {**PROVIDER, "base_url": f"ftp://{SECRET}"},
            "/base_url: must be an http:// or https:// URL",
        ),
        (
            Kind.PROVIDERS,
            {**PROVIDER, "base_url": f"https://u:{SECRET}@x/"},
            "/base_url: must not contain a user or password; use /api_key",
        ),
        (
            Kind.PROVIDERS,
            {**PROVIDER, "adapter_options": {"headers": [{"Authorization": SECRET}]}},
            "/adapter_options/headers/0/Authorization: may be a secret; use /api_key",
        ),
        (Kind.PROVIDERS, {**PROVIDER, "id": "other"}, "/id: differs from the id in the path"),
        (Kind.PROVIDERS, SECRET, 'the value is not of type "object"'),
        (
            Kind.MODELS,
            {**MODEL, "context_window": 2**32},
            "/context_window: the value is greater than the maximum of 4294967295",
        ),
        (
            Kind.MODELS,
            {**MODEL, "knowledge_cutoff": "2025"},
            '/knowledge_cutoff: the value does not match "^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$"',
        ),
        (
            Kind.MODELS,
            {**MODEL, "knowledge_cutoff": "2025-02-30"},
            "/knowledge_cutoff: must be a valid date such as 2025-06 or 2025-06-30",
        ),
        (
            Kind.MODELS,
            {**MODEL, "knowledge_cutoff": "2025-13"},
            "/knowledge_cutoff: must be a valid date such as 2025-06 or 2025-06-30",
        ),
        (
            Kind.MODELS,
            {**MODEL, "modalities": {"input": ["smell"]}},
            '/modalities/input/0: the value is not one of "text", "image", "audio", "video", "pdf"',
        ),
        (
            Kind.AGENTS,
            {**AGENT, "max_rounds": -1},
            "/max_rounds: the value is less than the minimum of 1",
        ),
        (
            Kind.AGENTS,
            {**AGENT, "surprise": SECRET},
            "Additional properties are not allowed ('surprise' was unexpected)",
        ),
        (
            Kind.AGENTS,
            {**AGENT, "active_hook_filter": [], "active_plugins": []},
            "/active_plugins: is an alias of active_hook_filter; send only one of them",
        ),
    ],
)
def test_faults__invalid_value__is_located_without_quoting_it(
    kind: Kind, value: Any, fault: str
) -> None:
    identity = {Kind.PROVIDERS: "openai", Kind.MODELS: "big", Kind.AGENTS: "planner"}[kind]
    faults = config.faults(kind, identity, value)
    assert [str(found) for found in faults] == [fault]
    assert SECRET not in str(faults)


def test_seal__string__becomes_a_marker_with_its_last_characters() -> None:
    sealed, (fresh,) = seal({**PROVIDER, "api_key": SECRET})
    assert sealed == {**PROVIDER, "api_key": {"$secret": "s1", "hint": "…cdef"}}
    assert (fresh.plain, fresh.pointer) == (SECRET, "/api_key")
    assert SECRET not in repr(fresh)
    assert config.faults(Kind.PROVIDERS, "openai", sealed) == []


def test_seal__short_string__has_no_hint() -> None:
    sealed, _ = seal({**PROVIDER, "api_key": "hunter22"})
    assert sealed["api_key"] == {"$secret": "s1"}


def test_seal__null_or_nothing__clears() -> None:
    for value in (PROVIDER, {**PROVIDER, "api_key": None}):
        assert seal(value, HELD) == (PROVIDER, [])


@pytest.mark.parametrize("marker", [HELD["/api_key"], {"$secret": "old"}, {"$secret": 1, "x": 2}])
def test_seal__any_marker__keeps_the_stored_secret(marker: Any) -> None:
    sealed, fresh = seal({**PROVIDER, "api_key": marker}, HELD)
    assert sealed == {**PROVIDER, "api_key": HELD["/api_key"]}
    assert fresh == []


@pytest.mark.parametrize(
    "value",
    [
        {**PROVIDER, "api_key": {"$secret": "s0"}},
        {**PROVIDER, "api_key": 12345678},
        {**PROVIDER, "api_key": {"$redacted": True}},
        {**PROVIDER, "api_key": "short"},
        {**PROVIDER, "api_key": SECRET, "adapter_options": {"note": f"key is {SECRET}"}},
        {**PROVIDER, "api_key": SECRET, "adapter_options": {SECRET: 1}},
        {**PROVIDER, "api_key": 'quo"ted-secret', "adapter_options": {"a": 'quo"ted-secret'}},
    ],
)
def test_seal__invalid_secret__is_refused_without_quoting_it(value: Any) -> None:
    with pytest.raises(BadSecret) as refused:
        seal(value)
    assert [fault.pointer for fault in refused.value.faults] == ["/api_key"]
    assert str(refused.value) in (
        "/api_key: no secret is stored here to keep",
        "/api_key: a secret must be a string, null, or the marker that a read returned",
        "/api_key: a secret must have 8 to 8192 characters",
        "/api_key: the value contains the secret elsewhere, in plain text",
    )
    assert not any(word in str(refused.value) for word in (SECRET, "12345678", "quo"))


@given(
    strategies.values,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40),
    st.booleans(),
)
def test_seal__any_value__never_contains_a_secret(other: Any, secret: str, planted: bool) -> None:
    value = {**PROVIDER, "adapter_options": {"x": other}, "api_key": secret}
    if planted:
        value["adapter_options"] = {"x": [other, {f"<{secret}>": f"<{secret}>"}]}
    try:
        sealed, _ = seal(value)
    except BadSecret:
        del value["api_key"]
        assert planted or values.dump(secret)[1:-1] in values.dump(value)
    else:
        assert not planted
        assert values.dump(secret)[1:-1] not in values.dump(sealed)


def test_reseal__old_value__has_the_current_secrets() -> None:
    old = {"id": "openai", "api_key": {"$secret": "gone"}, "adapter": "openai"}
    assert config.reseal(Kind.PROVIDERS, old, HELD) == {**PROVIDER, "api_key": HELD["/api_key"]}
    assert config.reseal(Kind.PROVIDERS, old, {}) == PROVIDER
    assert config.reseal(Kind.PROVIDERS, PROVIDER, HELD)["api_key"] == HELD["/api_key"]


def test_references__models_and_agents__are_found() -> None:
    agent = {**AGENT, "delegates": ["critic", {"$redacted": True}]}
    named = [(each.pointer, each.kind, each.id) for each in config.references(Kind.AGENTS, agent)]
    assert named == [
        ("/model_id", Kind.MODELS, "big"),
        ("/delegates/0", Kind.AGENTS, "critic"),
    ]
    assert [each.id for each in config.references(Kind.MODELS, MODEL)] == ["openai"]
    assert config.references(Kind.PROVIDERS, PROVIDER) == []
    assert config.references(Kind.MODELS, {"$redacted": True}) == []


def test_check_id__keys_of_scopes_and_paths__are_refused() -> None:
    for good in ("openai", "llama3:8b", "gpt-4.1", "_x"):
        config.check_id(good)
    for bad in ("", "thread::t1", "a/b", "é", "-x", "x" * 129):
        with pytest.raises(BadName):
            config.check_id(bad)


def test_bad_secret__several_faults__are_all_reported() -> None:
    refused = BadSecret([values.Fault("/a", "one"), values.Fault("", "two")])
    assert str(refused) == "/a: one; two"


def test_form_schema__of_a_kind__excludes_id_and_secrets() -> None:
    schema = config.form_schema(Kind.PROVIDERS)
    assert list(schema["properties"]) == ["adapter", "base_url", "timeout_secs", "adapter_options"]
    assert schema["required"] == ["adapter"]
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["properties"]["base_url"]["title"] == "Base URL"
    adapter = config.SCHEMAS[Kind.PROVIDERS]["properties"]["adapter"]
    assert schema["properties"]["adapter"].items() >= adapter.items()


@pytest.mark.parametrize(("length", "taken"), [(7, False), (8, True), (8192, True), (8193, False)])
def test_seal__secret_length__is_limited(length: int, taken: bool) -> None:
    value = {**PROVIDER, "api_key": "x" * length}
    if taken:
        assert seal(value)[1][0].plain == "x" * length
    else:
        with pytest.raises(BadSecret, match="8 to 8192 characters"):
            seal(value)
