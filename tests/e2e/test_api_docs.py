"""/api/docs in a real browser, under the strict Content-Security-Policy of the pages."""

from __future__ import annotations

from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from tests.builders import Person


def test_api_docs__call_with_a_token__succeeds_and_no_script_is_blocked(
    browser: Browser, server: LiveServer, alice: Person
) -> None:
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/api/docs")
    page.get_by_role("button", name="Authorize").click()
    page.get_by_label("auth-bearer-value").fill(alice.token)
    page.get_by_role("button", name="Apply credentials").first.click()
    page.get_by_role("button", name="Close").first.click()

    page.locator("#operations-tag-access").click()
    page.locator("#operations-access-get_me .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()

    answer = page.locator(".live-responses-table tbody")
    expect(answer.locator(".response-col_status")).to_contain_text("200")
    expect(answer.locator(".response-col_description")).to_contain_text("acme")
    context.close()
