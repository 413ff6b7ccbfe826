"""Editing an entry in the form made from the schema of its namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from state_admin.models import AuditRow
from state_admin.services.entry_views import EntryView, read_entry
from tests.builders import Person, make_namespace, put

from .controls import Controls, form_of

SCHEMA = {
    "$defs": {"money": {"type": "number", "minimum": 0, "description": "In euros."}},
    "type": "object",
    "minProperties": 1,
    "required": ["goal"],
    "properties": {
        "goal": {"type": "string"},
        "price": {"$ref": "#/$defs/money"},
        "state": {"enum": ["open", "closed"]},
        "owner": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}},
        "tree": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
VALUE = {"goal": "ship", "price": 1.5, "owner": {"name": "bob"}, "tree": {"a": 1}, "extra": [1]}
URL = "/entry/edit/orders/o1"
FORM = f"{URL}?as=form"


@pytest.fixture
def order(alice: Person) -> EntryView:
    make_namespace(alice.actor, "orders", schema=SCHEMA, default={"goal": ""})
    return put(alice.actor, "orders", "o1", VALUE)


def stored(alice: Person) -> Any:
    return json.loads(read_entry(actor=alice.actor, namespace="orders", key="o1").value)


@pytest.mark.usefixtures("order")
def test_form__fields__are_those_of_the_schema_with_the_value(admin: Client) -> None:
    page = admin.get(FORM).content.decode()
    controls = Controls(page)
    assert controls.sent["answer/goal"] == ["ship"]
    assert controls.sent["answer/price"] == ["1.5"]
    assert controls.tags["answer/price"]["min"] == "0"
    assert controls.sent["answer/owner/name"] == ["bob"]
    assert json.loads(controls.sent["answer/tree"][0]) == {"a": 1}
    assert "In euros." in page
    assert "The schema does not describe <code>extra</code>" in page


def test_form__saved__changes_only_the_edited_members(
    admin: Client, alice: Person, order: EntryView
) -> None:
    sent = form_of(admin, FORM).sent | {"answer/price": ["2.50"], "answer/state": ['"open"']}
    assert admin.post(URL, sent).status_code == 302
    assert stored(alice) == {**VALUE, "price": 2.5, "state": "open"}
    text = read_entry(actor=alice.actor, namespace="orders", key="o1").value
    assert '"price":2.50' in text
    assert order.version + 1 == json.loads(form_of(admin, FORM).sent["base"][0])


@pytest.mark.usefixtures("order")
def test_form__emptied_required_text__is_an_empty_text(admin: Client, alice: Person) -> None:
    sent = form_of(admin, FORM).sent | {"answer/goal": [""]}
    assert "required" not in form_of(admin, FORM).tags["answer/goal"]
    assert admin.post(URL, sent).status_code == 302
    assert stored(alice)["goal"] == ""


@pytest.mark.usefixtures("order")
def test_form__refused__shows_the_error_at_its_field(admin: Client, alice: Person) -> None:
    sent = form_of(admin, FORM).sent | {"answer/price": ["-1"], "tags": ["kept"]}
    refused = admin.post(URL, sent)
    page = refused.content.decode()
    assert refused.status_code == 422
    assert page.index('name="answer/price"') < page.index('class="error"')
    assert page.count('class="error"') == 1
    assert Controls(page).sent["answer/price"] == ["-1"]
    assert Controls(page).sent["tags"] == ["kept"]
    assert stored(alice) == VALUE


@pytest.mark.usefixtures("order")
def test_views__switched__keep_what_was_typed(admin: Client, alice: Person) -> None:
    typed = {**VALUE, "goal": "rest"}
    sent = form_of(admin, URL).sent | {"value": [json.dumps(typed)], "tags": ["vip"]}
    form = Controls(admin.post(URL, {**sent, "as": "form"}).content.decode())
    assert form.sent["answer/goal"] == ["rest"]
    assert form.sent["tags"] == ["vip"]
    edited = {**form.sent, "answer/price": [""], "as": "json"}
    switched = admin.post(URL, edited, headers={"HX-Request": "true", "HX-Target": "div#entry"})
    assert switched["HX-Replace-Url"] == URL
    text = Controls(switched.content.decode())
    expected = {name: each for name, each in typed.items() if name != "price"}
    assert json.loads(text.sent["value"][0]) == expected
    assert text.sent["tags"] == ["vip"]
    assert stored(alice) == VALUE


@pytest.mark.usefixtures("order")
def test_view__form_of_invalid_json__stays_and_says_why(admin: Client) -> None:
    sent = form_of(admin, URL).sent | {"value": ['{"goal": '], "as": ["form"]}
    refused = admin.post(URL, sent)
    assert refused.status_code == 422
    assert "not valid JSON" in refused.content.decode()
    assert Controls(refused.content.decode()).sent["value"] == ['{"goal": ']


@pytest.mark.usefixtures("order")
def test_form__entry_changed_meanwhile__merges(admin: Client, alice: Person) -> None:
    sent = form_of(admin, FORM).sent | {"answer/price": ["9"]}
    put(alice.actor, "orders", "o1", {**VALUE, "goal": "theirs"})
    conflict = admin.post(URL, sent)
    assert conflict.status_code == 409
    merged = Controls(conflict.content.decode()).sent["value"][0]
    assert json.loads(merged) == {**VALUE, "goal": "theirs", "price": 9}


@pytest.mark.parametrize(
    ("schema", "value"), [({"type": "object"}, {"a": 1}), ({"type": "array"}, [1]), ({}, 7)]
)
def test_form__no_fields__is_not_offered(
    schema: Any, value: Any, admin: Client, alice: Person
) -> None:
    make_namespace(alice.actor, "orders", schema=schema, default=value)
    put(alice.actor, "orders", "o1", value)
    page = admin.get(FORM).content.decode()
    assert 'value="form"' not in page
    assert json.loads(Controls(page).sent["value"][0]) == value
    assert admin.post(URL, {"value": json.dumps(value), "base": 1, "as": "form"}).status_code == 422


@pytest.mark.usefixtures("order")
def test_check__form__returns_the_json_and_the_errors_of_saving(
    admin: Client, viewer: Client, alice: Person
) -> None:
    path = "/entry/check/orders/o1"
    sent = form_of(admin, FORM).sent
    before = AuditRow.objects.count()
    told = admin.post(path, sent | {"answer/price": ["2.50"]}).json()
    assert (told["message"], told["errors"]) == ("", [])
    assert '"price": 2.50,' in told["value"]
    assert json.loads(told["value"]) == VALUE | {"price": 2.5}
    for typed, pointers in (
        ({"answer/price": ["-1"]}, ["/price"]),
        ({"answer/state": ['"lost"']}, ["/state"]),
        ({"answer/price": ["many"], "answer/tree": ["["]}, ["/price", "/tree"]),
    ):
        told = admin.post(path, sent | typed).json()
        assert "not" in told["message"]
        assert [error["pointer"] for error in told["errors"]] == pointers
        assert json.loads(told["value"])["extra"] == [1]
    assert admin.post(path, {"held": "{"}).json()["message"] == "The value is not valid JSON"
    assert "form" in admin.post(path, {"held": "[]"}).json()["message"]
    assert viewer.post(path, sent).status_code == 403
    assert AuditRow.objects.count() == before
    assert stored(alice) == VALUE


@pytest.mark.usefixtures("order")
def test_check__json_beside_the_form__returns_its_form_and_the_errors_of_saving(
    admin: Client,
) -> None:
    path, typed = "/entry/check/orders/o1", {"goal": "rest", "price": -1, "new": "x"}
    told = admin.post(path, {"value": json.dumps(typed), "beside": "yes", "base": 1}).json()
    assert [error["pointer"] for error in told["errors"]] == ["/price"]
    controls = Controls(f"<form data-guard>{told['form']}</form>")
    assert controls.sent["answer/goal"] == ["rest"]
    assert controls.sent["answer/price"] == ["-1"]
    assert json.loads(controls.sent["held"][0]) == typed
    assert "The schema does not describe <code>new</code>" in told["form"]
    for text in ("{", "[1]"):
        assert admin.post(path, {"value": text, "beside": "yes"}).json()["form"] == ""
    assert "form" not in admin.post(path, {"value": "{}"}).json()
