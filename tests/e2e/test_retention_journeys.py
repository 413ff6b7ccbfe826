"""The count before old versions are removed, in a namespace that takes several requests to count."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from state_admin.models import Compaction
from state_admin.services import retention
from state_admin.web import namespace_edit
from state_admin.web import retention as pages
from tests.builders import Person, make_namespace, put

from .conftest import Errors, take_held

ALL = "8 of 12 versions (8 B of 12 B) will be removed."


@pytest.fixture
def large(server: LiveServer, alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entries, of which a request counts one."""
    make_namespace(alice.actor, "notes", history_keep_last=1)
    for key in "abcd":
        for number in range(3):
            put(alice.actor, "notes", key, number)
    monkeypatch.setattr(retention, "BATCH", 1)
    for module, name in (
        (pages, "COUNT_FIRST"),
        (pages, "_COUNT_NEXT"),
        (namespace_edit, "COUNT_FIRST"),
    ):
        monkeypatch.setattr(module, name, 0)


@pytest.mark.usefixtures("large")
def test_compact__while_counting__can_be_confirmed(page: Page) -> None:
    held: list[Route] = []
    page.route("**/old-versions?*", lambda route: held.append(route))
    page.goto("/namespaces/notes")
    page.get_by_role("link", name="Remove old versions now…").click()
    dialog = page.get_by_role("dialog")
    count = dialog.locator(".counting")
    expect(count).to_contain_text("2 of the first 3 versions (2 B of 3 B) will be removed.")
    expect(count).to_have_attribute("aria-busy", "true")
    expect(dialog.get_by_role("link", name="Count all")).to_have_count(0)
    dialog.get_by_label("Reason").fill("tidy")
    take_held(page, held).continue_()
    expect(count).to_contain_text("4 of the first 6 versions")
    expect(count).to_have_attribute("aria-busy", "true")
    expect(dialog.get_by_label("Reason")).to_have_value("tidy")
    dialog.get_by_role("button", name="Remove versions").click()
    expect(page.locator("[data-toast]")).to_contain_text("History compaction requested")
    assert Compaction.objects.get(kind="history").reason == "tidy"


@pytest.mark.usefixtures("large")
def test_compact__left_open__shows_the_whole_count(page: Page, errors: Errors) -> None:
    page.goto("/namespaces/notes")
    page.get_by_role("link", name="Remove old versions now…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text(ALL)
    expect(dialog.locator("[aria-busy]")).to_have_count(0)
    dialog.get_by_role("link", name="Cancel").click()
    errors.expected.add(502)
    page.route("**/old-versions?*", lambda route: route.fulfill(status=502, body="Bad Gateway"))
    page.get_by_role("link", name="Remove old versions now…").click()
    expect(page.locator("[data-toast]")).to_contain_text("The server is not available (502)")
    expect(dialog.locator(".counting")).to_contain_text("2 of the first 3 versions")
    expect(dialog.get_by_role("button", name="Remove versions")).to_be_enabled()


@pytest.mark.usefixtures("large")
def test_rule__checked_and_saved__is_counted_in_the_form(page: Page) -> None:
    page.goto("/namespaces/notes/edit")
    page.get_by_label("Keep this many versions of each entry").fill("2")
    live = page.locator("#namespace-live")
    expect(live).to_contain_text("4 of 12 versions (4 B of 12 B) will be removed.")
    page.get_by_role("button", name="Save", exact=True).click()
    form = page.locator("#namespace-form")
    agree = form.get_by_role("button", name="Save and remove old versions")
    expect(agree).to_be_visible()
    expect(form.locator(".banner p[role=status]")).to_contain_text("4 of 12 versions")
    agree.click()
    expect(page.locator("[data-toast]")).to_contain_text("Saved")
    expect(page).to_have_url(re.compile("/namespaces/notes$"))


@pytest.mark.usefixtures("large")
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_compact__without_javascript__counts_all_on_request(page: Page) -> None:
    page.goto("/namespaces/notes")
    page.get_by_role("link", name="Remove old versions now…").click()
    expect(page.locator(".counting")).to_contain_text("2 of the first 3 versions")
    page.get_by_role("link", name="Count all").click()
    expect(page.get_by_text(ALL)).to_be_visible()
    page.get_by_role("button", name="Remove versions").click()
    expect(page.locator("[data-toast]")).to_contain_text("History compaction requested")
