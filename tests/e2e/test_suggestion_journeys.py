"""What the editor suggests from the schema of a namespace, in a real browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from state_admin.services.entry_views import read_entry
from tests.builders import Person, make_namespace

from .conftest import press
from .test_editing_journeys import editor, violations

RULES = {
    "$defs": {"state": {"title": "State", "enum": ["open", "closed"], "default": "open"}},
    "type": "object",
    "required": ["state"],
    "properties": {
        "state": {"$ref": "#/$defs/state"},
        "note": {"type": "string", "description": "What <b>people</b> read.", "maxLength": 9},
        "done": {"type": "boolean"},
        "parts": {"type": "array", "items": {"$ref": "#"}},
        "owner": {"anyOf": [{"properties": {"mail": {}}}, {"properties": {"team": {}}}]},
    },
    "additionalProperties": False,
}


@pytest.fixture
def ruled(page: Page, alice: Person) -> Page:
    make_namespace(alice.actor, "ruled", schema=RULES, default={"state": "open"})
    page.goto("/entry/edit/ruled/thread::t1")
    editor(page).click()
    page.keyboard.press("Control+a")
    return page


def options(page: Page) -> Locator:
    return page.locator(".cm-tooltip-autocomplete .cm-completionLabel")


def accept(page: Page, *keys: str) -> None:
    """Accept a suggestion. A new list ignores keys for 75 ms, so that it is not accepted by accident."""
    expect(options(page).first).to_be_visible()
    opened = page.evaluate("performance.now()")
    page.wait_for_function("opened => performance.now() > opened + 75", arg=opened)
    press(page, *keys or ("Enter",))
    expect(options(page)).to_have_count(0)


def test_editor__schema__completes_names_and_values(ruled: Page, alice: Person) -> None:
    keyboard = ruled.keyboard
    keyboard.type('{"')
    expect(options(ruled)).to_have_text(["state", "done", "note", "owner", "parts"])
    expect(ruled.locator(".cm-completionInfo")).to_contain_text('one of: "open", "closed"')
    assert violations(ruled) == []
    accept(ruled)
    expect(editor(ruled)).to_have_text('{"state": "open"')
    keyboard.type(', "par')
    expect(options(ruled)).to_have_text(["parts"])
    accept(ruled)
    expect(editor(ruled)).to_have_text('{"state": "open", "parts": []')
    keyboard.type('{"')  # the schema of the items is the whole one
    expect(options(ruled)).to_have_count(5)
    keyboard.type("st")
    expect(options(ruled)).to_have_text(["state"])
    accept(ruled)
    keyboard.press("ArrowLeft")
    keyboard.press("Control+Space")
    expect(options(ruled)).to_have_text(['"open"', '"closed"'])
    accept(ruled, "ArrowDown", "Enter")
    expect(editor(ruled)).to_have_text('{"state": "open", "parts": [{"state": "closed"}]')
    keyboard.press("End")
    keyboard.type("}")
    keyboard.press("Control+s")
    expect(ruled.locator("[data-toast]")).to_contain_text("Saved version 1")
    entry = read_entry(actor=alice.actor, namespace="ruled", key="thread::t1")
    assert json.loads(entry.value) == {"state": "open", "parts": [{"state": "closed"}]}


def test_editor__schema__completes_booleans_branches_and_names_with_values(ruled: Page) -> None:
    keyboard = ruled.keyboard
    keyboard.type('{"done": t')
    expect(options(ruled)).to_have_text(["true"])
    accept(ruled)
    keyboard.type(', "owner": {"')
    expect(options(ruled)).to_have_text(["mail", "team"])
    keyboard.press("Escape")  # closes the list, and does not leave
    expect(options(ruled)).to_have_count(0)
    expect(editor(ruled)).to_have_text('{"done": true, "owner": {""}')
    keyboard.press("Control+a")
    keyboard.type('{"nose": 1')
    for _ in range(5):
        keyboard.press("ArrowLeft")
    keyboard.press("Backspace")
    keyboard.press("Backspace")
    keyboard.press("Control+Space")
    expect(options(ruled)).to_have_text(["note"])
    accept(ruled)
    expect(editor(ruled)).to_have_text('{"note": 1')


def test_editor__parser_is_interrupted_at_each_key__completes_names(ruled: Page) -> None:
    """The editor parses for 20 ms after a key. Here that time is over with the first step."""
    ruled.evaluate(
        "() => { const now = Date.now; let more = 0; Date.now = () => now() + (more += 10); }"
    )
    ruled.keyboard.type('{"done": true, "owner": {"')
    expect(options(ruled)).to_have_text(["mail", "team"])


def test_editor__pointer_over_a_name__shows_what_the_schema_says(ruled: Page) -> None:
    ruled.keyboard.type('{"note": "x"')
    editor(ruled).get_by_text("note").hover()
    tip = ruled.locator(".cm-tooltip-hover")
    expect(tip).to_contain_text("What <b>people</b> read.")
    expect(tip).to_contain_text("maxLength: 9")


def test_editor__schema_without_properties__suggests_nothing(page: Page, alice: Person) -> None:
    make_namespace(alice.actor, "free", schema={}, default={})
    page.goto("/entry/edit/free/thread::t1")
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"a')
    page.keyboard.press("Control+Space")
    page.keyboard.type('": 1')
    expect(editor(page)).to_have_text('{"a": 1')
    expect(options(page)).to_have_count(0)
