"""The pages of the config registry: permissions, number of queries, and that they contain no
secret."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from state_admin.domain import values
from state_admin.domain.config import SCHEMAS, SECRET_PLACES, Kind
from state_admin.models import AuditRow, ConfigSecret, Entry, EntryRevision
from state_admin.services.config import read_record
from state_admin.services.config_secrets import find_provider_secret
from state_admin.services.entry_views import read_entry
from state_admin.services.errors import NotFound
from state_admin.web import config
from state_admin.web.config import EXAMPLES
from tests.builders import Person, make_record
from tests.web.conftest import CheckQueries

from .controls import Controls, form_of

SECRET = "canary-3c5d-secret-77be"
PAGES = {
    "config": "/config",
    "config, models": "/config/models",
    "config, record": "/config/providers/openai",
    "config, edit": "/config/providers/openai/edit",
    "config, edit as JSON": "/config/providers/openai/edit?as=json",
    "config, delete": "/config/providers/openai/delete",
    "config, new": "/config/providers/+new",
}
ADMINS_ONLY = {"config, edit", "config, edit as JSON", "config, delete", "config, new"}


@pytest.fixture
def registry(alice: Person) -> Person:
    make_record(alice.actor, "providers", "openai", {"adapter": "openai", "api_key": SECRET})
    make_record(alice.actor, "models", "big", {"provider_id": "openai", "upstream_model": "x"})
    return alice


def secret_of(person: Person) -> str | None:
    return find_provider_secret(workspace_id=person.workspace.pk, provider_id="openai")


def save(client: Client, text: str, base: int = 1, **fields: Any) -> Any:
    return client.post("/config/providers/openai/edit", {"value": text, "base": base, **fields})


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("registry")
def test_page__member__uses_a_bounded_number_of_queries(
    name: str, admin: Client, check_queries: CheckQueries
) -> None:
    check_queries(name, admin, PAGES[name])


def test_list__empty__shows_examples_that_are_valid_unchanged(admin: Client, alice: Person) -> None:
    for kind, value in EXAMPLES.items():
        shown = html.unescape(admin.get(f"/config/{kind}").content.decode())
        assert f"/api/v1/config/{kind}/main" in shown
        assert values.dump({"value": value}) in shown
        assert f"<h2>No {kind} yet</h2>" in shown
        assert re.search(rf'href="/config/{kind}/\+new">.*New {kind.removesuffix("s")}</a>', shown)
        make_record(alice.actor, kind, "main", value)


@pytest.mark.usefixtures("registry")
def test_pages__viewer_and_non_member__have_the_access_of_their_role(
    viewer: Client, editor: Client, stranger: Client, client: Client
) -> None:
    for name, url in PAGES.items():
        assert viewer.get(url).status_code == (403 if name in ADMINS_ONLY else 200), name
        assert editor.get(url).status_code == (403 if name in ADMINS_ONLY else 200), name
        assert client.get(url).status_code == 302
    for url in ("/config/providers/openai", "/config/providers/openai/delete"):
        assert stranger.get(url).status_code == 404
    assert b"openai" not in stranger.get("/config").content


@pytest.mark.usefixtures("registry")
def test_pages__of_a_record__contain_no_secret(admin: Client, viewer: Client) -> None:
    sealed = bytes(ConfigSecret.objects.get().ciphertext).hex()
    pages = [
        *PAGES.values(),
        "/state/config.providers/openai",
        "/state/config.providers/openai?tab=text",
        "/state/config.providers/openai?tab=history",
        "/entry/raw/config.providers/openai",
        "/state?namespace=config.providers",
        "/state.json?namespace=config.providers",
        "/go?q=config",
    ]
    for url in pages:
        for person in (admin, viewer):
            text = person.get(url).content.decode()
            assert SECRET not in text, url
            assert sealed not in text, url
    shown = admin.get("/config/providers/openai").content.decode()
    assert f"…{SECRET[-4:]}" in shown
    assert "models/big" in shown


def test_edit__secret__is_kept_replaced_and_cleared(registry: Person, admin: Client) -> None:
    text = '{"id": "openai", "adapter": "openai", "timeout_secs": 5}'
    assert save(admin, text, secret0="keep").status_code == 302
    assert secret_of(registry) == SECRET
    newer = {"secret0": "replace", "secret0_value": "another-long-secret"}
    assert save(admin, text, 2, **newer).status_code == 302
    assert secret_of(registry) == "another-long-secret"
    assert save(admin, text, 3, secret0="clear").status_code == 302
    assert secret_of(registry) is None


def test_edit__invalid_value__is_reported_and_the_secret_is_not_repeated(
    registry: Person, admin: Client
) -> None:
    newer = {"secret0": "replace", "secret0_value": "another-long-secret"}
    refused = save(admin, '{"adapter": 7}', **newer)
    assert refused.status_code == 422
    assert b"/adapter" in refused.content
    assert b"another-long-secret" not in refused.content
    assert save(admin, "{", **newer).status_code == 422
    assert save(admin, '{"adapter": "x"}', 7, **newer).status_code == 409
    assert secret_of(registry) == SECRET


@pytest.mark.usefixtures("registry")
def test_new__id__redirects_to_the_editor(alice: Person, admin: Client) -> None:
    assert admin.get("/config/agents/+new?id=a::b").status_code == 422
    led = admin.get("/config/agents/+new?id=planner")
    assert led["Location"] == "/config/agents/planner/edit"
    made = admin.post(led["Location"], {"value": '{"model_id": "big"}', "base": 0})
    assert made["Location"] == "/config/agents/planner"
    assert read_record(actor=alice.actor, kind=Kind.AGENTS, identity="planner").version == 1


def test_delete__record_with_references__lists_them_and_then_deletes(
    registry: Person, admin: Client
) -> None:
    asked = admin.get("/config/providers/openai/delete").content.decode()
    assert "models/big /provider_id" in asked
    admin.post("/config/providers/openai/delete", {"base": 1})
    assert secret_of(registry) == SECRET
    admin.post("/config/providers/openai/delete", {"base": 1, "force": "true"})
    with pytest.raises(NotFound):
        secret_of(registry)


@pytest.mark.usefixtures("registry")
def test_entry_pages__of_the_registry__refuse_to_write(admin: Client) -> None:
    posted = admin.post(
        "/entry/edit/config.providers/openai", {"value": '{"adapter": "x"}', "base": 1}
    )
    assert posted.status_code == 403
    assert admin.get("/namespaces").content.count(b"config.") == 0


def test_edit__concurrent_write__shows_three_versions_without_secrets(
    registry: Person, admin: Client
) -> None:
    save(admin, '{"adapter": "openai", "timeout_secs": 7}')
    page = save(
        admin, '{"adapter": "openai", "timeout_secs": 9}', 1, reason="slow"
    ).content.decode()
    assert "changed while you were editing" in page
    assert page.count("timeout_secs") > 3
    assert 'name="base" value="2"' in page
    assert 'value="slow"' in page
    assert "canary" not in page
    assert save(admin, '{"adapter": "openai", "timeout_secs": 9}', 2).status_code == 302


def test_check__record__returns_the_errors_of_saving_and_writes_nothing(
    registry: Person, admin: Client, editor: Client
) -> None:
    path = "/config/providers/openai/check"
    before = AuditRow.objects.count()
    told = admin.post(path, {"value": '{"adapter": 7}'}).json()
    assert [error["pointer"] for error in told["errors"]] == ["/adapter"]
    assert admin.post(path, {"value": '{"adapter": "openai"}'}).json()["message"] == ""
    dangling = {"value": '{"provider_id": "nobody", "upstream_model": "x"}'}
    told = admin.post("/config/models/new/check", dangling).json()
    assert [error["pointer"] for error in told["errors"]] == ["/provider_id"]
    assert editor.post(path, {"value": "{}"}).status_code == 403
    assert AuditRow.objects.count() == before


# The form ----------------------------------------------------------------------------------------

AGENT = {
    "model_id": "big",
    "system_prompt": "\nYou plan.\nTrips.",
    "backend": {"kind": "a2a", "version": 1, "config": {"url": "https://example.com", "n": 1.10}},
    "reasoning_effort": "high",
    "stop_conditions": ["done", {"kind": "rounds"}],
    "plugin_ids": ["a", "b"],
    "allowed_tools": [],
    "excluded_tools": None,
    "delegates": [],
    "sections": {"x": {"y": None}},
    "registry": "",
}
MODEL = (
    '{"provider_id": "openai", "upstream_model": "x", "context_window": null,'
    ' "modalities": {"output": ["image", "text"]}, "knowledge_cutoff": "2025-06",'
    ' "input_token_price_per_million_usd": 1.10}'
)


def stored(person: Person, kind: Kind, identity: str) -> Any:
    return values.load(read_record(actor=person.actor, kind=kind, identity=identity).value)


@pytest.fixture
def agent(registry: Person) -> Person:
    make_record(registry.actor, "agents", "planner", AGENT)
    return registry


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.usefixtures("registry")
def test_form__each_schema__has_a_field_for_every_member_but_id_and_secrets(
    kind: Kind, admin: Client
) -> None:
    form = form_of(admin, f"/config/{kind}/fresh/edit")
    names = {name.split("/")[1] for name in form.tags if name.startswith("answer/")}
    secret = {each.removeprefix("/") for each in SECRET_PLACES[kind]}
    assert names == SCHEMAS[kind]["properties"].keys() - {"id"} - secret
    assert all(text == [""] for name, text in form.sent.items() if name.startswith("answer/"))
    required = {name for name, tag in form.tags.items() if "required" in tag}
    assert required == {f"answer/{name}" for name in SCHEMAS[kind]["required"] if name != "id"}


@pytest.mark.usefixtures("agent")
def test_check__form__returns_the_json_without_secrets_and_the_errors(admin: Client) -> None:
    sent = form_of(admin, "/config/providers/openai/edit").sent
    path = "/config/providers/openai/check"
    told = admin.post(path, sent | {"answer/timeout_secs": ["7"]}).json()
    assert (told["message"], told["errors"]) == ("", [])
    assert values.load(told["value"])["timeout_secs"] == 7
    assert SECRET not in told["value"]
    told = admin.post(path, sent | {"answer/timeout_secs": ["0.5"]}).json()
    assert {error["pointer"] for error in told["errors"]} == {"/timeout_secs"}


@pytest.mark.usefixtures("agent")
def test_form__types_of_members__have_matching_fields(alice: Person, admin: Client) -> None:
    tags = form_of(admin, "/config/agents/planner/edit").tags
    assert tags["answer/backend/kind"]["tag"] == "select"
    assert tags["answer/plugin_ids"]["tag"] == "textarea"
    assert tags["answer/backend/config"]["spellcheck"] == "false"
    assert tags["answer/max_rounds"]["type"] == "number"
    assert tags["answer/max_rounds"]["placeholder"] == "16"
    make_record(alice.actor, "models", "seen", values.load(MODEL))
    model = form_of(admin, "/config/models/seen/edit")
    assert "maxlength" not in model.tags["answer/provider_id"]
    assert model.tags["answer/context_window"]["min"] == "1"
    assert model.tags["answer/modalities/input"]["type"] == "checkbox"
    assert model.sent["answer/modalities/output"] == ['"text"', '"image"']
    shown = admin.get("/config/models/seen/edit").content.decode()
    assert 'Context window <code class="muted">context_window</code>' in shown
    assert "<legend>Modalities</legend>" in shown
    assert "USD per million tokens." in shown
    assert "At most 128 characters." in shown


@pytest.mark.usefixtures("agent")
def test_form__saved_unchanged__changes_nothing(alice: Person, admin: Client) -> None:
    make_record(alice.actor, "models", "seen", values.load(MODEL))
    for kind, identity in (
        (Kind.AGENTS, "planner"),
        (Kind.MODELS, "seen"),
        ("providers", "openai"),
    ):
        before = read_record(actor=alice.actor, kind=Kind(kind), identity=identity)
        form = form_of(admin, f"/config/{kind}/{identity}/edit")
        assert admin.post(f"/config/{kind}/{identity}/edit", form.sent).status_code == 302
        after = read_record(actor=alice.actor, kind=Kind(kind), identity=identity)
        assert after.value == before.value


def test_form__one_field__changes_only_that(agent: Person, admin: Client) -> None:
    url = "/config/agents/planner/edit"
    sent = form_of(admin, url).sent
    changed = {"answer/max_rounds": "7", "answer/plugin_ids": "b\r\n\r\n c ", "reason": "less"}
    assert admin.post(url, sent | changed).status_code == 302
    assert stored(agent, Kind.AGENTS, "planner") == {
        "id": "planner", **AGENT, "max_rounds": 7, "plugin_ids": ["b", "c"],
    }  # fmt: skip
    emptied = {f"answer/{name}": "" for name in ("max_rounds", "sections", "allowed_tools")}
    emptied |= {f"answer/backend/{name}": "" for name in ("kind", "version", "config")}
    sent = form_of(admin, url).sent
    assert admin.post(url, sent | emptied).status_code == 302
    left = AGENT.keys() - {"sections", "allowed_tools", "backend"} | {"id"}
    assert stored(agent, Kind.AGENTS, "planner").keys() == left
    # neither is the same as an absent value, which means all tools
    for typed, means in (("[]", []), ("null", None)):
        admin.post(url, form_of(admin, url).sent | {"answer/allowed_tools": typed})
        assert stored(agent, Kind.AGENTS, "planner")["allowed_tools"] == means


def test_form__new_record__contains_the_filled_in_fields(registry: Person, admin: Client) -> None:
    url = "/config/models/fresh/edit"
    typed = {
        "answer/provider_id": "openai",
        "answer/upstream_model": "x",
        "answer/output_token_price_per_million_usd": "2.50",
        "answer/modalities/input": ['"text"', '"pdf"'],
    }
    assert admin.post(url, form_of(admin, url).sent | typed).status_code == 302
    made = read_record(actor=registry.actor, kind=Kind.MODELS, identity="fresh").value
    assert '"output_token_price_per_million_usd":2.50' in made
    assert values.load(made) == {
        "id": "fresh", "provider_id": "openai", "upstream_model": "x",
        "modalities": {"input": ["text", "pdf"]}, "output_token_price_per_million_usd": 2.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("model_id", "", "A value is required"),
        ("model_id", "nobody", "Models/nobody does not exist"),
        ("max_rounds", "many", "Must be a number"),
        ("max_rounds", "0", "less than the minimum"),
        ("backend/kind", "", "A value is required"),
        ("backend/kind", '"b2b"', "Must be one of the choices"),
        ("sections", '{"a": ', "line 1"),
        ("sections", "[]", "is not of type"),
        ("delegates", "planner\r\nnobody", "Agents/nobody does not exist"),
    ],
)
def test_form__mistake__is_reported_at_its_field_and_typed_text_is_kept(
    name: str, typed: str, said: str, agent: Person, admin: Client
) -> None:
    url = "/config/agents/planner/edit"
    sent = form_of(admin, url).sent | {f"answer/{name}": [typed], "answer/description": ["kept"]}
    refused = admin.post(url, sent | {"reason": "try"})
    shown = html.unescape(refused.content.decode())
    assert refused.status_code == 422
    error = shown.index('class="error"')
    assert shown.count('class="error"') == 1
    assert said in shown[error : error + 120]
    assert shown.rindex('name="answer', 0, error) == shown.rindex(f'name="answer/{name}"')
    again = Controls(refused.content.decode())
    if name != "backend/kind":
        assert again.sent[f"answer/{name}"] == [typed]
    assert again.sent["answer/description"] == ["kept"]
    assert again.sent["reason"] == ["try"]
    assert again.sent["base"] == ["1"]
    assert stored(agent, Kind.AGENTS, "planner") == {"id": "planner", **AGENT}


def test_form__secret__is_kept_and_replaced(registry: Person, admin: Client) -> None:
    url = "/config/providers/openai/edit"
    sent = form_of(admin, url).sent
    assert admin.post(url, sent | {"answer/timeout_secs": "9"}).status_code == 302
    assert secret_of(registry) == SECRET
    newer = {"secret0": "replace", "secret0_value": "short"}
    refused = admin.post(url, form_of(admin, url).sent | newer)
    assert refused.status_code == 422
    assert b"<code>/api_key</code>" in refused.content
    newer["secret0_value"] = "another-long-secret"
    assert admin.post(url, form_of(admin, url).sent | newer).status_code == 302
    assert secret_of(registry) == "another-long-secret"
    assert stored(registry, Kind.PROVIDERS, "openai")["timeout_secs"] == 9


def test_form__concurrent_write__changes_only_edited_fields(
    registry: Person, admin: Client
) -> None:
    url = "/config/providers/openai/edit"
    sent = form_of(admin, url).sent
    save(admin, '{"adapter": "openai", "timeout_secs": 7, "adapter_options": {"a": 1}}')
    page = admin.post(url, sent | {"answer/base_url": "https://example.com"})
    assert page.status_code == 409
    shown = html.unescape(page.content.decode())
    assert "No conflicts" in shown
    merged = Controls(page.content.decode()).sent
    assert "canary" not in shown
    assert admin.post(url, merged).status_code == 302
    now = stored(registry, Kind.PROVIDERS, "openai")
    assert (now["timeout_secs"], now["base_url"]) == (7, "https://example.com")
    assert now["adapter_options"] == {"a": 1}


def test_form__nothing_changed__writes_no_version(registry: Person, admin: Client) -> None:
    url = "/config/providers/openai/edit"
    for sent in (form_of(admin, url).sent, form_of(admin, f"{url}?as=json").sent):
        assert admin.post(url, sent).status_code == 302
        assert b"No changes" in admin.get("/config/providers/openai").content
    read = {"actor": registry.actor, "namespace": "config.providers", "key": "openai"}
    assert read_entry(**read).version == 1
    assert secret_of(registry) == SECRET
    again = form_of(admin, url).sent | {"secret0": "replace", "secret0_value": SECRET}
    assert admin.post(url, again).status_code == 302
    assert read_entry(**read).version == 2


@pytest.mark.usefixtures("registry")
def test_json__second_tab__edits_the_text(admin: Client) -> None:
    url = "/config/providers/openai/edit"
    form, text = admin.get(url).content.decode(), admin.get(f"{url}?as=json").content.decode()
    assert 'id="value"' not in form
    assert 'name="as" value="json"' in form
    assert 'name="answer' not in text
    assert values.load(Controls(text).sent["value"][0]) == {"id": "openai", "adapter": "openai"}
    refused = save(admin, '{"adapter": 7}').content.decode()
    assert 'name="value"' in refused


def test_history__old_version__is_restored_with_the_current_secret(
    registry: Person, admin: Client, editor: Client
) -> None:
    save(admin, '{"adapter": "other", "timeout_secs": 7}')
    past, restore = (
        "/state/config.providers/openai?version=1",
        "/entry/restore/config.providers/openai",
    )
    assert restore in admin.get(past).content.decode()
    assert restore not in editor.get(past).content.decode()
    assert admin.get(f"{restore}?version=1").status_code == 200
    asked = {"version": 1, "expected_version": 2}
    assert editor.post(restore, asked).status_code == 403
    assert admin.post(restore, asked).status_code == 302
    now = stored(registry, Kind.PROVIDERS, "openai")
    assert (now["adapter"], "timeout_secs" in now) == ("openai", False)
    assert secret_of(registry) == SECRET


def test_edit__base_was_removed__compares_two_sides_without_secrets(
    admin: Client, registry: Person
) -> None:
    record = {"adapter": "openai", "api_key": SECRET + "-2", "timeout_secs": 5}
    make_record(registry.actor, "providers", "openai", record)
    EntryRevision.objects.filter(entry__key="openai", version=1).delete()
    response = save(admin, '{"adapter": "openai", "timeout_secs": 9}', 1)
    page = response.content.decode()
    assert response.status_code == 409
    assert "Version 1 is no longer in the history" in page
    assert 'aria-label="The two versions"' in page
    assert '<td class="path">/timeout_secs</td>' in page
    assert "canary" not in page
    assert "$secret" not in page


@pytest.mark.usefixtures("registry")
def test_views__a_secret_in_the_json__is_not_stored_by_the_browser(admin: Client) -> None:
    assert " data-draft" in admin.get("/config/providers/openai/edit").content.decode()
    text = values.dump({"adapter": "openai", "api_key": SECRET})
    form = save(admin, text, **{"as": "form"}).content.decode()
    assert SECRET in Controls(form).sent["held"][0]
    assert " data-draft" not in form


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("", ["a", "b", "c"]),
        ("-id", ["c", "b", "a"]),
        ("changed", ["b", "c", "a"]),
        ("-changed", ["a", "c", "b"]),
    ],
)
def test_list__sorted__has_every_record_once_in_this_order(
    sort: str, ids: list[str], admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "MOST", 2)
    for name in "abc":
        make_record(alice.actor, "providers", name, {"adapter": "openai"})
    for days, name in enumerate("bca"):
        moment = Now() - timedelta(days=9 - days)
        Entry.objects.filter(key=name).update(updated_at=moment)
    url, found = f"/config/providers.json?sort={sort}", []
    while url:
        page = admin.get(url).json()
        found += [item["id"] for item in page["items"]]
        url = page["next"]
    assert found == ids
    shown = admin.get("/config/providers", {"sort": sort}).content.decode()
    assert re.findall(r'data-row href="[^"]*">(\w)</a>', shown) == ids[:2]
    assert shown.count("aria-sort=") == 1
