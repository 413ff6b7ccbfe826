"""The pages of namespaces: register, change with a preview of invalid entries, unregister and
undo."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from state_admin.domain.access import Role
from state_admin.models import Entry, EntryRevision, Namespace
from state_admin.services.namespaces import find_definition
from state_admin.services.storage import measure_storage
from state_admin.web import namespace_edit, namespace_list
from tests.builders import Person, make_namespace, make_person, put
from tests.services.racing import interleave


def fields(**changes: Any) -> dict[str, Any]:
    given = {"name": "team", "schema": '{"type": "object"}', "default": "{}", "reason": "why"}
    return given | changes


def test_register__valid__is_available_in_the_api(admin: Client, alice: Person) -> None:
    response = admin.post("/namespaces/+new", fields(ttl_seconds=60, description="Plans"))
    assert response["Location"] == "/namespaces/team"
    known = find_definition(alice.actor, "team", fresh=True)
    assert (known.schema, known.default, known.ttl_seconds) == ('{"type":"object"}', "{}", 60)
    page = admin.get("/namespaces/team").content.decode()
    assert "Registered team" in page
    assert "why" in page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": "{"}, "The schema is not valid JSON"),
        ({"schema": '{"type": "strange"}'}, "The schema is not valid"),
        ({"schema": '{\n"type": "strange"}'}, "line 2 <code>/type</code>"),
        (
            {"schema": '{"properties": {"a": {"type": "string"}}}', "default": '{\n"a": 1}'},
            "line 2 <code>/a</code>",
        ),
        ({"schema": '{"$ref": "http://169.254.169.254/"}'}, "nothing is fetched"),
        ({"default": "3"}, "The default does not satisfy the schema"),
        ({"default": "nope"}, "The default is not valid JSON"),
        ({"name": "no spaces"}, 'id="id_name_error">A name is 1 to 128 characters'),
        ({"name": ""}, "This field is required"),
        ({"ttl_seconds": "-1"}, "greater than or equal to 1"),
    ],
)
def test_register__invalid__states_the_reason_and_stores_nothing(
    changes: dict[str, str], said: str, admin: Client
) -> None:
    response = admin.post("/namespaces/+new", fields(**changes))
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Namespace.objects.open().exists()


@pytest.fixture
def numbers(alice: Person) -> None:
    make_namespace(alice.actor, "team", default={})
    put(alice.actor, "team", "fits", {"n": 1})
    put(alice.actor, "team", "breaks", {"n": "one"})


def texts_of(page: str, *tags: str) -> list[str]:
    found = re.findall(rf"<({'|'.join(tags)})>([^<]*)</", page)
    return [text for _, text in found]


STRICTER = '{\n  "properties": {"n": {"type": "integer"}}\n}'


@pytest.mark.usefixtures("numbers")
def test_edit__check__shows_entries_that_would_become_invalid_and_saves_nothing(
    admin: Client,
) -> None:
    response = admin.post("/namespaces/team/edit", fields(schema=STRICTER, base=1, check="yes"))
    page = response.content.decode()
    assert "1 entry does not match" in page
    assert "Changes of the schema" in page
    assert texts_of(page, "del", "ins") == ["integer"]
    assert re.findall(r'href="(/state/team/[^"]+)"', page) == ["/state/team/breaks"]
    assert Namespace.objects.open().get().schema_version == 1


LIVE = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "section#namespace-live"}


@pytest.mark.usefixtures("numbers")
def test_edit__input__is_checked_without_a_button_and_without_saving(admin: Client) -> None:
    def check(**changes: object) -> str:
        response = admin.post("/namespaces/team/edit", fields(**changes), headers=LIVE)
        assert response.status_code == 200
        part = response.content.decode()
        assert part.strip().startswith('<section class="stack" id="namespace-live"')
        assert "<form" not in part
        return part

    stricter = check(schema=STRICTER, base=1)
    assert "1 entry does not match this schema" in stricter
    assert "/state/team/breaks" in stricter
    assert "Save anyway" not in stricter
    assert "All stored entries match the schema" in check(base=1, description="other")
    assert "The schema is not valid JSON" in check(schema="{", base=1)
    assert "Largest value, in bytes: Enter a whole number." in check(base=1, max_value_bytes="many")
    assert "changed in the meantime" in check(base=7)
    assert Namespace.objects.open().get().schema_version == 1
    assert 'hx-trigger="input delay:600ms from:#namespace-form"' in (
        admin.get("/namespaces/team/edit").content.decode()
    )


@pytest.mark.usefixtures("numbers")
def test_edit__input_with_many_entries__a_part_is_checked_and_the_button_checks_all(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(alice.actor, "team", "cracks", {"n": "two"})
    for examined, invalid in ((1, 1), (2, 2)):
        monkeypatch.setattr(namespace_edit, "_EXAMINED", examined)
        sent = fields(schema=STRICTER, base=1)
        part = admin.post("/namespaces/team/edit", sent, headers=LIVE).content.decode()
        assert f"Among the first {examined} entries by key." in part
        assert re.search(rf"{invalid} (entry does|entries do) not match", part)
    whole = admin.post("/namespaces/team/edit", sent | {"check": "yes"}).content.decode()
    assert "2 entries do not match" in whole
    assert "Among the first" not in whole
    monkeypatch.setattr(namespace_edit, "_EXAMINED", 3)
    part = admin.post("/namespaces/team/edit", sent, headers=LIVE).content.decode()
    assert "Among the first" not in part


def test_detail__version_chosen__shows_what_it_changed(admin: Client, alice: Person) -> None:
    for version in range(1, 14):
        schema = {"properties": {"n": {"type": "integer", "maximum": version}}}
        make_namespace(alice.actor, "team", schema=schema, default={})
    newest = admin.get("/namespaces/team").content.decode()
    assert texts_of(newest, "del", "ins") == ["integer, maximum 12", "integer, maximum 13"]
    assert 'href="?version=13#change"' in newest
    for version in (12, 4, 2):  # 2 and 4 are not in the list of the newest versions
        old = admin.get("/namespaces/team", {"version": version}).content.decode()
        expected = [f"integer, maximum {each}" for each in (version - 1, version)]
        assert texts_of(old, "del", "ins") == expected
    for none in (1, 99, 2**40):
        assert (
            'id="change"' not in admin.get("/namespaces/team", {"version": none}).content.decode()
        )


@pytest.mark.usefixtures("numbers")
def test_edit__invalidates_entries__is_saved_only_if_accepted(admin: Client) -> None:
    first = admin.post("/namespaces/team/edit", fields(schema=STRICTER, base=1))
    assert b"Save anyway" in first.content
    assert Namespace.objects.open().get().schema_version == 1
    admin.post("/namespaces/team/edit", fields(schema=STRICTER, base=1, agreed="1 invalid"))
    assert Namespace.objects.open().get().schema_version == 2
    page = admin.get("/namespaces/team").content.decode()
    assert "Entries that do not match the schema" in page
    assert "/state/team/breaks" in page


@pytest.mark.parametrize("rule", ["last", "seconds"])
def test_edit__rule_that_removes_versions__is_saved_only_if_accepted(
    admin: Client, alice: Person, rule: str
) -> None:
    make_namespace(alice.actor, "team")
    for number in range(40):
        for _ in range(4):
            put(alice.actor, "team", f"k{number}", {})
    EntryRevision.objects.update(at=Now() - timedelta(days=1))
    sent = fields(base=1, **{f"history_keep_{rule}": 3 if rule == "last" else 60})
    removed = 40 if rule == "last" else 120
    for more in ({"check": "yes"}, {}, {"agreed": "keep 9 versions, all seconds"}):
        shown = admin.post("/namespaces/team/edit", sent | more).content.decode()
        assert f"{removed} old versions will be removed" in shown
        assert f"{removed} of 160 versions (" in shown
        assert Namespace.objects.get(name="team").history_keep_last is None
        assert Namespace.objects.get(name="team").history_keep_seconds is None
    agreed = re.findall(r'name="agreed" value="([^"]+)" data-kind="danger">([^<]+)<', shown)
    assert [button for _, button in agreed] == [f"Save and remove {removed} versions"]
    admin.post("/namespaces/team/edit", sent | {"agreed": agreed[0][0]})
    saved = Namespace.objects.get(name="team")
    assert (saved.history_keep_last, saved.history_keep_seconds) == (
        (3, None) if rule == "last" else (None, 60)
    )
    assert alice.api("GET", "/namespaces/team/compactions").json()["rows_removed"] == removed
    again = admin.post("/namespaces/team/edit", sent | {"description": "other", "base": 2})
    assert again.status_code == 302, "the rule is the same"


@pytest.mark.usefixtures("numbers")
def test_edit__changed_meanwhile__is_refused_and_the_text_is_kept(admin: Client) -> None:
    admin.post("/namespaces/team/edit", fields(base=1))
    response = admin.post(
        "/namespaces/team/edit", fields(schema=STRICTER, base=1, agreed="1 invalid")
    )
    assert response.status_code == 422
    assert b"this namespace was changed in the meantime" in response.content.lower()
    assert b"integer" in response.content


@pytest.mark.usefixtures("numbers")
def test_edit__same_meaning_other_spelling__changes_nothing(admin: Client) -> None:
    form = admin.get("/namespaces/team/edit").content.decode()
    assert "<textarea" in form
    admin.post("/namespaces/team/edit", fields(schema="{ }", default="{ }", base=1))
    assert Namespace.objects.open().get().schema_version == 1
    assert b"No changes" in admin.get("/namespaces/team").content


@pytest.mark.usefixtures("numbers")
def test_unregister__retain__keeps_entries_and_undo_registers_again(admin: Client) -> None:
    question = admin.get("/namespaces/team/unregister").content.decode()
    assert "It has 2 entries." in question
    admin.post("/namespaces/team/unregister", {"entries": "retain", "reason": "over"})
    assert Namespace.objects.open().get().unregistered_at
    page = admin.get("/namespaces/team").content.decode()
    assert 'action="/namespaces/team/reregister" data-undo' in page
    assert admin.get("/state.json?show=orphans").json()["items"][0]["registered"] is False
    admin.post("/namespaces/team/reregister")
    assert Namespace.objects.open().get().unregistered_at is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("numbers")
def test_unregister__undo_while_another_registers__keeps_what_the_other_registered(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.post("/namespaces/team/unregister", {"entries": "retain"})
    register = partial(make_namespace, alice.actor, "team", {"title": "theirs"}, {})
    with interleave(monkeypatch, namespace_edit, "register_namespace", register):
        admin.post("/namespaces/team/reregister")
    assert "theirs" in (Namespace.objects.open().get().schema or "")
    assert "Not undone" in admin.get("/namespaces/team").content.decode()


@pytest.mark.usefixtures("numbers")
def test_unregister__delete__deletes_and_offers_no_undo(admin: Client) -> None:
    admin.post("/namespaces/team/unregister", {"entries": "delete"})
    assert not Entry.objects.all().live().exists()
    assert b"data-undo>" not in admin.get("/namespaces/team").content.split(b"<template")[0]


@pytest.mark.usefixtures("numbers")
def test_unregister__no_choice_made__is_refused(admin: Client) -> None:
    response = admin.post("/namespaces/team/unregister", {})
    assert response.status_code == 409
    assert b"still holds 2 entries" in response.content


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("action", ["edit", "unregister", "reregister"])
def test_write__other_workspace__appears_absent(action: str, stranger: Client) -> None:
    assert stranger.post(f"/namespaces/team/{action}", fields(base=1)).status_code == 404


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("action", ["edit", "unregister", "reregister"])
def test_write__editor__is_refused(action: str, editor: Client) -> None:
    assert editor.post(f"/namespaces/team/{action}", fields(base=1)).status_code == 403


def test_list__many__is_paged_and_filtered(admin: Client, alice: Person) -> None:
    for number in range(55):
        make_namespace(alice.actor, f"n{number:02}")
    make_namespace(alice.actor, "other")
    first = admin.get("/namespaces.json").json()
    second = admin.get(first["next"]).json()
    names = [item["name"] for item in first["items"] + second["items"]]
    assert names == [*(f"n{number:02}" for number in range(55)), "other"]
    assert second["next"] is None
    filtered = admin.get("/namespaces.json?prefix=n5").json()
    assert [item["name"] for item in filtered["items"]] == ["n50", "n51", "n52", "n53", "n54"]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["a", "b", "c", "d", "e"]),
        ("-name", ["e", "d", "c", "b", "a"]),
        ("changed", ["b", "c", "d", "e", "a"]),
        ("-changed", ["a", "e", "d", "c", "b"]),
        ("unknown", ["a", "b", "c", "d", "e"]),
    ],
)
def test_list__sorted__has_every_namespace_once_in_this_order(
    sort: str, names: list[str], admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace_list, "PAGE", 2)
    for name in "abcde":
        make_namespace(alice.actor, name)
        Namespace.objects.filter(name=name).update(updated_at=Now() - timedelta(days=9))
    for days, name in enumerate("bcdea", start=1):
        Namespace.objects.filter(name=name).update(updated_at=Now() - timedelta(days=9 - days))
    url, found = f"/namespaces.json?sort={sort}", []
    while url:
        page = admin.get(url).json()
        found += [item["name"] for item in page["items"]]
        url = page["next"]
    assert found == names
    shown = admin.get("/namespaces", {"sort": sort}).content.decode()
    assert re.findall(r'data-row class="mono" href="/namespaces/(\w)"', shown) == names[:2]
    assert shown.count("aria-sort=") == 1


def test_list__cursor_without_a_time__is_400(admin: Client) -> None:
    assert admin.get("/namespaces?sort=changed&after=x~1").status_code == 400


def test_list__empty__shows_how_to_begin(admin: Client) -> None:
    page = admin.get("/namespaces").content.decode()
    assert "No namespaces yet" in page
    command = re.search(r"<code>(curl .*?)</code>", page, re.S)
    assert command
    body = re.search(r"-d &#x27;(.*?)&#x27;", command[1])
    assert body
    json.loads(body[1].replace("&quot;", '"'))


def test_namespaces__many_entries__show_the_last_measured_bytes(
    admin: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace_list, "_LISTED", 1)
    make_namespace(alice.actor, "team")
    put(alice.actor, "team", "a", "x" * 998)
    assert 'data-label="size">1.0 kB</td>' in admin.get("/namespaces").content.decode()
    put(alice.actor, "team", "b", "x" * 998)
    put(alice.actor, "team", "c", "x" * 998)
    assert 'data-label="size">2.0 kB+</td>' in admin.get("/namespaces").content.decode()
    measure_storage()
    shown = admin.get("/namespaces").content.decode()
    assert 'data-label="size">≈ 3.0 kB</td>' in shown
    assert 'data-label="writes in a day">3</td>' in shown


@pytest.mark.usefixtures("numbers")
def test_presence__another_admin__is_shown(admin: Client, editor: Client, alice: Person) -> None:
    frank = make_person("frank", "acme", Role.ADMIN).browser()
    beat = "/namespaces/team/presence"
    assert beat in admin.get("/namespaces/team/edit").content.decode()
    assert b"banner" not in admin.post(beat).content
    shown = frank.post(beat).content.decode()
    assert "alice</strong> has been editing this" in shown
    assert "is asked to open the form again" in shown
    assert editor.post(beat).status_code == 403
    assert admin.post("/namespaces/nothing/presence").status_code == 404
