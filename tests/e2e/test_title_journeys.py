"""The title of the window, which names the page and the workspace, also after swaps by htmx."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import Thread
from tests.builders import Person, make_namespace, put
from tests.web.stories import create_story

from .conftest import Errors


@pytest.fixture
def team(server: LiveServer, alice: Person) -> None:
    make_namespace(alice.actor, "team", default={"goal": ""})
    put(alice.actor, "team", "global", {"goal": "ship"})


def expect_title(page: Page, title: str) -> None:
    """After the swap, and still after a reload."""
    expect(page).to_have_title(title)
    page.reload()
    expect(page).to_have_title(title)


@pytest.mark.parametrize(
    ("address", "fields", "button", "title"),
    [
        ("/tokens/+new", {"Name": "nightly"}, "Create token", "Tokens"),
        (
            "/webhooks/+new",
            {"Name": "billing", "URL": "https://example.com/hook"},
            "Create webhook",
            "Webhooks",
        ),
        ("/members/+new", {"Name": "carol"}, "Add member", "Members"),
    ],
)
@pytest.mark.usefixtures("server")
def test_title__after_creating__is_that_of_the_list(
    address: str, fields: dict[str, str], button: str, title: str, page: Page
) -> None:
    page.goto(address)
    for label, text in fields.items():
        page.get_by_label(label, exact=True).press_sequentially(text)
    page.get_by_role("button", name=button).click()
    expect(page.locator(".card.created")).to_be_visible()
    expect_title(page, f"{title} · acme")


@pytest.mark.usefixtures("team")
def test_title__edited_entry__is_that_of_each_step(
    page: Page, errors: Errors, alice: Person
) -> None:
    errors.expected.add(409)
    page.goto("/entry/edit/team/global?as=json")
    expect(page).to_have_title("Edit global · acme")
    put(alice.actor, "team", "global", {"goal": "theirs"})
    page.locator(".cm-content").fill('{"goal": "mine"}')
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_title("Conflict · global · acme")
    page.get_by_role("radio", name="Keep mine").check()
    page.get_by_role("button", name="Save merged").click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved version 3")
    expect_title(page, "global · team · acme")


def test_title__forked_thread__is_that_of_the_fork(page: Page, alice: Person) -> None:
    create_story(alice.actor)
    Thread.objects.update(title="One way")
    page.goto("/threads/t1?tab=state&at=3")
    page.get_by_role("link", name="Fork…").click()
    dialog = page.get_by_role("dialog", name="Fork at revision 3?")
    dialog.get_by_label("Title of the new thread").fill("Another way")
    dialog.get_by_role("button", name="Fork").click()
    expect_title(page, "Another way · acme")


@pytest.mark.usefixtures("team")
def test_state_browser__namespace_chosen__is_in_the_title_and_the_form_of_a_new_entry(
    page: Page,
) -> None:
    page.goto("/state")
    tree = page.get_by_role("navigation", name="Namespaces and scopes")
    tree.get_by_role("link", name="team").click()
    expect_title(page, "team · State · acme")
    page.goto("/state")
    tree.get_by_role("link", name="team").click()
    expect(page).to_have_title("team · State · acme")
    page.get_by_role("link", name="New entry").click()
    expect(page.get_by_label("Namespace", exact=True)).to_have_value("team")
