"""Pages for browsers with other settings: high contrast, no JavaScript, paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person, make_namespace, put
from tests.web.test_inbox import ask, refund

from .conftest import open_context


@pytest.fixture
def high_contrast_page(browser: Browser, server: LiveServer, alice: Person) -> Iterator[Page]:
    context = open_context(browser, server, alice, forced_colors="active")
    yield context.new_page()
    context.close()


def background(element: Locator) -> str:
    return str(element.evaluate("each => getComputedStyle(each).backgroundColor"))


def test_high_contrast__current_page_tab_and_button__differ_from_the_others(
    high_contrast_page: Page,
) -> None:
    page = high_contrast_page
    page.goto("/usage")
    for chosen, other in (
        (page.locator(".nav [aria-current]"), page.get_by_role("link", name="Audit")),
        (page.get_by_role("link", name="30 days"), page.get_by_role("link", name="90 days")),
    ):
        assert background(chosen) != background(other)
    page.goto("/config")
    tabs = page.locator(".tabs")
    chosen, other = tabs.locator("[aria-current]"), tabs.get_by_role("link", name="Agents")
    assert background(chosen) != background(other)
    line = "each => getComputedStyle(each).borderBlockEndColor"
    assert other.evaluate(line) == page.locator("body").evaluate(
        "each => { each.style.color = 'Canvas'; return getComputedStyle(each).color }"
    )


def test_no_javascript__times_of_the_overview__stay_in_their_cells(
    browser: Browser, server: LiveServer, alice: Person
) -> None:
    ask(alice, refund(1))
    context = open_context(browser, server, alice, java_script_enabled=False)
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/")
    cell = page.locator("a.stat", has_text="tickets")
    box, time = cell.bounding_box(), cell.locator("relative-time").bounding_box()
    assert box is not None
    assert time is not None
    assert time["x"] + time["width"] <= box["x"] + box["width"]
    context.close()


def test_print__long_list__has_all_rows_and_no_controls(page: Page, alice: Person) -> None:
    make_namespace(alice.actor, "plans")
    for number in range(40):
        put(alice.actor, "plans", f"k{number}", {})
    page.set_viewport_size({"width": 1122, "height": 793})  # A4, landscape
    page.goto("/state")
    page.emulate_media(media="print")
    frame = page.locator(".table-frame")
    assert frame.evaluate("each => each.scrollHeight <= each.clientHeight")
    for control in (
        page.get_by_role("navigation", name="Main"),
        page.get_by_role("link", name="New entry"),
        page.get_by_label("Select k1", exact=True),
    ):
        expect(control).to_be_hidden()
    expect(page.get_by_role("link", name="plans/k39")).to_be_visible()
