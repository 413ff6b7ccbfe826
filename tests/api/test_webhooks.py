"""Webhooks over HTTP: formats, statuses, secrets that are shown once, what viewers do not see."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.models import IdempotencyRecord, WebhookDelivery
from tests.builders import Person

BODY = {
    "name": "billing",
    "url": "https://hooks.example.com/secret-path",
    "filter": {"kinds": ["entry.*"], "namespaces": ["team_*"], "prefix": "thread::"},
}


@pytest.fixture
def hook(alice: Person) -> Any:
    return alice.api("POST", "/webhooks", BODY).json()


def test_create__valid__returns_the_webhook_and_its_secret_once(alice: Person) -> None:
    answer = alice.api("POST", "/webhooks", BODY)
    made = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == f"/api/v1/webhooks/{made['id']}"
    assert made["secret"].startswith("whsec_")
    assert made["filter"] == {**BODY["filter"], "key": "", "thread_id": "", "run_id": ""}  # type: ignore[dict-item]
    assert made["sees"] == {"namespaces": [], "thread_prefixes": []}
    assert (made["status"], made["waiting"], made["dead_letters"]) == ("active", 0, 0)
    shown = alice.api("GET", f"/webhooks/{made['id']}").json()
    assert shown == {name: value for name, value in made.items() if name != "secret"}


def test_create__repeated_with_its_idempotency_key__creates_one_webhook_and_stores_no_secret(
    alice: Person,
) -> None:
    first = alice.api("POST", "/webhooks", BODY, Idempotency_Key="k1")
    again = alice.api("POST", "/webhooks", BODY, Idempotency_Key="k1")
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == {**first.json(), "secret": None}
    secret = first.json()["secret"]
    assert secret.encode() not in bytes(IdempotencyRecord.objects.get().body)
    assert len(alice.api("GET", "/webhooks").json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**BODY, "colour": "red"}, 400),
        ({**BODY, "filter": {"kind": "entry.put"}}, 400),
        ({"name": "x"}, 422),
        ({**BODY, "filter": {"kinds": "entry.put"}}, 422),
        ({**BODY, "url": "http://user:pw@example.com/"}, 422),
        ({**BODY, "cursor": "nonsense"}, 400),
        ([], 400),
    ],
)
def test_create__invalid_body__is_a_problem(alice: Person, body: Any, status: int) -> None:
    answer = alice.api("POST", "/webhooks", body)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"


def test_get__viewer__sees_the_host_of_the_url_but_not_its_path(
    alice: Person, bob: Person, hook: Any
) -> None:
    shown = bob.api("GET", f"/webhooks/{hook['id']}").json()
    assert shown["url"] == "https://hooks.example.com"
    assert "secret-path" not in bob.api("GET", "/webhooks").content.decode()
    assert "secret-path" not in bob.api("GET", "/changes").content.decode()


def test_change__filter__is_replaced_as_a_whole(alice: Person, hook: Any) -> None:
    changed = alice.api(
        "PATCH", f"/webhooks/{hook['id']}", {"name": "new", "filter": {"key": "global"}}
    ).json()
    assert changed["name"] == "new"
    assert changed["url"] == BODY["url"]
    assert changed["filter"] == {
        "kinds": [], "namespaces": [], "key": "global", "prefix": "", "thread_id": "", "run_id": "",
    }  # fmt: skip


def test_pause_and_resume__with_a_reason__return_it(alice: Person, hook: Any) -> None:
    paused = alice.api("POST", f"/webhooks/{hook['id']}/pause", Change_Reason="moving")
    assert (paused.json()["status"], paused.json()["status_reason"]) == ("paused", "moving")
    assert [item["id"] for item in alice.api("GET", "/webhooks?status=paused").json()["items"]]
    resumed = alice.api("POST", f"/webhooks/{hook['id']}/resume")
    assert (resumed.json()["status"], resumed.json()["status_reason"]) == ("active", None)
    skipped = alice.api("POST", f"/webhooks/{hook['id']}/resume", {"skip": True})
    assert skipped.status_code == 200


def test_rotate__twice__each_secret_is_new(alice: Person, hook: Any) -> None:
    path = f"/webhooks/{hook['id']}/rotate"
    second = alice.api("POST", path).json()["secret"]
    third = alice.api("POST", path, {"overlap_seconds": 0}).json()["secret"]
    assert len({hook["secret"], second, third}) == 3
    refused = alice.api("POST", path, {"overlap_seconds": 10**9})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/overlap_seconds"]


def test_test_event__requested__is_a_delivery_in_the_list(alice: Person, hook: Any) -> None:
    answer = alice.api("POST", f"/webhooks/{hook['id']}/test")
    assert answer.status_code == 202
    made = answer.json()
    assert (made["status"], made["test"]) == ("queued", True)
    assert made["event"]["type"] == "commonhold.webhook.test"
    listed = alice.api("GET", f"/webhooks/{hook['id']}/deliveries?status=queued").json()["items"]
    assert listed == [made]


def test_deliveries__pages__newest_first_without_repeats(alice: Person, hook: Any) -> None:
    for _ in range(3):
        alice.api("POST", f"/webhooks/{hook['id']}/test")
    path = f"/webhooks/{hook['id']}/deliveries?limit=2"
    first = alice.api("GET", path).json()
    second = alice.api("GET", f"{path}&cursor={first['next_cursor']}").json()
    ids = [item["id"] for item in first["items"] + second["items"]]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "body", [{}, {"dead_letters": False}, {"dead_letters": True, "cursor": "x"}]
)
def test_replay__neither_or_both_arguments__is_refused(alice: Person, hook: Any, body: Any) -> None:
    answer = alice.api("POST", f"/webhooks/{hook['id']}/replay", body)
    assert answer.status_code == 400


def test_replay__dead_letters__returns_their_number(alice: Person, hook: Any) -> None:
    from state_admin.models import Webhook

    row = Webhook.objects.get()
    for number in range(2):
        WebhookDelivery.objects.create(
            webhook=row, public_id=f"d{number}", change_xid=1, change_id=number, status="dead",
            body="{}",
        )  # fmt: skip
    answer = alice.api("POST", f"/webhooks/{hook['id']}/replay", {"dead_letters": True})
    assert answer.status_code == 202
    assert (answer.json()["replayed"], answer.json()["waiting"]) == (2, 2)
    again = alice.api("POST", "/deliveries/d0/replay")
    assert (again.status_code, again.json()["detail"]) == (409, "the delivery is already queued")


def test_openapi__webhooks__are_in_the_document(alice: Person, client: Any) -> None:
    document = client.get("/api/schema", headers={"Accept": "application/json"}).content.decode()
    for name in (
        "create_webhook", "list_webhooks", "get_webhook", "change_webhook", "delete_webhook",
        "pause_webhook", "resume_webhook", "rotate_webhook_secret", "test_webhook",
        "list_deliveries", "replay_webhook", "replay_delivery",
    ):  # fmt: skip
        assert name in document
