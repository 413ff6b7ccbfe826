"""Secrets of the config registry: encrypted at rest, never shown, deleted in time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Max

from state_admin.domain.config import Kind
from state_admin.models import (
    AuditRow,
    ConfigSecret,
    Entry,
)
from state_admin.services import (
    config_secrets,
    erasures,
    indexing,
    namespaces,
    redactions,
    webhooks,
    workspace_freezes,
)
from state_admin.services.errors import (
    NotFound,
    Unreadable,
)
from tests.builders import Person
from tests.services.canary import tables_with
from tests.services.moving import reset
from tests.services.test_config import (
    NEWER,
    PROVIDER,
    SECRET,
    patch,
    read,
    registry,
    secret_of,
    write,
)

__all__ = ["registry"]


def test_secret__any_operation__appears_in_no_response_table_or_log(
    registry: Person, bob: Person, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [
        registry.api(
            "PUT", "/config/providers/openai", {"value": PROVIDER}, Idempotency_Key=f"k{again}"
        )
        for again in (1, 1, 2)
    ]
    assert answers[1]["Idempotent-Replayed"] == "true"
    answers += [
        registry.api(
            "PATCH",
            "/config/providers/openai",
            {"op": "set", "path": "/api_key", "value": SECRET},
            content_type="application/vnd.commonhold.update+json",
            Idempotency_Key="u",
            If_Match='"3"',
        ),
        registry.api("PUT", "/config/providers/openai", {"value": PROVIDER}, If_Match='"1"'),
        registry.api("PUT", "/state/config.providers/openai", {"value": PROVIDER}),
        registry.api(
            "POST",
            "/state/batch",
            {
                "atomic": False,
                "operations": [
                    {"op": "get", "namespace": "config.providers", "key": "openai"},
                    {"op": "put", "namespace": "config.providers", "key": "o", "value": PROVIDER},
                ],
            },
            Idempotency_Key="b",
        ),
        registry.api("POST", "/config/providers/openai/restore", {"version": 1}),
    ]
    indexing.index_entries()
    for person in (registry, bob):
        answers += [
            person.api("GET", path)
            for path in (
                "/config/providers/openai",
                "/config/providers?include=value",
                "/config/providers/openai/history?include=value",
                "/config/providers/openai/dependents",
                "/state/config.providers/openai",
                "/state/config.providers/openai?at_version=1",
                "/state/config.providers?include=value",
                "/history/config.providers/openai?include=value",
                "/diff/config.providers/openai?from=1&to=4",
                "/blame/config.providers/openai",
                "/keys/openai?include=value",
                "/namespaces/config.providers",
                "/changes",
                "/audit",
            )
        ]
        answers.append(person.api("POST", "/search", {"text": SECRET}))
        answers.append(
            person.api("POST", "/search", {"where": [{"path": "/api_key", "equals": SECRET}]})
        )
        assert answers[-1].json()["items"] == answers[-2].json()["items"] == []
    row = ConfigSecret.objects.get()
    sealed = bytes(row.ciphertext)
    for answer in answers:
        assert SECRET not in answer.content.decode()
        assert sealed.hex() not in answer.content.decode()
    assert tables_with(SECRET) == set()
    assert tables_with(SECRET[:-4]) == set()
    assert tables_with(sealed.hex()) == {"config_secrets"}
    assert SECRET not in caplog.text
    assert secret_of(registry) == SECRET


def test_stored_value__plain_secret__is_invalid_under_the_schema(registry: Person) -> None:
    known = namespaces.find_definition(registry.actor, "config.providers", fresh=True)
    assert known.validator.faults({"id": "x", "adapter": "x", "api_key": SECRET})


def test_ciphertext__same_secret_twice__differs(registry: Person) -> None:
    first = bytes(ConfigSecret.objects.get().ciphertext)
    write(registry, Kind.PROVIDERS, "openai", PROVIDER)
    assert bytes(ConfigSecret.objects.get().ciphertext) != first


def test_ciphertext__moved_or_altered__cannot_be_decrypted(
    registry: Person, mallory: Person
) -> None:
    write(registry, Kind.PROVIDERS, "other", {"adapter": "x", "api_key": NEWER})
    write(mallory, Kind.PROVIDERS, "openai", {"adapter": "x", "api_key": NEWER})
    stolen = ConfigSecret.objects.get(entry__key="other").ciphertext
    ConfigSecret.objects.filter(entry__key="openai").update(ciphertext=stolen)
    for person in (registry, mallory):
        with pytest.raises(Unreadable, match="cannot be decrypted"):
            secret_of(person)
    altered = bytes(stolen)[:-1] + bytes([bytes(stolen)[-1] ^ 1])
    ConfigSecret.objects.filter(entry__key="other").update(ciphertext=altered)
    with pytest.raises(Unreadable):
        secret_of(registry, "other")
    ConfigSecret.objects.filter(entry__key="other").delete()
    with pytest.raises(Unreadable, match="no longer exists"):
        secret_of(registry, "other")


def test_secret__without_a_record__is_not_found(registry: Person) -> None:
    write(registry, Kind.PROVIDERS, "local", {"adapter": "ollama"})
    assert secret_of(registry, "local") is None
    with pytest.raises(NotFound):
        secret_of(registry, "nobody")


def test_rotate__new_key__can_decrypt_old_secrets(registry: Person, settings: Any) -> None:
    settings.CONFIG_SECRET_KEYS = ["first of its kind"]
    assert secret_of(registry) == SECRET  # still decrypted with the SECRET_KEY
    settings.CONFIG_SECRET_KEYS = ["second", "first of its kind"]
    call_command("rotate_secrets")
    settings.SECRET_KEY = "another"
    settings.CONFIG_SECRET_KEYS = ["second"]
    assert secret_of(registry) == SECRET
    assert config_secrets.rotate_secrets() == config_secrets.Rotation(0, 1, [])
    assert AuditRow.objects.get(action="config.rotate").detail == {"secrets": 1}
    assert Entry.objects.aggregate(newest=Max("version"))["newest"] == 1


def test_rotate__webhook_of_a_former_key__is_named(
    registry: Person, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("rotate_secrets")
    webhooks.create_webhook(actor=registry.actor, name="hook", url="https://receiver.example/hook")
    call_command("rotate_secrets")
    assert "webhooks" not in capsys.readouterr().out
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    call_command("rotate_secrets")
    assert capsys.readouterr().out == (
        "config: 1 re-encrypted, 0 already used the first key\n"
        "authenticators: 0 re-encrypted, 0 already used the first key\n"
        "webhooks: 1 still sign with a secret of a former SECRET_KEY. Rotate their secrets before you "
        "remove that key from SECRET_KEY_FALLBACKS:\nacme/hook\n"
    )


def test_rotate__key_missing__is_reported_and_changes_nothing(
    registry: Person, settings: Any
) -> None:
    before = bytes(ConfigSecret.objects.get().ciphertext)
    settings.SECRET_KEY = "another"
    with pytest.raises(Unreadable) as problem:
        secret_of(registry)
    assert "CONFIG_SECRET_KEYS" in problem.value.hint
    with pytest.raises(CommandError, match=r"acme: .* config\.providers/openai /api_key"):
        call_command("rotate_secrets")
    assert bytes(ConfigSecret.objects.get().ciphertext) == before
    assert read(registry)["api_key"]["hint"]
    patch(registry, Kind.PROVIDERS, "openai", {"api_key": NEWER})
    assert secret_of(registry) == NEWER


@pytest.mark.django_db(transaction=True)
def test_rotate__frozen_workspace__is_named_and_the_others_are_rotated(
    registry: Person, mallory: Person, settings: Any
) -> None:
    write(mallory, Kind.PROVIDERS, "openai", PROVIDER)
    workspace_freezes.freeze(registry.workspace.pk, {}, lambda: None)
    settings.CONFIG_SECRET_KEYS = ["new"]
    try:
        with pytest.raises(CommandError, match=r"refuse writes\. .*:\nacme$"):
            call_command("rotate_secrets")
    finally:
        reset()
    assert config_secrets.rotate_secrets() == config_secrets.Rotation(1, 1, [])


@pytest.mark.parametrize("pointers", [[], ["/api_key"], ["/api_key/$secret"]])
def test_redact__secret__deletes_it(registry: Person, pointers: list[str]) -> None:
    redactions.redact_entry(
        actor=registry.actor,
        namespace="config.providers",
        key="openai",
        reason="leaked",
        pointers=pointers,
    )
    assert not ConfigSecret.objects.exists()
    assert secret_of(registry) is None
    write(registry, Kind.PROVIDERS, "openai", PROVIDER)
    assert secret_of(registry) == SECRET


def test_redact__another_place__keeps_the_secret(registry: Person) -> None:
    redactions.redact_entry(
        actor=registry.actor,
        namespace="config.providers",
        key="openai",
        reason="leaked",
        pointers=["/base_url"],
    )
    assert secret_of(registry) == SECRET


def test_erase__key__deletes_the_secret(registry: Person) -> None:
    done = erasures.erase(actor=registry.actor, key="openai", reason="asked to")
    assert done.counts["config_secrets"] == 1
    assert not ConfigSecret.objects.exists()
