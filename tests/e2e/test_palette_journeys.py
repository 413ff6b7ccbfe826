"""The palette (Ctrl K) in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.builders import Person, append, make_thread

from .conftest import Errors, press, take_held
from .test_journeys import team

__all__ = ["team"]


@pytest.mark.usefixtures("team")
def test_palette__nothing_typed__offers_recent_pages_first_until_sign_out(
    page: Page, errors: Errors
) -> None:
    page.goto("/state/team/thread::t1")
    page.goto("/namespaces/team")
    page.goto("/")
    press(page, "Control+k")
    chosen = page.locator("#palette-results [aria-selected=true]")
    expect(chosen).to_contain_text("team")
    expect(chosen).to_contain_text("recent namespace")
    press(page, "ArrowDown")
    expect(chosen).to_contain_text("thread::t1")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="thread::t1")).to_be_visible()
    assert page.evaluate("Object.keys(localStorage).some((key) => key.startsWith('recent/'))")
    errors.expected.add(401)  # the page may connect to the change stream while it signs out
    page.get_by_role("button", name="Account and appearance").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/login"))
    assert not page.evaluate("Object.keys(localStorage).some((key) => key.startsWith('recent/'))")


@pytest.mark.usefixtures("team")
def test_palette__another_region_swapped_before_its_results__offers_recent_pages(
    page: Page,
) -> None:
    page.goto("/namespaces/team")
    page.goto("/")
    held: list[Route] = []
    page.route("**/go?*", lambda route: held.append(route))
    with page.expect_request("**/go?*"):
        press(page, "Control+k")
    page.evaluate(
        "document.dispatchEvent(new CustomEvent('htmx:after:swap', { detail: { ctx: {} } }))"
    )
    take_held(page, held).continue_()
    chosen = page.locator("#palette-results [aria-selected=true]")
    expect(chosen).to_contain_text("recent namespace")


HTMX_IS_LATE = """
const later = window.setTimeout;
window.setTimeout = (work, wait, ...rest) => later(work, wait ?? 1000, ...rest);
"""


@pytest.mark.usefixtures("team")
def test_palette__opened_before_htmx_processed_the_page__has_results(page: Page) -> None:
    page.add_init_script(HTMX_IS_LATE)
    page.goto("/")
    press(page, "Control+k")
    expect(page.locator("#palette-results [aria-selected=true]")).to_be_visible()


@pytest.mark.usefixtures("team")
def test_palette__text_of_a_message__opens_the_message(page: Page, alice: Person) -> None:
    make_thread(alice.actor, "seats", title="Seats to Lisbon")
    append(alice.actor, "seats", {"role": "user", "content": "I prefer an aisle seat"})
    page.goto("/")
    press(page, "Control+k")
    page.keyboard.type("isbon")
    chosen = page.locator("#palette-results [aria-selected=true]")
    expect(chosen).to_contain_text("Seats to Lisbon")
    page.keyboard.press("Control+a")
    page.keyboard.type("aisle")
    expect(chosen).to_contain_text("I prefer an aisle seat")
    expect(chosen).to_contain_text("message")
    press(page, "Enter")
    expect(page).to_have_url(re.compile(r"/threads/seats\?message=1#m1$"))
    expect(page.locator("#m1")).to_contain_text("aisle seat")


@pytest.mark.usefixtures("team")
def test_palette__escape__closes_immediately(page: Page) -> None:
    page.goto("/")
    press(page, "Control+k")
    page.keyboard.type("team")
    expect(page.locator("#palette")).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#palette")).to_be_hidden()
