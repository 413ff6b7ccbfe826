"""Lists with long names in windows of laptops: nothing is cut, and rows stay low."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.domain.access import Role
from state_admin.models import Run
from tests.builders import Person, make_person, make_run, make_thread, make_token
from tests.services.test_dispatches import enqueue

from .test_table_journeys import LAPTOP

FITS = "each => each.scrollWidth <= each.clientWidth"
WIDTHS = (LAPTOP, 1440)


@pytest.mark.parametrize("width", WIDTHS)
def test_tokens__several_grants__are_all_visible(page: Page, alice: Person, width: int) -> None:
    make_token(alice, namespaces=["customer_profile", "research_*"], thread_prefixes=["support-"])
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/tokens")
    cell = page.locator("td", has_text="customer_profile")
    expect(cell).to_contain_text("support-")
    assert cell.evaluate(FITS)
    assert page.get_by_role("region", name="Tokens").evaluate(FITS)


@pytest.mark.parametrize("width", WIDTHS)
def test_members__actions__are_on_one_line(page: Page, server: LiveServer, width: int) -> None:
    make_person("erin.with-a-long-name@corporation.example.com", "acme", Role.EDITOR)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/members")
    buttons = page.locator("td:last-child .btn")
    tops = buttons.evaluate_all(
        "all => new Set(all.map(each => each.getBoundingClientRect().top)).size"
    )
    assert tops == page.locator("tbody tr").count()


@pytest.mark.parametrize("width", WIDTHS)
def test_runs__long_ids_and_agents__fit_without_scrolling_sideways(
    page: Page, alice: Person, width: int
) -> None:
    make_thread(alice.actor, "t1", title="Refund of an order that arrived broken in Rotterdam")
    run = "0190f6a4-5c1b-7d3e-9f21-3a6b5c4d2e10"
    make_run(alice.actor, "t1", run, agent_id="research-crew-orchestrator-eu-west-1")
    Run.objects.update(lease_expires_at="2026-01-01T00:00:00Z")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/runs")
    expect(page.locator(".reason")).to_contain_text("no commit or heartbeat since")
    assert page.locator("td.anywhere").evaluate(FITS)
    assert page.locator(".table-frame").evaluate(FITS)
    shown = page.get_by_role("link", name=run)
    expect(shown).to_have_attribute("title", run)
    box = shown.bounding_box()
    assert box
    assert box["height"] < 24  # one line


def test_mailbox__payload__has_room(page: Page, alice: Person) -> None:
    make_thread(alice.actor, "t1")
    enqueue(alice)
    page.goto("/mailbox")
    payload = page.locator("td details")
    payload.locator("summary").click()
    assert payload.evaluate("each => each.clientWidth") > 250
