"""The pages of webhooks: a secret shown once, deliveries, replay, and what a viewer does not
see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from state_admin.contract.webhooks import WebhookFilter as Filter
from state_admin.models import AuditRow, Webhook, WebhookDelivery
from state_admin.services import webhooks
from tests.builders import Person
from tests.web.conftest import CheckQueries
from tests.web.stories import HOSTILE
from tests.web.test_threads import htmx, page
from tests.web.test_tokens import form_id

FORM = {
    "name": "billing", "url": "https://hooks.example.com/s3cret-path", "kinds": "entry.* run.done",
    "namespaces": "", "key": "", "begins": "", "thread": "", "run": "",
}  # fmt: skip


@pytest.fixture
def hook(alice: Person) -> Webhook:
    """A webhook with a delivery of each status."""
    made, _ = webhooks.create_webhook(
        actor=alice.actor,
        name=HOSTILE[0],
        url=FORM["url"],
        filters=Filter(kinds=("entry.*",), prefix="thread::"),
    )
    for number, status in enumerate(("delivered", "dead", "failed", "queued")):
        WebhookDelivery.objects.create(
            webhook=made, public_id=f"d{number}", change_xid=1, change_id=number, kind="entry.put",
            subject=HOSTILE[0], status=status, body='{"data": "<script>alert(1)</script>"}',
        )  # fmt: skip
    return made


def url_of(hook: Webhook, verb: str = "") -> str:
    return f"/webhooks/{hook.public_id}" + (f"/{verb}" if verb else "")


def test_webhooks__none__show_how_to_create_one(admin: Client, viewer: Client) -> None:
    for client in (admin, viewer):
        shown = page(client, "/webhooks")
        assert "No webhooks yet" in shown
        assert "curl -X POST" in shown
    for words in ("New webhook", "Create the first webhook"):
        assert words in page(admin, "/webhooks")
        assert words not in page(viewer, "/webhooks")


def test_webhook__created__its_secret_is_shown_exactly_once(admin: Client, alice: Person) -> None:
    response = admin.post("/webhooks/+new", FORM)
    assert response.status_code == 201
    found = re.search(r"whsec_[A-Za-z0-9+/=]+", response.content.decode())
    assert found
    made = Webhook.objects.get()
    assert (made.kinds, made.created_by) == (["entry.*", "run.done"], "alice")
    for path in ("/webhooks", url_of(made)):
        assert found[0] not in page(admin, path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "ftp://x"}, "must begin with https"),
        ({"kinds": "entry.put UPPER"}, "Must be a kind of change"),
        ({"begins": "x" * 600}, "At most 512 bytes"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_webhook__invalid_field__is_reported_at_the_field(
    admin: Client, changes: dict[str, str], said: str
) -> None:
    response = admin.post("/webhooks/+new", FORM | changes)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://10.1.2.3/hook", True),
        ("http://localhost:8080/hook", True),
        ("https://[::1]/hook", True),
        ("https://example.com/hook", False),
        ("https://93.184.216.34/hook", False),
    ],
)
def test_webhook__private_address_or_unmatched_glob__is_named(
    admin: Client, settings: Settings, url: str, private: bool
) -> None:
    sent = FORM | {"url": url, "namespaces": "nowhere_*"}
    shown = admin.post("/webhooks/+new", sent).content.decode()
    assert ("Deliveries will fail: the address is not public" in shown) == private
    assert "No namespace matches nowhere_* yet." in shown
    settings.WEBHOOK_ALLOW_PRIVATE = True
    again = admin.post("/webhooks/+new", sent | {"name": "again"}).content.decode()
    assert "Deliveries will fail" not in again


def test_webhook_form__sent_twice__creates_one_webhook(admin: Client) -> None:
    form = FORM | {"form_id": form_id(admin, "/webhooks/+new")}
    assert admin.post("/webhooks/+new", form).status_code == 201
    again = admin.post("/webhooks/+new", form, headers=htmx("webhooks"))
    assert again.status_code == 409
    assert again["HX-Retarget"] == "#problem"  # the secret remains on the page
    assert Webhook.objects.count() == 1


def test_webhook__detail__escapes_deliveries(admin: Client, hook: Webhook) -> None:
    shown = page(admin, url_of(hook))
    for word in ("delivered", "dead", "failed", "queued", "thread::", "Redeliver dead letters…"):
        assert word in shown
    assert "<script>alert(1)" not in shown
    assert HOSTILE[0] not in shown or "<" not in HOSTILE[0]


@pytest.mark.parametrize("status", ["delivered", "dead", "delivering"])
def test_webhook__deliveries_by_status__contains_only_matches(
    admin: Client, hook: Webhook, status: str
) -> None:
    items = admin.get(f"{url_of(hook)}/deliveries.json?status={status}").json()["items"]
    assert [item["status"] for item in items] == ([status] if status != "delivering" else [])
    part = page(admin, f"{url_of(hook)}?status={status}", headers=htmx("delivery-table"))
    assert part.lstrip().startswith('<div id="delivery-table"')
    assert ("No deliveries with status delivering" in part) == (status == "delivering")


@pytest.mark.parametrize("sort", ["", "oldest"])
def test_webhook__many_deliveries__are_paged_by_age(
    admin: Client, hook: Webhook, sort: str
) -> None:
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=hook, public_id=f"m{number:02}", change_xid=1, change_id=1, body="{}"
        )
        for number in range(60)
    )  # fmt: skip
    first = admin.get(f"{url_of(hook)}/deliveries.json?sort={sort}").json()
    second = admin.get(first["next"]).json()
    ids = [item["id"] for item in first["items"] + second["items"]]
    newest = ids[::-1] if sort else ids
    assert newest[:60] == [f"m{number:02}" for number in reversed(range(60))]
    assert (len(ids), second["next"]) == (64, None)
    shown = page(admin, f"{url_of(hook)}?sort={sort}")
    assert "Next page" in shown
    assert f'aria-sort="{"ascending" if sort else "descending"}"' in shown


@pytest.mark.parametrize("number", [0, 1, 2])
def test_delivery__replayed__is_queued_again(admin: Client, hook: Webhook, number: int) -> None:
    response = admin.post(f"/deliveries/d{number}/replay")
    assert response["Location"] == url_of(hook)
    row = WebhookDelivery.objects.get(public_id=f"d{number}")
    assert row.status in ("queued", "failed")
    assert "Delivery requeued" in page(admin, url_of(hook))


def test_delivery__replayed__keeps_the_filters_of_the_list(admin: Client, hook: Webhook) -> None:
    url = f"{url_of(hook)}?status=dead"
    here = {"HX-Current-URL": f"http://testserver{url}"}
    response = admin.post("/deliveries/d1/replay", headers=htmx("webhook") | here)
    assert json.loads(response["HX-Location"])["path"] == url


def test_webhook__dead_letters_replayed__after_a_confirmation_with_their_number(
    admin: Client, hook: Webhook
) -> None:
    assert "1 events are delivered" in page(admin, url_of(hook, "replay"))
    admin.post(url_of(hook, "replay"), {"reason": "fixed"})
    assert WebhookDelivery.objects.get(public_id="d1").status == "queued"
    assert AuditRow.objects.get(action="webhook.replay").reason == "fixed"


def test_webhook__failing__is_marked_in_the_list_and_on_its_page(
    admin: Client, hook: Webhook
) -> None:
    pill = '<span class="pill" data-state="failed">failing</span>'
    paths = ("/webhooks", url_of(hook))
    assert [pill in page(admin, path) for path in paths] == [False, False]
    Webhook.objects.update(failing_since=Now(), last_error="the receiver returned 500")
    assert [pill in page(admin, path) for path in paths] == [True, True]
    assert "the receiver returned 500" in page(admin, "/webhooks")
    admin.post(url_of(hook, "pause"))
    assert [pill in page(admin, path) for path in paths] == [False, False]


def test_webhook__failing__names_the_delivery_that_the_others_wait_for(
    admin: Client, viewer: Client, hook: Webhook
) -> None:
    Webhook.objects.update(failing_since=Now(), last_error="the receiver returned 500")
    WebhookDelivery.objects.filter(public_id="d2").update(
        subject="team/first", attempts=4, next_attempt_at=Now() + timedelta(minutes=9)
    )
    banner = page(admin, url_of(hook)).partition('class="banner"')[2].partition("<dl")[0]
    for words in (
        "team/first", "4 attempts so far, the next one <relative-time", "1 later delivery waits for it",
        'action="/deliveries/d2/replay"', "Retry now",
    ):  # fmt: skip
        assert words in banner
    banner = page(viewer, url_of(hook)).partition('class="banner"')[2].partition("<dl")[0]
    assert "4 attempts so far" in banner
    assert "Retry now" not in banner
    admin.post("/deliveries/d2/replay")
    WebhookDelivery.objects.filter(public_id="d2").update(status="delivering")
    banner = page(admin, url_of(hook)).partition('class="banner"')[2].partition("<dl")[0]
    assert "4 attempts so far, delivering now" in banner
    assert "Retry now" not in banner


def test_webhooks__by_status__contain_those_with_that_label(
    admin: Client, alice: Person, hook: Webhook
) -> None:
    Webhook.objects.update(name="broken", failing_since=Now())
    for name in ("healthy", "halted"):
        webhooks.create_webhook(actor=alice.actor, name=name, url=FORM["url"], filters=Filter())
    Webhook.objects.filter(name="halted").update(status="paused", failing_since=Now())
    names = {"failing": "broken", "active": "healthy", "paused": "halted"}
    for status, name in names.items():
        found = admin.get(f"/webhooks.json?status={status}").json()["items"]
        assert [each["name"] for each in found] == [name]
        shown = page(admin, f"/webhooks?status={status}", headers=htmx("webhook-table"))
        assert [each for each in names.values() if f">{each}</a>" in shown] == [name]


def test_webhook__paused_and_resumed__says_so(admin: Client, hook: Webhook) -> None:
    admin.post(url_of(hook, "pause"))
    assert "paused by alice" in page(admin, url_of(hook))
    assert "Last position" in page(admin, url_of(hook, "resume"))
    admin.post(url_of(hook, "resume"), {"from": "now"})
    hook.refresh_from_db()
    assert hook.status == "active"
    assert WebhookDelivery.objects.get(public_id="d3").status == "dead"


def test_webhook__secret_rotated__shows_the_new_one(admin: Client, hook: Webhook) -> None:
    assert "remains valid for one more day" in page(admin, url_of(hook, "rotate"))
    shown = admin.post(url_of(hook, "rotate"), {"overlap": "0", "reason": "leaked"})
    assert re.search(r"whsec_[A-Za-z0-9+/=]+", shown.content.decode())
    assert AuditRow.objects.get(action="webhook.rotate").detail == {"overlap_seconds": 0}


def test_webhook__tested__delivery_is_queued(admin: Client, hook: Webhook) -> None:
    admin.post(url_of(hook, "test"))
    assert WebhookDelivery.objects.filter(test=True).count() == 1
    assert "Test event queued" in page(admin, url_of(hook))


def test_webhook__deleted__after_a_confirmation(admin: Client, hook: Webhook) -> None:
    assert "2 queued deliveries and 1 dead letters" in page(admin, url_of(hook, "delete"))
    response = admin.post(url_of(hook, "delete"))
    assert response["Location"] == "/webhooks"
    assert not Webhook.objects.exists()


def test_webhook__disabled__shows_the_reason(admin: Client, hook: Webhook) -> None:
    Webhook.objects.update(status="disabled", status_reason="the receiver returned 410 Gone")
    assert "Disabled by the server" in page(admin, url_of(hook))


def test_resume__from_now_sent_again__skips_nothing_that_came_since(
    admin: Client, hook: Webhook
) -> None:
    admin.post(url_of(hook, "pause"))
    assert admin.post(url_of(hook, "resume"), {"from": "now"}).status_code == 302
    hook.deliveries.update(status="queued")
    position = Webhook.objects.values("place_xid", "place_id").get()
    again = admin.post(url_of(hook, "resume"), {"from": "now"})
    assert again.status_code == 409
    assert b"Nothing was skipped" in again.content
    assert set(hook.deliveries.values_list("status", flat=True)) == {"queued"}
    assert Webhook.objects.values("place_xid", "place_id").get() == position


VERBS = ["pause", "resume", "rotate", "test", "replay", "delete"]


@pytest.mark.parametrize("verb", VERBS)
def test_webhook__viewer_or_editor__cannot_change_it(
    viewer: Client, editor: Client, hook: Webhook, verb: str
) -> None:
    for client in (viewer, editor):
        assert client.post(url_of(hook, verb)).status_code == 403
        assert client.post("/deliveries/d1/replay").status_code == 403
        shown = page(client, url_of(hook))
        assert "s3cret-path" not in shown
        assert "/pause" not in shown


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_webhook__other_workspace__appears_absent(
    stranger: Client, hook: Webhook, verb: str
) -> None:
    call: Callable[..., Any] = stranger.post if verb else stranger.get
    assert call(url_of(hook, verb)).status_code == 404
    assert stranger.post("/deliveries/d1/replay").status_code == 404
    assert "No webhooks yet" in page(stranger, "/webhooks")


def test_pages__of_webhooks__use_few_queries(
    admin: Client, hook: Webhook, check_queries: CheckQueries
) -> None:
    check_queries("webhooks", admin, "/webhooks")
    check_queries("webhook", admin, url_of(hook))
