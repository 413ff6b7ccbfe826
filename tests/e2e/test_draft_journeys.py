"""Editing with confidence in a real browser: the form beside the JSON, drafts, and the comparison
with the stored text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.services.entry_views import read_entry
from tests.builders import Person, make_namespace, make_record, put

from .conftest import Errors, press, take_held

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["goal"],
    "properties": {
        "goal": {"type": "string", "maxLength": 40},
        "price": {"type": "number", "minimum": 0},
        "state": {"enum": ["open", "closed"]},
    },
}
VALUE = {"goal": "ship", "price": 1, "state": "open"}
URL = "/entry/edit/orders/o1"


@pytest.fixture(autouse=True)
def order(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "orders", schema=SCHEMA, default={"goal": ""})
    put(alice.actor, "orders", "o1", VALUE)


def value(alice: Person) -> object:
    return json.loads(read_entry(actor=alice.actor, namespace="orders", key="o1").value)


def editor(page: Page) -> Locator:
    return page.locator(".cm-content")


def restored(page: Page) -> Locator:
    return page.get_by_role("status").filter(has_text="Your unsaved input was restored")


def stored_draft(page: Page, text: str) -> None:
    """Wait until the draft in the tab contains a text."""
    page.wait_for_function(
        "text => Object.values(sessionStorage).some((each) => each.includes(text))", arg=text
    )


def leave(page: Page, url: str) -> None:
    """Open another page and accept that the browser asks about unsaved input."""
    page.once("dialog", lambda dialog: dialog.accept())
    page.goto(url)


def violations(page: Page) -> list[str]:
    return [each["id"] for each in Axe().run(page).response["violations"]]


def test_form__keyboard_only__edits_and_saves(page: Page, alice: Person) -> None:
    page.goto(URL)
    expect(editor(page)).to_be_focused()
    press(page, "Control+End", "Control+Home")
    page.get_by_role("button", name="Form", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("as=form"))
    price = page.get_by_label("Price")
    price.press("Control+a")
    page.keyboard.type("2.5")
    assert violations(page) == []
    price.press("Enter")  # saves, and does not switch to JSON
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == VALUE | {"price": 2.5}


@pytest.mark.parametrize("size", [(1440, 900), (360, 800)], ids=["wide", "narrow"])
def test_form__typed__shows_its_json_and_whether_it_is_valid(
    size: tuple[int, int], page: Page, alice: Person
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{URL}?as=form")
    shown = page.get_by_label("The value as JSON")
    says = page.locator("[data-preview] [data-check-says]")
    expect(shown).to_contain_text('"price": 1,')
    expect(shown).to_have_role("textbox")  # the editor is there, and follows the form
    expect(says).to_be_empty()
    page.get_by_label("Price").fill("2.50")
    expect(shown).to_contain_text('"price": 2.50,')
    expect(says).to_have_text("Valid: matches the schema.")
    page.get_by_label("Price").fill("-1")
    expect(says).to_contain_text("/price")
    page.get_by_role("combobox", name="State").select_option("")
    expect(shown).not_to_contain_text("state")
    stored_draft(page, "-1")
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(restored(page)).to_be_visible()
    expect(shown).to_contain_text('"price": -1')
    expect(says).to_contain_text("/price")
    assert violations(page) == []
    assert value(alice) == VALUE


def test_form__typed_before_the_editor_is_loaded__is_in_its_json(page: Page) -> None:
    held: list[Route] = []
    page.route("**/codemirror*", lambda route: held.append(route))
    page.goto(f"{URL}?as=form")
    price = page.get_by_label("Price")
    price.fill("2.50")
    editor_file = take_held(page, held)
    expect(page.get_by_label("The value as JSON")).to_contain_text('"price": 1,')
    editor_file.continue_()
    text = page.get_by_role("textbox", name="The value as JSON")
    expect(text).to_contain_text('"price": 2.50,')
    expect(price).to_have_value("2.50")


def test_json_beside_form__typed__is_in_the_form_and_saved(page: Page, alice: Person) -> None:
    page.goto(f"{URL}?as=form")
    text = page.get_by_role("textbox", name="The value as JSON")
    text.fill('{"goal": "rest", "price": -3, "note": "x"}')
    expect(page.get_by_label("Goal")).to_have_value("rest")
    expect(page.get_by_label("Price")).to_have_value("-3")
    expect(page.get_by_role("combobox", name="State")).to_have_value("")
    expect(page.get_by_text("The schema does not describe note")).to_be_visible()
    expect(page.locator("[data-preview] [data-check-says]")).to_contain_text("/price")
    assert violations(page) == []
    page.get_by_label("Price").fill("4")
    expect(text).to_contain_text('"price": 4')
    expect(text).to_contain_text('"note": "x"')
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == {"goal": "rest", "price": 4, "note": "x"}


def test_json_beside_form__saved_at_once__is_what_was_typed_last(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(422)
    page.goto(f"{URL}?as=form")
    text = page.get_by_role("textbox", name="The value as JSON")
    text.fill('{"goal": "rest"')
    text.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="not valid JSON")).to_be_visible()
    expect(editor(page)).to_contain_text('{"goal": "rest"')
    editor(page).fill('{"goal": "rest"}')
    page.get_by_role("button", name="Form", exact=True).click()
    text.fill('{"goal": "sleep"}')
    text.press("Control+Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == {"goal": "sleep"}


def test_json_beside_form__invalid__is_kept_until_the_form_is_typed(
    page: Page, alice: Person
) -> None:
    page.goto(f"{URL}?as=form")
    text = page.get_by_role("textbox", name="The value as JSON")
    text.fill('{"goal": "rest"')
    expect(page.locator("[data-preview] [data-check-says]")).to_contain_text("not valid JSON")
    expect(page.get_by_label("Goal")).to_have_value("ship")
    stored_draft(page, "rest")
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(text).to_contain_text('{"goal": "rest"')
    page.get_by_label("Price").fill("2")
    expect(text).to_contain_text('"goal": "ship"')
    page.get_by_label("Price").press("Enter")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == VALUE | {"price": 2}


def test_json_beside_form__of_a_config_record__keeps_its_secret(page: Page, alice: Person) -> None:
    make_record(alice.actor, "providers", "p1", {"adapter": "openai", "api_key": "sk-secret"})
    page.goto("/config/providers/p1/edit")
    text = page.get_by_role("textbox", name="The value as JSON")
    text.fill('{"adapter": "anthropic"}')
    expect(page.get_by_role("textbox", name="Adapter adapter")).to_have_value("anthropic")
    expect(text).not_to_contain_text("secret")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")


def test_views__switched__keep_unsaved_input(page: Page, alice: Person, errors: Errors) -> None:
    errors.expected.add(422)
    page.goto(URL)
    editor(page).fill('{"goal": "rest", "price": 3}')
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Goal")).to_have_value("rest")
    page.get_by_role("combobox", name="State").select_option("closed")
    page.get_by_role("button", name="JSON", exact=True).click()
    expect(page.get_by_label("Goal")).to_have_count(0)  # the form shows this text as well
    expect(editor(page)).to_contain_text('"state": "closed"')
    editor(page).fill("{")
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="not valid JSON")).to_be_visible()
    assert value(alice) == VALUE


@pytest.mark.browser_context_args(java_script_enabled=False)
def test_form__without_javascript__switches_and_saves(alice: Person, page: Page) -> None:
    page.goto(URL)
    page.fill("#value", '{"goal": "rest", "price": 3}')
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Goal")).to_have_value("rest")
    page.get_by_label("Price").fill("4")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="o1")).to_be_visible()
    assert value(alice) == {"goal": "rest", "price": 4}


def test_draft__page_loaded_again__is_back_until_it_is_saved(page: Page, alice: Person) -> None:
    page.goto(URL)
    editor(page).fill('{"goal": "mine"}')
    page.get_by_label("Reason").fill("because")
    stored_draft(page, "because")
    leave(page, "/state")
    page.goto(URL)
    expect(restored(page)).to_be_visible()
    expect(editor(page)).to_have_text('{"goal": "mine"}')
    expect(page.get_by_label("Reason")).to_have_value("because")
    assert violations(page) == []
    press(page, "Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == {"goal": "mine"}
    page.goto(URL)
    expect(editor(page)).to_be_visible()
    expect(restored(page)).to_have_count(0)


def test_draft__of_the_form__is_back_in_the_form(page: Page) -> None:
    page.goto(f"{URL}?as=form")
    page.get_by_label("Goal").fill("mine")
    stored_draft(page, "mine")
    leave(page, URL)
    expect(restored(page)).to_be_visible()
    expect(page.get_by_label("Goal")).to_have_value("mine")


def test_draft__of_an_older_form__is_offered(page: Page, alice: Person) -> None:
    def change_form(*names: str) -> None:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        make_namespace(alice.actor, "orders", schema=schema, default={})

    def offer() -> Locator:
        return page.get_by_role("status").filter(
            has_text="The form has changed since your draft was saved"
        )

    page.goto(f"{URL}?as=form")
    page.get_by_label("Goal").fill("sail")
    page.get_by_label("Price").fill("77.5")
    page.fill("#reason", "half done")
    stored_draft(page, "half done")
    change_form("goal", "note")
    leave(page, URL)
    expect(offer()).to_contain_text("77.5")
    expect(page.get_by_label("Goal")).to_have_value("ship")
    assert violations(page) == []
    page.get_by_label("Note").fill("new")  # the offer stays, also after another visit
    leave(page, URL)
    offer().get_by_role("button", name="Restore").click()
    expect(restored(page)).to_be_visible()
    expect(page.get_by_label("Goal")).to_have_value("sail")
    expect(page.locator("#reason")).to_have_value("half done")
    expect(offer()).to_have_count(0)
    change_form("goal", "other")
    leave(page, URL)
    offer().get_by_role("button", name="Discard").click()
    expect(page.get_by_label("Goal")).to_have_value("ship")
    page.reload()
    expect(offer()).to_have_count(0)
    expect(restored(page)).to_have_count(0)


def test_draft__with_an_option_that_the_schema_lost__is_offered(page: Page, alice: Person) -> None:
    page.goto(f"{URL}?as=form")
    page.get_by_label("Goal").fill("sail")
    page.get_by_role("combobox", name="State").select_option("closed")
    stored_draft(page, "closed")
    properties = SCHEMA["properties"] | {"state": {"enum": ["open", "done"]}}
    make_namespace(alice.actor, "orders", schema=SCHEMA | {"properties": properties}, default=VALUE)
    leave(page, URL)
    offer = page.get_by_role("status").filter(has_text="no longer has fields for these values")
    expect(offer).to_contain_text("closed")
    offer.get_by_role("button", name="Restore").click()
    expect(restored(page)).to_be_visible()
    press(page, "Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 2")
    assert value(alice) == VALUE | {"goal": "sail"}


def test_draft__key_in_the_query_string__is_of_its_entry_only(page: Page, alice: Person) -> None:
    for key in (".", ".."):
        put(alice.actor, "orders", key, VALUE)
    page.goto("/entry/edit/orders/?key=.&as=form")
    page.get_by_label("Goal").fill("go home")
    stored_draft(page, "go home")
    leave(page, "/entry/edit/orders/?key=..&as=form")
    expect(page.get_by_label("Goal")).to_have_value("ship")
    expect(restored(page)).to_have_count(0)
    page.goto("/entry/edit/orders/?key=.")
    expect(restored(page)).to_be_visible()
    expect(page.get_by_label("Goal")).to_have_value("go home")


def test_draft__discarded__is_gone(page: Page) -> None:
    page.goto(URL)
    editor(page).fill('{"goal": "mine"}')
    stored_draft(page, "mine")
    leave(page, URL)
    page.get_by_role("button", name="Discard", exact=True).click()
    expect(editor(page)).to_contain_text('"goal": "ship"')
    expect(restored(page)).to_have_count(0)
    editor(page).fill('{"goal": "mine"}')
    stored_draft(page, "mine")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile("/state/orders"))
    assert page.evaluate("sessionStorage.length") == 0


def test_draft__entry_changed_meanwhile__merges(page: Page, alice: Person, errors: Errors) -> None:
    errors.expected.add(409)
    page.goto(URL)
    editor(page).fill(json.dumps(VALUE | {"goal": "mine"}))
    stored_draft(page, "mine")
    leave(page, "/state")
    put(alice.actor, "orders", "o1", VALUE | {"price": 7})
    page.goto(URL)
    expect(restored(page)).to_be_visible()
    press(page, "Control+s")
    expect(page.locator("main")).to_contain_text("No conflicts")
    page.get_by_role("button", name="Save merged").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3")
    assert value(alice) == VALUE | {"goal": "mine", "price": 7}
    assert page.evaluate("sessionStorage.length") == 0


def test_draft__saved_at_once_with_a_conflict__is_back_after_a_reload(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(409)
    page.goto(f"{URL}?as=form")
    put(alice.actor, "orders", "o1", VALUE | {"goal": "theirs"})
    page.get_by_label("Goal").fill("mine")
    page.get_by_label("Goal").press("Enter")
    expect(page.locator("main")).to_contain_text("theirs")
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(restored(page)).to_be_visible()
    expect(page.get_by_label("Goal")).to_have_value("mine")


def test_draft__session_ended__is_back_after_the_login(
    page: Page, alice: Person, errors: Errors
) -> None:
    errors.expected.add(401)  # the change stream, if it reconnects
    page.goto(URL)
    editor(page).fill('{"goal": "mine"}')
    stored_draft(page, "mine")
    session = page.context.cookies()
    page.context.clear_cookies(name="commonhold_session")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/login"))
    page.context.add_cookies(session)
    page.goto(URL)
    expect(restored(page)).to_be_visible()
    expect(editor(page)).to_have_text('{"goal": "mine"}')


def test_draft__secret__is_not_stored(page: Page, alice: Person) -> None:
    make_record(alice.actor, "providers", "main", {"adapter": "openai"})
    page.goto("/config/providers/main/edit")
    page.get_by_label("Set it to:").first.check()
    page.get_by_label("New secret").first.fill("canary-91")
    page.locator('[name="answer/adapter"]').fill("anthropic")
    stored_draft(page, "anthropic")
    assert "canary" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_editor__changes__are_shown_and_reverted(page: Page, alice: Person) -> None:
    page.goto(URL)
    editor(page).fill('{"goal":"ship","price":1.50,"state":"open"}')
    press(page, "Shift+Alt+F")
    expect(editor(page)).to_contain_text('"price": 1.50')
    toggle = page.get_by_role("button", name="Show changes")
    expect(toggle).to_have_attribute("aria-pressed", "false")
    press(page, "Shift+Alt+D")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".cm-deletedChunk")).to_contain_text('"price": 1,')
    assert violations(page) == []
    page.get_by_role("button", name="Revert").press("Enter")
    expect(page.locator(".cm-deletedChunk")).to_have_count(0)
    expect(page.locator("textarea#value")).to_have_value(json.dumps(VALUE, indent=2))
    press(page, "Control+s")
    expect(page.locator("[data-toast]")).to_contain_text("No changes")


def test_editor__format__keeps_numbers_and_refuses_invalid_text(page: Page) -> None:
    page.goto(URL)
    text = '{"a":1e400,"b":[1,2.0],"c":[{"d":[]}],"e":{},"f":"[1, {"}'
    editor(page).fill(text)
    page.get_by_role("button", name="Format").click()
    expected = (
        '{\n  "a": 1e400,\n  "b": [1, 2.0],\n  "c": [\n    {\n      "d": []\n    }\n  ],\n'
        '  "e": {},\n  "f": "[1, {"\n}'
    )
    expect(page.locator("textarea#value")).to_have_value(expected)
    editor(page).fill("{")
    page.get_by_role("button", name="Format").click()
    expect(page.locator("[data-check-says]")).to_contain_text("ot")
    expect(page.locator("textarea#value")).to_have_value("{")
