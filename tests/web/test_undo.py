"""Undo on pages other than those of entries: config, marks of revisions, roles, policies,
namespaces."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.domain.config import Kind
from state_admin.models import AuditRow, Membership, Namespace, Revision
from state_admin.services import policies
from state_admin.services.config import read_record
from state_admin.services.errors import NotFound
from state_admin.services.members import change_role
from state_admin.services.policies import read_policy
from state_admin.services.snapshots import mark_revision
from tests.builders import Person, make_namespace, make_person, make_record, make_thread, raw
from tests.web.stories import create_story
from tests.web.test_entry_edit import undo_fields

RECORD = "/config/providers/openai"
REFUSED = "Not undone"
SECRET = "canary-of-the-undo"


@pytest.fixture
def provider(alice: Person) -> Person:
    make_record(alice.actor, "providers", "openai", {"adapter": "openai", "api_key": SECRET})
    return alice


def record(person: Person, identity: str = "openai") -> dict[str, Any]:
    found = read_record(actor=person.actor, kind=Kind.PROVIDERS, identity=identity)
    return dict(values.load(found.value))


def save(client: Client, text: str, base: int = 1, **fields: Any) -> None:
    response = client.post(f"{RECORD}/edit", {"value": text, "base": base, **fields})
    assert response.status_code == 302


def offers_undo(client: Client, path: str) -> bool:
    page = client.get(path).content.decode()
    return "data-undo>" in re.sub("<template.*?</template>", "", page, flags=re.DOTALL)


def press_undo(client: Client, path: str) -> str:
    """Press the Undo that the page at `path` offers; returns the page that follows."""
    url, fields = undo_fields(client, path)
    response: Any = client.post(url, fields, follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


def test_config__saved__undo_restores_the_value_and_keeps_the_secret(
    provider: Person, admin: Client
) -> None:
    before = record(provider)
    save(admin, '{"adapter": "other"}')
    assert record(provider)["adapter"] == "other"
    assert "Undone" in press_undo(admin, RECORD)
    assert record(provider) == before
    assert AuditRow.objects.filter(reason="undo of version 2").exists()


@pytest.mark.parametrize("choice", ["replace", "clear"])
def test_config__secret_changed__offers_no_undo(
    choice: str, provider: Person, admin: Client
) -> None:
    save(admin, '{"adapter": "openai"}', secret0=choice, secret0_value="another-long-secret")
    assert not offers_undo(admin, RECORD)


def test_config__created__undo_deletes_it(provider: Person, admin: Client) -> None:
    admin.post("/config/providers/new/edit", {"value": '{"adapter": "x"}', "base": 0})
    assert "Undone" in press_undo(admin, "/config/providers/new")
    with pytest.raises(NotFound):
        record(provider, "new")


def test_config__created_and_referenced_since__undo_reports_it(
    provider: Person, admin: Client
) -> None:
    admin.post("/config/providers/new/edit", {"value": '{"adapter": "x"}', "base": 0})
    url, fields = undo_fields(admin, "/config/providers/new")
    make_record(provider.actor, "models", "m", {"provider_id": "new", "upstream_model": "u"})
    admin.post(url, fields)
    assert record(provider, "new")["adapter"] == "x"
    assert REFUSED in admin.get("/config").content.decode()


def test_config__saved_since__undo_refuses(provider: Person, admin: Client) -> None:
    save(admin, '{"adapter": "other"}')
    url, fields = undo_fields(admin, RECORD)
    make_record(provider.actor, "providers", "openai", {"adapter": "newest"})
    admin.post(url, fields)
    assert record(provider)["adapter"] == "newest"
    assert REFUSED in admin.get(RECORD).content.decode()


def test_config__restored__undo_restores_the_newer_value(provider: Person, admin: Client) -> None:
    save(admin, '{"adapter": "other"}')
    admin.get(RECORD)
    admin.post("/entry/restore/config.providers/openai", {"version": 1, "expected_version": 2})
    assert record(provider)["adapter"] == "openai"
    press_undo(admin, "/state/config.providers/openai")
    assert record(provider)["adapter"] == "other"


def test_config__undo_by_an_editor__is_refused(provider: Person, editor: Client) -> None:
    response = editor.post("/entry/undo/config.providers/openai", {"written": 1})
    assert response.status_code == 403
    assert record(provider)["adapter"] == "openai"


MARK = "/thread/mark/t1?at=3"
STATE = "/threads/t1?tab=state&at=3"


def marked() -> tuple[str, bool]:
    row = Revision.objects.get(thread__public_id="t1", number=3)
    return row.label, row.pinned


def test_mark__changed__undo_restores_label_and_pin(editor: Client, alice: Person) -> None:
    create_story(alice.actor)
    mark_revision(actor=alice.actor, thread_id="t1", revision=3, label="old", pinned=True)
    editor.post(MARK, {"label": "new"})
    assert marked() == ("new", False)
    press_undo(editor, STATE)
    assert marked() == ("old", True)
    assert not offers_undo(editor, STATE)
    editor.post(MARK, {"label": "old", "pinned": "on"})
    assert not offers_undo(editor, STATE), "nothing changed"


def test_mark__changed_since__undo_refuses(editor: Client, alice: Person) -> None:
    create_story(alice.actor)
    editor.post(MARK, {"label": "mine"})
    url, fields = undo_fields(editor, STATE)
    mark_revision(actor=alice.actor, thread_id="t1", revision=3, label="mine", pinned=True)
    editor.post(url, fields)
    assert marked() == ("mine", True)
    assert REFUSED in editor.get(STATE).content.decode()


def role_of(name: str) -> str:
    return Membership.objects.get(user__username=name).role


def member(name: str) -> int:
    return Membership.objects.get(user__username=name).pk


def test_member__role_changed__undo_restores_it(admin: Client, bob: Person) -> None:
    admin.post(f"/members/{member('bob')}/role", {"role": "editor"})
    press_undo(admin, "/members")
    assert role_of("bob") == "viewer"
    assert not offers_undo(admin, "/members")


def test_member__role_changed_since__undo_refuses(
    admin: Client, alice: Person, bob: Person
) -> None:
    admin.post(f"/members/{member('bob')}/role", {"role": "editor"})
    url, fields = undo_fields(admin, "/members")
    change_role(actor=alice.actor, member_id=member("bob"), role=Role.ADMIN)
    admin.post(url, fields)
    assert role_of("bob") == "admin"
    assert REFUSED in admin.get("/members").content.decode()


def test_member__own_role_given_up__offers_no_undo(admin: Client, alice: Person) -> None:
    make_person("ada", "acme", Role.ADMIN)
    admin.post(f"/members/{member('alice')}/role", {"role": "viewer"})
    assert role_of("alice") == "viewer"
    assert not offers_undo(admin, "/")


def policy_body(person: Person, scope: Any, name: str = "") -> Any:
    return values.load(read_policy(actor=person.actor, scope=scope, name=name).body)


def set_policy(person: Person, scope: Any, name: str = "", **body: Any) -> None:
    policies.put_policy(actor=person.actor, scope=scope, name=name, body=raw(body))


@pytest.mark.parametrize(
    ("scope", "name", "shown"),
    [
        ("workspace", "", "/policies"),
        ("agent", "a b", "/policies"),
        ("thread", "t1", "/threads/t1"),
    ],
)
def test_policy__saved__undo_restores_the_previous_policy(
    scope: str, name: str, shown: str, admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    version = 0 if scope != "thread" else ""
    for before in ({}, {"min_gain_tokens": 7, "prompt": 'say "<b>"'}):
        if before:
            set_policy(alice, scope, name, **before)
            version = 3 if scope != "thread" else ""
        url = f"/policy?scope={scope}&name={name}"
        admin.post(url, {"min_gain_tokens": "2", "version": str(version)})
        assert policy_body(alice, scope, name) == {"min_gain_tokens": 2}
        assert "Undone" in press_undo(admin, shown)
        assert policy_body(alice, scope, name) == before


@pytest.mark.parametrize(("scope", "name"), [("workspace", ""), ("thread", "t1")])
def test_policy__changed_since__undo_refuses(
    scope: str, name: str, admin: Client, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    admin.post(f"/policy?scope={scope}&name={name}", {"min_gain_tokens": "2"})
    url, fields = undo_fields(admin, "/policies")
    set_policy(alice, scope, name, min_gain_tokens=3)
    admin.post(url, fields)
    assert policy_body(alice, scope, name) == {"min_gain_tokens": 3}
    assert REFUSED in admin.get("/policies").content.decode()


def test_policy__too_large_for_an_undo__offers_none(admin: Client, alice: Person) -> None:
    set_policy(alice, "workspace", prompt="x" * 3_000)
    admin.post("/policy", {"min_gain_tokens": "2", "version": "1"})
    assert policy_body(alice, "workspace") == {"min_gain_tokens": 2}
    assert not offers_undo(admin, "/policies")


@pytest.mark.parametrize(
    "fields", [{}, {"before": "{"}, {"before": "{}"}, {"before": "{}", "version": "²"}]
)
def test_policy__malformed_undo__is_refused(
    fields: dict[str, str], admin: Client, alice: Person
) -> None:
    set_policy(alice, "workspace", min_gain_tokens=1)
    assert admin.post("/policy/undo", fields).status_code == 400
    assert policy_body(alice, "workspace") == {"min_gain_tokens": 1}


def test_policy__undo_by_other_roles__is_refused(editor: Client, stranger: Client) -> None:
    fields = {"before": "{}", "version": "0", "written": "{}"}
    assert editor.post("/policy/undo", fields).status_code == 403
    assert stranger.post("/policy/undo?scope=thread&name=t1", fields).status_code == 404


NOTES = "/namespaces/notes"


@pytest.fixture
def notes(alice: Person) -> None:
    make_namespace(
        alice.actor,
        "notes",
        schema={"type": "object"},
        default={"a": 1},
        description="Of the team",
        ttl_seconds=60,
        history_keep_last=5,
    )


def edit_notes(client: Client, base: int = 1) -> None:
    fields = {"schema": "{}", "default": "3", "base": base, "max_value_bytes": 99}
    assert client.post(f"{NOTES}/edit", fields).status_code == 302


def content() -> dict[str, Any]:
    names = ("schema", "default", "description", "max_value_bytes", "ttl_seconds")
    row = Namespace.objects.get(name="notes")
    return {name: getattr(row, name) for name in (*names, "history_keep_last")}


@pytest.mark.usefixtures("notes")
def test_namespace__edited__undo_restores_the_registration(admin: Client) -> None:
    before = content()
    edit_notes(admin)
    assert content() != before
    assert "Undone" in press_undo(admin, NOTES)
    assert content() == before
    assert Namespace.objects.get(name="notes").schema_version == 3


@pytest.mark.usefixtures("notes")
def test_namespace__edited_since__undo_refuses(admin: Client, alice: Person) -> None:
    edit_notes(admin)
    url, fields = undo_fields(admin, NOTES)
    make_namespace(alice.actor, "notes", description="newest")
    admin.post(url, fields)
    assert content()["description"] == "newest"
    assert REFUSED in admin.get(NOTES).content.decode()


@pytest.mark.usefixtures("notes")
def test_namespace__only_the_rule_for_histories_changed_since__undo_refuses(admin: Client) -> None:
    form = admin.get(f"{NOTES}/edit").context["form"].initial
    sent = {name: value for name, value in form.items() if value is not None}
    assert admin.post(f"{NOTES}/edit", sent | {"description": "newer"}).status_code == 302
    url, undo = undo_fields(admin, NOTES)
    form = admin.get(f"{NOTES}/edit").context["form"].initial
    sent = {name: value for name, value in form.items() if value is not None}
    admin.post(f"{NOTES}/edit", sent | {"history_keep_last": ""})
    admin.post(url, undo)
    assert (content()["description"], content()["history_keep_last"]) == ("newer", None)
    assert REFUSED in admin.get(NOTES).content.decode()
    stale = admin.post(f"{NOTES}/edit", sent | {"description": "stale"})
    assert stale.status_code == 422
    assert "changed in the meantime" in stale.content.decode()
    assert (content()["description"], content()["history_keep_last"]) == ("newer", None)


@pytest.mark.parametrize(
    "changes",
    [{"before": "9"}, {"written": "²"}, {"rest": "{"}, {"rest": '{"ttl_seconds": -1}'}],
)
@pytest.mark.usefixtures("notes")
def test_namespace__malformed_undo__is_refused(changes: dict[str, str], admin: Client) -> None:
    edit_notes(admin)
    url, fields = undo_fields(admin, NOTES)
    assert admin.post(url, fields | changes).status_code == 400
    assert Namespace.objects.get(name="notes").schema_version == 2


@pytest.mark.usefixtures("notes")
def test_namespace__undo_by_other_roles__is_refused(editor: Client, stranger: Client) -> None:
    fields = {"written": "1", "before": "1", "rest": "{}"}
    assert editor.post(f"{NOTES}/undo", fields).status_code == 403
    assert stranger.post(f"{NOTES}/undo", fields).status_code == 404
