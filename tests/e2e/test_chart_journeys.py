"""The values of a chart by pointer and keyboard, in a real browser."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import Traffic
from tests.builders import Person, make_thread

from .conftest import press


@pytest.fixture
def reads(server: LiveServer, alice: Person, page: Page) -> Locator:
    """The chart of reads, with calls in the middle of three of the last hours."""
    now = timezone.now().replace(second=0, microsecond=0)
    for hours, count in ((0.5, 11), (1.5, 22), (12.5, 33), (24.5, 44)):
        Traffic.objects.create(
            workspace=alice.workspace, minute=now - timedelta(hours=hours), reads=count
        )
    page.goto("/")
    return page.get_by_role("slider", name="Read requests")


def values(reads: Locator) -> Locator:
    return reads.locator(".chart-tip strong")


def test_chart__pointer__shows_the_values_of_the_hour(page: Page, reads: Locator) -> None:
    reads.scroll_into_view_if_needed()
    box = reads.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 11.5 / 24, middle)
    expect(values(reads)).to_have_text(["33", "0"])
    page.mouse.move(box["x"] + box["width"] - 2, middle)
    expect(values(reads)).to_have_text(["11", "44"])
    expect(reads.locator(".cursor")).to_have_count(1)
    page.mouse.move(2, 2)
    expect(values(reads)).to_have_count(0)


def test_chart__arrow_keys__move_and_are_announced(page: Page, reads: Locator) -> None:
    page.get_by_role("link", name="Last hour").focus()
    press(page, "Tab")
    expect(reads).to_be_focused()
    expect(values(reads)).to_have_text(["11", "44"])
    press(page, "ArrowLeft")
    expect(values(reads)).to_have_text(["22", "0"])
    announced = re.compile(r"to \d\d:\d\d, Read requests 22, A day earlier 0$")
    expect(reads).to_have_attribute("aria-valuetext", announced)
    press(page, "Home")
    expect(reads).to_have_attribute("aria-valuenow", "0")
    press(page, "Escape")
    expect(values(reads)).to_have_count(0)
    press(page, "End")
    expect(values(reads)).to_have_text(["11", "44"])


def test_chart__refresh__keeps_the_focus_and_the_point(page: Page, reads: Locator) -> None:
    reads.focus()
    press(page, "ArrowLeft", "ArrowLeft")
    expect(values(reads)).to_have_text(["0", "0"])
    Traffic.objects.filter(reads=11).update(reads=55)
    swap = "{source: '#overview-charts', target: '#overview-charts', swap: 'outerMorph'}"
    page.evaluate(f"htmx.ajax('GET', '/', {swap})")
    expect(page.locator("#chart-reads figcaption")).to_contain_text("110")
    expect(reads).to_be_focused()
    expect(reads).to_have_attribute("aria-valuenow", "21")
    press(page, "End")
    expect(values(reads)).to_have_text(["55", "44"])


@pytest.mark.usefixtures("reads")
def test_overview__phone__begins_with_what_needs_attention(page: Page, alice: Person) -> None:
    make_thread(alice.actor)  # without one, the first steps precede
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload()
    heading = page.get_by_role("heading", name="Needs attention")
    expect(heading).to_be_in_viewport()
    charts = page.locator(".charts").first
    hidden = charts.evaluate("each => each.scrollWidth - each.clientWidth")
    assert hidden > 360
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    last = charts.locator(".chart").last
    expect(last).not_to_be_in_viewport()
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
