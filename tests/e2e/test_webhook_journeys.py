"""An admin creates a webhook, sees its first delivery fail, fixes it and replays it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from state_admin.models import Webhook, WebhookDelivery
from state_admin.services import deliveries
from tests.builders import Person
from tests.receiving import answer, is_signed, receiving

from .conftest import Errors


def test_journey__webhook__is_created_tested_replayed_rotated_deleted(
    page: Page, errors: Errors, server: LiveServer, alice: Person, settings: Settings
) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    errors.expected.add(422)  # a form with an error in it
    with receiving(answer(500)) as receiver:
        page.goto("/webhooks")
        page.get_by_role("link", name="New webhook").click()
        page.get_by_label("Name", exact=True).fill("billing")
        page.get_by_label("URL", exact=True).fill("ftp://nowhere")
        page.get_by_role("button", name="Create webhook").click()
        expect(page.get_by_text("must begin with https")).to_be_visible()
        page.get_by_label("URL", exact=True).fill(receiver.url)
        page.get_by_role("button", name="Create webhook").click()
        snippet = page.locator("section.created pre")
        expect(snippet).to_contain_text("whsec_")
        secret = snippet.inner_text().strip()
        page.get_by_role("link", name="Open the webhook").click()
        expect(page.get_by_role("heading", name="billing")).to_be_visible()
        expect(page.get_by_text(secret)).to_have_count(0)

        page.get_by_role("button", name="Send test event").click()
        expect(page.locator("[data-toast]")).to_contain_text("Test event queued")
        assert deliveries.deliver(WebhookDelivery.objects.get().public_id) == "dead"
        # The table is updated automatically.
        expect(page.get_by_text("the receiver returned 500")).to_be_visible()
        assert is_signed(receiver.received[0], secret)

    WebhookDelivery.objects.update(test=False)
    page.reload()
    page.get_by_role("button", name="Redeliver webhook.test").click()
    expect(page.locator("#delivery-table").get_by_text("queued")).to_be_visible()
    page.get_by_role("combobox", name="Status").select_option("dead")
    expect(page.get_by_text("No deliveries with status dead")).to_be_visible()
    expect(page).to_have_url(re.compile("status=dead"))

    page.get_by_role("link", name="Rotate secret…").click()
    page.get_by_label("expires now (for example, because it leaked)").check()
    page.get_by_role("button", name="Rotate secret").click()
    expect(page.locator("section.created pre")).to_contain_text("whsec_")
    assert page.locator("section.created pre").inner_text().strip() != secret

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("paused by alice")).to_be_visible()
    page.get_by_role("link", name="Resume…").click()
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()

    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete webhook").click()
    expect(page.get_by_text("No webhooks yet")).to_be_visible()
    assert not Webhook.objects.exists()
