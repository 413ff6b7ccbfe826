"""Pages for browsers with other settings: high contrast, no JavaScript, paper."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.builders import Person, make_namespace, put
from tests.web.test_inbox import ask, refund


def background(element: Locator) -> str:
    return str(element.evaluate("each => getComputedStyle(each).backgroundColor"))


@pytest.mark.browser_context_args(forced_colors="active")
def test_high_contrast__current_page_tab_and_button__differ_from_the_others(page: Page) -> None:
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


@pytest.mark.browser_context_args(java_script_enabled=False)
def test_no_javascript__times_of_the_overview__stay_in_their_cells(
    alice: Person, page: Page
) -> None:
    ask(alice, refund(1))
    page.goto("/")
    cell = page.locator("a.stat", has_text="tickets")
    box, time = cell.bounding_box(), cell.locator("relative-time").bounding_box()
    assert box is not None
    assert time is not None
    assert time["x"] + time["width"] <= box["x"] + box["width"]


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
