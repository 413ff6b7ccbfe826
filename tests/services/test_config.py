"""The config registry: records of reserved namespaces, their references, and that secrets are
returned only by config_secrets.py."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from state_admin.domain.access import Role
from state_admin.domain.config import Kind
from state_admin.models import (
    AuditRow,
    Change,
    ConfigSecret,
    Entry,
    EntryRevision,
    Namespace,
    NamespaceVersion,
)
from state_admin.services import (
    batches,
    clearing,
    config,
    entries,
    entry_views,
    namespaces,
    redactions,
    restores,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.config_secrets import find_provider_secret
from state_admin.services.entries import Precondition
from state_admin.services.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotRegistered,
    VersionConflict,
)
from tests.builders import Person, call, make_namespace, make_person, make_token, put, raw
from tests.services.canary import tables_with
from tests.services.racing import interleave, race, split

SECRET = "canary-7f3a-secret-9d21"
NEWER = "canary-0b8e-newer-44aa"
PROVIDER = {"adapter": "openai", "api_key": SECRET, "base_url": "https://api.example.com"}
MODEL = {"provider_id": "openai", "upstream_model": "gpt-big", "context_window": 128_000}
AGENT = {"model_id": "big", "system_prompt": "Plan."}


def write(
    person: Any, kind: Kind, identity: str, value: Any, **options: Any
) -> entry_views.EntryView:
    actor = getattr(person, "actor", person)
    return config.put_record(
        actor=actor, kind=kind, identity=identity, value=raw(value), **options
    ).entry


def patch(person: Person, kind: Kind, identity: str, operations: Any, **options: Any) -> Any:
    options = {"patch": "merge", **options}
    made = config.patch_record(
        actor=person.actor, kind=kind, identity=identity, operations=operations, **options
    )
    return json.loads(made.entry.value)


def read(person: Person, kind: Kind = Kind.PROVIDERS, identity: str = "openai") -> Any:
    return json.loads(config.read_record(actor=person.actor, kind=kind, identity=identity).value)


def secret_of(person: Person, provider: str = "openai") -> str | None:
    return find_provider_secret(workspace_id=person.workspace.pk, provider_id=provider)


def delete(person: Person, kind: Kind, identity: str, **options: Any) -> config.ConfigDeletion:
    return config.delete_record(actor=person.actor, kind=kind, identity=identity, **options)


@pytest.fixture
def registry(alice: Person) -> Person:
    """A provider with a secret, a model of it, and an agent with that model."""
    write(alice, Kind.PROVIDERS, "openai", PROVIDER)
    write(alice, Kind.MODELS, "big", MODEL)
    write(alice, Kind.AGENTS, "planner", AGENT)
    return alice


# Reserved namespaces -----------------------------------------------------------------------------


def test_workspace__new__has_the_reserved_namespaces(alice: Person) -> None:
    rows = Namespace.objects.filter(workspace=alice.workspace)
    assert {row.name for row in rows} == {"config.agents", "config.models", "config.providers"}
    assert NamespaceVersion.objects.filter(namespace__in=rows).count() == 3


def test_namespace__reserved__is_not_registered_changed_or_unregistered(alice: Person) -> None:
    for name in ("config.providers", "config.mine"):
        with pytest.raises(Forbidden, match=f"namespace {name} is reserved"):
            make_namespace(alice.actor, name)
    with pytest.raises(Forbidden):
        namespaces.unregister_namespace(actor=alice.actor, name="config.models", entries="retain")
    make_namespace(alice.actor, "configuration")
    answer = alice.api("GET", "/namespaces")
    assert [each["name"] for each in answer.json()["items"]] == ["configuration"]
    shown = alice.api("GET", "/namespaces/config.providers").json()
    assert shown["schema"]["properties"]["api_key"]["x-secret"] is True


def _raw_writes(actor: Any) -> dict[str, Any]:
    at: dict[str, Any] = {"actor": actor, "namespace": "config.providers", "key": "openai"}
    precondition = datetime(2026, 1, 1, tzinfo=UTC)

    def batch(op: Any, **options: Any) -> Any:
        return lambda: batches.run_batch(
            actor=actor, operations=[BatchOperation(op, at["namespace"], at["key"], **options)]
        )

    return {
        "put": lambda: entries.put_entry(**at, value=raw(PROVIDER)),
        "puts": lambda: entries.put_entries(
            actor=actor, puts=[(at["namespace"], at["key"], raw(PROVIDER))]
        ),
        "merge": lambda: entries.patch_entry(**at, kind="merge", operations={"api_key": SECRET}),
        "update": lambda: entries.patch_entry(
            **at, kind="update", operations={"op": "set", "path": "/api_key", "value": SECRET}
        ),
        "restore": lambda: entries.restore_entry(**at, version=1),
        "delete": lambda: entries.delete_entry(**at),
        "batch put": batch("put", value=raw(PROVIDER)),
        "batch put, tagged": batch("put", value=raw(PROVIDER), tags=["x"]),
        "batch patch": batch("patch", operations={"api_key": SECRET}),
        "batch delete": batch("delete"),
        "clear": lambda: clearing.clear_matching(actor=actor, namespace=at["namespace"]),
        "restore many": lambda: restores.restore_entries(
            actor=actor, namespace=at["namespace"], at=precondition
        ),
    }


@pytest.mark.parametrize("name", _raw_writes(None))
def test_raw_write__reserved_namespace__is_refused_with_a_hint(registry: Person, name: str) -> None:
    before = read(registry)
    with pytest.raises(Forbidden) as refused:
        _raw_writes(registry.actor)[name]()
    assert "/api/v1/config/providers/{id}" in refused.value.hint
    assert read(registry) == before


def test_bulk__by_key_prefix_and_scope__skips_the_registry(registry: Person) -> None:
    actor = registry.actor
    write(registry, Kind.PROVIDERS, "global", {"adapter": "x"})
    make_namespace(actor)
    put(actor, "notes", "global", 1)
    put(actor, "notes", "openai", 1)
    assert clearing.clear_key(actor=actor, key="global") == 1
    assert clearing.clear_matching(actor=actor, prefix="open") == 1
    past = datetime(2026, 1, 1, tzinfo=UTC)
    assert restores.restore_entries(actor=actor, prefix="o", at=past).deleted == 0
    assert read(registry, identity="global")["adapter"] == "x"
    assert secret_of(registry) == SECRET


def test_raw_read__reserved_namespace__is_an_ordinary_entry(registry: Person) -> None:
    patch(registry, Kind.PROVIDERS, "openai", {"timeout_secs": 5})
    raw_answer = registry.api("GET", "/state/config.providers/openai")
    assert (
        raw_answer.json()["value"]
        == registry.api("GET", "/config/providers/openai").json()["value"]
    )
    assert raw_answer["ETag"] == '"2"'
    past = registry.api("GET", "/state/config.providers/openai?at_version=1").json()
    assert "timeout_secs" not in past["value"]
    diff = registry.api("GET", "/diff/config.providers/openai?from=1&to=2").json()
    assert [row["pointer"] for row in diff["rows"]] == ["/timeout_secs"]
    blamed = registry.api("GET", "/blame/config.providers/openai").json()["items"]
    assert {line["version"] for line in blamed} == {1, 2}
    kinds = Change.objects.filter(namespace="config.providers").order_by("pk")
    assert list(kinds.values_list("kind", flat=True)) == ["entry.put", "entry.patch"]
    audit = AuditRow.objects.filter(namespace="config.providers").order_by("pk")
    assert list(audit.values_list("action", flat=True)) == ["entry.put", "entry.patch"]


# Records -----------------------------------------------------------------------------------------


def test_put__new_record__has_its_id_and_a_marker(alice: Person) -> None:
    made = alice.api("PUT", "/config/providers/openai", {"value": PROVIDER})
    assert (made.status_code, made["ETag"]) == (201, '"1"')
    body = made.json()
    assert (body["kind"], body["id"], body["version"]) == ("providers", "openai", 1)
    marker = body["value"].pop("api_key")
    assert body["value"] == {"id": "openai", "adapter": "openai", "base_url": PROVIDER["base_url"]}
    assert marker["hint"] == "…" + SECRET[-4:]
    assert secret_of(alice) == SECRET


def test_put__marker_from_a_read__keeps_the_secret(registry: Person) -> None:
    shown = read(registry)
    write(registry, Kind.PROVIDERS, "openai", shown | {"timeout_secs": 9})
    assert secret_of(registry) == SECRET
    assert read(registry) == shown | {"timeout_secs": 9}


@pytest.mark.parametrize("cleared", [{"api_key": None}, {}])
def test_put__null_or_nothing__clears_the_secret(registry: Person, cleared: Any) -> None:
    write(registry, Kind.PROVIDERS, "openai", {"adapter": "openai", **cleared})
    assert secret_of(registry) is None
    assert not ConfigSecret.objects.exists()


def test_put__marker_without_a_secret__is_refused(registry: Person) -> None:
    marker = read(registry)["api_key"]
    with pytest.raises(Invalid) as refused:
        write(registry, Kind.PROVIDERS, "other", {"adapter": "x", "api_key": marker})
    assert refused.value.data["errors"][0]["pointer"] == "/api_key"


def test_put__stale_precondition__is_a_conflict_with_markers(registry: Person) -> None:
    shown = read(registry)
    patch(registry, Kind.PROVIDERS, "openai", {"api_key": NEWER, "timeout_secs": 5})
    with pytest.raises(VersionConflict) as refused:
        write(
            registry,
            Kind.PROVIDERS,
            "openai",
            shown | {"timeout_secs": 6, "api_key": "mine-mine-mine-mine"},
            precondition=Precondition(1),
        )
    told = json.dumps(refused.value.data, default=str)
    assert '"yours"' in told
    assert not any(word in told for word in (SECRET, NEWER, "mine-mine"))
    assert secret_of(registry) == NEWER
    with pytest.raises(VersionConflict):
        write(registry, Kind.PROVIDERS, "openai", PROVIDER, precondition=Precondition(0))
    assert (
        write(registry, Kind.PROVIDERS, "openai", PROVIDER, precondition=Precondition(2)).version
        == 3
    )


def test_put__on_conflict_merge__merges_and_keeps_their_secret(registry: Person) -> None:
    shown = read(registry)
    patch(registry, Kind.PROVIDERS, "openai", {"api_key": NEWER})
    made = registry.api(
        "PUT",
        "/config/providers/openai",
        {"value": shown | {"timeout_secs": 6}},
        If_Match='"1"',
        On_Conflict="merge",
    )
    assert (made.status_code, made.json()["value"]["timeout_secs"]) == (200, 6)
    assert secret_of(registry) == NEWER
    other = shown | {"timeout_secs": 7, "api_key": "mine-mine-mine-mine"}
    clash = registry.api(
        "PUT", "/config/providers/openai", {"value": other}, If_Match='"1"', On_Conflict="merge"
    )
    assert clash.status_code == 412
    assert secret_of(registry) == NEWER


def test_put__only_the_secret_changed_meanwhile__is_merged(registry: Person) -> None:
    shown = read(registry)
    patch(registry, Kind.PROVIDERS, "openai", {"timeout_secs": 6})
    made = registry.api(
        "PUT",
        "/config/providers/openai",
        {"value": shown | {"api_key": NEWER}},
        If_Match='"1"',
        On_Conflict="merge",
    )
    assert (made.status_code, made.json()["value"]["timeout_secs"]) == (200, 6)
    assert secret_of(registry) == NEWER


@pytest.mark.parametrize(
    ("kind", "operations", "expected"),
    [
        ("merge", {"timeout_secs": 5}, SECRET),
        ("merge", {"api_key": NEWER}, NEWER),
        ("merge", {"api_key": None}, None),
        ("merge", {"api_key": {"hint": "forged"}}, SECRET),
        ("json", [{"op": "replace", "path": "/api_key", "value": NEWER}], NEWER),
        ("json", [{"op": "remove", "path": "/api_key"}], None),
        ("update", {"op": "set", "path": "/api_key", "value": NEWER}, NEWER),
        ("update", {"op": "add", "path": "/timeout_secs", "value": 5}, SECRET),
    ],
)
def test_patch__any_kind__can_set_keep_or_clear_secrets(
    registry: Person, kind: Any, operations: Any, expected: str | None
) -> None:
    shown = patch(registry, Kind.PROVIDERS, "openai", operations, patch=kind)
    assert secret_of(registry) == expected
    assert ("api_key" in shown) == (expected is not None)
    if expected == SECRET:
        assert shown["api_key"]["hint"] == "…" + SECRET[-4:]


@pytest.mark.parametrize(
    ("kind", "operations"),
    [
        ("json", [{"op": "test", "path": "/api_key", "value": SECRET}]),
        ("json", [{"op": "copy", "from": "/api_key", "path": "/base_url"}]),
        ("json", [{"op": "move", "from": "/api_key", "path": "/adapter"}]),
        ("update", {"op": "append", "path": "/api_key", "value": "x"}),
        ("update", {"op": "max", "path": "/api_key", "value": 1}),
    ],
)
def test_patch__test_of_a_secret__compares_the_marker(
    registry: Person, kind: Any, operations: Any
) -> None:
    with pytest.raises((Conflict, Invalid)) as refused:
        patch(registry, Kind.PROVIDERS, "openai", operations, patch=kind)
    assert SECRET not in str(refused.value.data)
    assert secret_of(registry) == SECRET


def test_patch__absent_record__is_not_found(alice: Person) -> None:
    with pytest.raises(NotFound, match="config not found: providers/nobody"):
        patch(alice, Kind.PROVIDERS, "nobody", {"adapter": "x"})


def test_restore__old_version__keeps_the_current_secret(registry: Person) -> None:
    patch(registry, Kind.PROVIDERS, "openai", {"api_key": NEWER, "timeout_secs": 5})
    at: dict[str, Any] = {"actor": registry.actor, "kind": Kind.PROVIDERS, "identity": "openai"}
    with pytest.raises(VersionConflict):
        config.restore_record(**at, version=1, precondition=Precondition(1))
    made = config.restore_record(**at, version=1).entry
    assert (made.version, "timeout_secs" in json.loads(made.value)) == (3, False)
    assert secret_of(registry) == NEWER
    patch(registry, Kind.PROVIDERS, "openai", {"api_key": None})
    config.restore_record(**at, version=1)
    assert secret_of(registry) is None
    assert EntryRevision.objects.filter(operation="restore").count() == 2
    answer = registry.api("POST", "/config/providers/openai/restore", {"version": 99})
    assert answer.status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(
    ("owner", "name"), [(entry_views, "read_past"), (entries, "read_entry"), (config, "_seal")]
)
def test_restore__version_that_is_redacted_meanwhile__is_not_written(
    registry: Person, monkeypatch: pytest.MonkeyPatch, deleted: bool, owner: Any, name: str
) -> None:
    def redact() -> None:
        redactions.redact_entry(
            actor=registry.actor,
            namespace=Kind.PROVIDERS.namespace,
            key="openai",
            reason="leaked",
            pointers=["/base_url"],
        )

    if deleted:
        delete(registry, Kind.PROVIDERS, "openai", force=True)
    with interleave(monkeypatch, owner, name, redact), suppress(Invalid):
        config.restore_record(
            actor=registry.actor, kind=Kind.PROVIDERS, identity="openai", version=1
        )
    assert "entry_revisions" not in tables_with(PROVIDER["base_url"])


def test_delete__then_restore__has_no_secret(registry: Person) -> None:
    delete(registry, Kind.PROVIDERS, "openai", force=True)
    assert not ConfigSecret.objects.exists()
    with pytest.raises(NotFound):
        read(registry)
    history = registry.api("GET", "/config/providers/openai/history").json()["items"]
    assert [(row["version"], row["operation"]) for row in history] == [(2, "delete"), (1, "put")]
    config.restore_record(actor=registry.actor, kind=Kind.PROVIDERS, identity="openai", version=1)
    assert "api_key" not in read(registry)
    assert secret_of(registry) is None


@pytest.mark.parametrize("identity", ["thread::t1", "a b", "-x", "x" * 129])
def test_put__invalid_id__is_refused(alice: Person, identity: str) -> None:
    with pytest.raises(BadRequest, match="invalid id"):
        write(alice, Kind.PROVIDERS, identity, PROVIDER)


def test_put__invalid_record__is_located_without_quoting_values(alice: Person, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    for value, pointer in (
        ({"adapter": SECRET, "timeout_secs": SECRET}, "/timeout_secs"),
        ({"apikey": SECRET, "adapter": "x"}, ""),
        ({"adapter": "x", "base_url": f"https://u:{SECRET}@x/"}, "/base_url"),
        ({"adapter": "x", "api_key": [SECRET]}, "/api_key"),
        ({"adapter": "x", "id": SECRET}, "/id"),
        (SECRET, ""),
    ):
        answer = alice.api(
            "PUT",
            "/config/providers/p",
            {"value": value},
            Idempotency_Key=f"k{pointer}{value}"[:200].encode("ascii", "ignore").hex(),
        )
        assert answer.status_code == 422
        assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
        assert SECRET not in answer.content.decode()
    assert tables_with(SECRET) == set()
    assert SECRET not in caplog.text


# References and dependents -----------------------------------------------------------------------


def test_put__broken_reference__is_reported(registry: Person) -> None:
    with pytest.raises(Invalid) as refused:
        write(registry, Kind.MODELS, "small", MODEL | {"provider_id": "nobody"})
    assert refused.value.data["errors"] == [
        {"pointer": "/provider_id", "message": "providers/nobody does not exist"}
    ]
    agent = {"model_id": "nothing", "delegates": ["planner", "nobody", "critic"]}
    with pytest.raises(Invalid) as refused:
        write(registry, Kind.AGENTS, "critic", agent)
    errors = refused.value.data["errors"]
    assert [each["pointer"] for each in errors] == ["/model_id", "/delegates/1"]


def test_put__reference_outside_the_permissions__appears_broken(registry: Person) -> None:
    _, narrow = make_token(registry, Role.ADMIN, namespaces=["config.models"])
    with pytest.raises(Invalid):
        write(narrow, Kind.MODELS, "small", MODEL)
    with pytest.raises(NotRegistered):
        write(narrow, Kind.PROVIDERS, "openai", PROVIDER)


def test_delete__with_dependents__is_refused_unless_forced(registry: Person) -> None:
    write(registry, Kind.AGENTS, "chief", AGENT | {"delegates": ["planner", "chief"]})
    for kind, identity, dependents in (
        ("providers", "openai", [("models", "big", "/provider_id")]),
        ("models", "big", [("agents", "chief", "/model_id"), ("agents", "planner", "/model_id")]),
        ("agents", "planner", [("agents", "chief", "/delegates/0")]),
        ("agents", "chief", []),
    ):
        wanted = [dict(zip(("kind", "id", "pointer"), d, strict=True)) for d in dependents]
        path = f"/config/{kind}/{identity}"
        assert registry.api("GET", f"{path}/dependents").json()["items"] == wanted
        told = registry.api("DELETE", f"{path}?dry_run=true")
        assert told.json() == {"dry_run": True, "dependents": wanted, "hidden": 0}
        if dependents:
            refused = registry.api("DELETE", path)
            assert (refused.status_code, refused.json()["dependents"]) == (409, wanted)
    assert registry.api("DELETE", "/config/agents/chief").status_code == 204
    assert registry.api("DELETE", "/config/agents/chief").status_code == 204
    assert registry.api("DELETE", "/config/models/big?force=true").status_code == 204
    assert registry.api("GET", "/config/models/big").status_code == 404
    assert registry.api("GET", "/config/models/big/dependents").status_code == 404
    assert registry.api("GET", "/config/agents/planner").status_code == 200


def test_delete__dependents_outside_the_permissions__are_counted_but_not_named(
    registry: Person,
) -> None:
    secret, _ = make_token(registry, Role.ADMIN, namespaces=["config.providers"])
    told = call(secret, "DELETE", "/config/providers/openai?dry_run=true").json()
    assert told == {"dry_run": True, "dependents": [], "hidden": 1}
    refused = call(secret, "DELETE", "/config/providers/openai")
    assert refused.status_code == 409
    assert refused.json()["detail"] == "providers/openai is referenced by other records: 1"
    assert (refused.json()["dependents"], refused.json()["hidden"]) == ([], 1)
    assert "big" not in refused.content.decode()
    assert registry.api("GET", "/config/providers/openai").status_code == 200


def test_delete__if_match__is_honoured(registry: Person) -> None:
    with pytest.raises(VersionConflict):
        delete(registry, Kind.AGENTS, "planner", precondition=Precondition(7))
    assert delete(registry, Kind.AGENTS, "planner", precondition=Precondition(1)).version == 2


def test_find_spec__configured__returns_the_stored_record(registry: Person) -> None:
    patch(registry, Kind.MODELS, "big", {"input_token_price_per_million_usd": 2.5})
    found = config.find_spec(registry.workspace.pk, Kind.MODELS, "big")
    assert (found["provider_id"], found["upstream_model"]) == ("openai", "gpt-big")
    assert (found["context_window"], found["input_token_price_per_million_usd"]) == (128_000, 2.5)
    assert "max_output_tokens" not in found
    with pytest.raises(NotFound):
        config.find_spec(registry.workspace.pk, Kind.MODELS, "small")


# Who may -----------------------------------------------------------------------------------------


def test_roles__viewer_and_editor__may_read_but_not_write(registry: Person, bob: Person) -> None:
    erin = make_person("erin", "acme", Role.EDITOR)
    for person in (bob, erin):
        assert read(person)["api_key"]["$secret"]
        for act in (
            lambda p=person: write(p, Kind.PROVIDERS, "x", {"adapter": "x"}),
            lambda p=person: patch(p, Kind.PROVIDERS, "openai", {"api_key": NEWER}),
            lambda p=person: delete(p, Kind.AGENTS, "planner"),
            lambda p=person: config.restore_record(
                actor=p.actor, kind=Kind.AGENTS, identity="planner", version=1
            ),
        ):
            with pytest.raises(Forbidden):
                act()
    assert secret_of(registry) == SECRET


def test_workspace__other__has_its_own_registry(registry: Person, mallory: Person) -> None:
    with pytest.raises(NotFound):
        read(mallory)
    write(mallory, Kind.PROVIDERS, "openai", {"adapter": "x", "api_key": NEWER})
    assert (secret_of(registry), secret_of(mallory)) == (SECRET, NEWER)


# Races -------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_race__delete_and_new_dependents__leave_no_broken_reference(alice: Person) -> None:
    for number in range(5):
        provider = f"p{number}"
        write(alice, Kind.PROVIDERS, provider, {"adapter": "x"})
        models = [f"m{number}-{racer}" for racer in range(3)]
        outcomes = race(
            [
                *(
                    lambda m=model, p=provider: write(
                        alice, Kind.MODELS, m, MODEL | {"provider_id": p}
                    )
                    for model in models
                ),
                lambda p=provider: delete(alice, Kind.PROVIDERS, p),
            ]
        )
        stored = set(Entry.objects.live().filter(key__in=models).values_list("key", flat=True))
        gone = not isinstance(outcomes[-1], Conflict)
        assert (not stored) if gone else stored
        _, refused = split(outcomes[:-1])
        assert len(stored) + len(refused) == 3
        assert all(isinstance(problem, Invalid) for problem in refused)


@pytest.mark.django_db(transaction=True)
def test_race__new_secrets_and_redaction__keep_referenced_secrets(alice: Person) -> None:
    write(alice, Kind.PROVIDERS, "openai", PROVIDER)
    for number in range(4):
        race(
            [
                *(
                    lambda s=f"secret-number-{number}-{racer}": write(
                        alice, Kind.PROVIDERS, "openai", PROVIDER | {"api_key": s}
                    )
                    for racer in range(3)
                ),
                lambda: redactions.redact_entry(
                    actor=alice.actor,
                    namespace="config.providers",
                    key="openai",
                    reason="leaked",
                    pointers=["/api_key"],
                ),
            ]
        )
        marker = read(alice)["api_key"]
        kept = [row.public_id for row in ConfigSecret.objects.all()]
        assert kept == ([marker["$secret"]] if "$secret" in marker else [])
        if kept:
            assert (secret_of(alice) or "").endswith(marker["hint"][1:])
