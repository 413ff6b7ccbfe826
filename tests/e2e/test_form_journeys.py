"""Where the focus is in a form, and what the rest of the page shows after it was sent."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import ApiToken
from state_admin.services.runs import RunChange, change_run
from tests.builders import Person, make_namespace, make_run, make_thread, put
from tests.web.stories import create_story

from .conftest import Errors


@pytest.mark.usefixtures("server")
def test_form__refused__has_the_focus_in_its_first_wrong_field(page: Page, errors: Errors) -> None:
    errors.expected.add(422)
    page.goto("/webhooks/+new")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("billing")
    page.get_by_label("URL").press_sequentially("https://example.com:9/hook")
    page.keyboard.press("Enter")
    expect(page.locator(".error")).to_have_text("The port must be 80, 443, or 1024 and above")
    expect(page.get_by_label("URL")).to_be_focused()


CONTACT = {
    "type": "object",
    "properties": {
        "level": {"enum": ["low", "high"]},
        "by": {"type": "array", "items": {"enum": ["mail", "phone"]}, "minItems": 1},
    },
    "required": ["level", "by"],
    "allOf": [{"properties": {"level": {"const": "high"}}}],  # which the form does not show
}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("wrong", ["low", "mail"])
def test_form__refused_group_of_buttons__has_the_focus(
    wrong: str, page: Page, errors: Errors, alice: Person
) -> None:
    """The checked radio button, which is where Tab leads, or the first checkbox."""
    errors.expected.add(422)
    make_namespace(alice.actor, "team", schema=CONTACT, default={"level": "high", "by": ["mail"]})
    put(alice.actor, "team", "global", {"level": "high", "by": ["mail"]})
    page.goto("/entry/edit/team/global?as=form")
    page.get_by_label(wrong).click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main .error")).to_have_count(1)
    expect(page.get_by_label(wrong)).to_be_focused()


@pytest.mark.usefixtures("server")
def test_token__created__is_counted_in_the_navigation_at_once(page: Page) -> None:
    page.goto("/tokens/+new")
    page.locator("#live").click()  # paused: nothing else requests the counts
    expect(page.locator("#live")).to_have_text("paused")
    tokens = page.locator('[data-go="a"] .count')
    before = int(tokens.inner_text())
    page.get_by_label("Name", exact=True).press_sequentially("nightly")
    page.keyboard.press("Enter")
    expect(page.locator(".card.created")).to_be_visible()
    expect(tokens).to_have_text(str(before + 1))


@pytest.mark.usefixtures("server")
def test_token__form_sent_twice__is_created_once_and_shown(page: Page) -> None:
    page.goto("/tokens/+new")
    page.get_by_label("Name", exact=True).fill("nightly")
    sent: list[Request] = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request))
    page.get_by_role("button", name="Create token").dblclick()
    expect(page.locator(".card.created")).to_be_visible()
    page.get_by_role("link", name="Overview").click()  # after whatever the form has sent
    expect(page).to_have_title(re.compile("Overview"))
    assert len(sent) == 1
    assert ApiToken.objects.filter(name="nightly").count() == 1


def test_fork__title__is_labelled(server: LiveServer, page: Page, alice: Person) -> None:
    create_story(alice.actor)
    page.goto("/threads/t1?tab=state&at=3")
    page.get_by_role("link", name="Fork…").click()
    dialog = page.get_by_role("dialog", name="Fork at revision 3?")
    dialog.get_by_text("Title of the new thread").click()
    expect(dialog.get_by_role("textbox", name="Title of the new thread")).to_be_focused()


def test_entry__restored_from_its_history__is_shown_from_its_top(
    server: LiveServer, page: Page, alice: Person
) -> None:
    """The new page has another list of versions, with fewer of them, far below the value."""
    make_namespace(alice.actor, "team")
    for number in range(30):
        put(alice.actor, "team", "global", {"steps": list(range(100)), "number": number})
    page.goto("/state/team/global?tab=history")
    page.locator("tr", has=page.locator("#v25")).get_by_text("Restore…").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore version 25").click()
    expect(page.locator("[data-toast]")).to_contain_text("Restored version 25 as 31")
    expect(page.locator("#main")).to_be_focused()
    expect(page.get_by_role("heading", name="global")).to_be_in_viewport()


def test_ticket__long_name_of_its_tool__is_shown_completely(
    server: LiveServer, page: Page, alice: Person
) -> None:
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    name = "mcp__customers__delete_records_permanently" * 2
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": name}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change_run(actor=alice.actor, run_id="r1", change=RunChange(status="waiting", waiting=waiting))
    page.set_viewport_size({"width": 360, "height": 800})
    for url in ("/ticket/k1", "/runs/r1", "/inbox"):
        page.goto(url)
        shown = page.locator("[data-ticket] h2 .mono, [data-ticket] h2.mono")
        expect(shown).to_have_text(name)
        assert shown.evaluate(
            "each => each.getBoundingClientRect().right <= each.closest('header').getBoundingClientRect().right"
        )


@pytest.mark.usefixtures("server")
def test_filter_menu__closed_in_a_field__returns_the_focus(page: Page) -> None:
    page.goto("/runs")
    button = page.get_by_role("button", name="Filter", exact=True)
    button.press("Enter")
    menu = page.locator("#filter-menu")
    expect(menu.get_by_label("Status")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()
