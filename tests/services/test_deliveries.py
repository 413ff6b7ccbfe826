"""Deliveries to real receivers: order, retries, dead letters, and addresses that must not be
called."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import override_settings

from state_admin.contract.webhooks import WebhookFilter as Filter
from state_admin.models import AuditRow, DeliveryStatus, Webhook, WebhookDelivery, webhooks_sql
from state_admin.services import deliveries, webhook_flow, webhooks
from tests.builders import Person, make_namespace, put
from tests.feeding import pump, wait_for_feed
from tests.project.running import free_port
from tests.receiving import Handler, Manners, Receiver, answer, flood, hang, is_signed, receiving
from tests.services.racing import race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def deployment(settings: Any) -> Any:
    """A deployment that may call this machine and retries without pauses."""
    settings.WEBHOOK_ALLOW_PRIVATE = True
    settings.WEBHOOK_RETRY_SECONDS = 0.0
    settings.WEBHOOK_MAX_ATTEMPTS = 3
    return settings


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture(autouse=True)
def notes(alice: Person) -> None:
    make_namespace(alice.actor, "notes")


def make(alice: Person, receiver: Receiver | str, **fields: Any) -> tuple[Webhook, str]:
    url = receiver if isinstance(receiver, str) else receiver.url
    filters = fields.pop("filters", Filter(kinds=("entry.*",)))
    wait_for_feed(alice.workspace.pk)
    return webhooks.create_webhook(
        actor=alice.actor, name="hook", url=url, filters=filters, **fields
    )


def write(alice: Person, *keys: str) -> None:
    for key in keys:
        put(alice.actor, "notes", key, {"of": key})


def work(hook: Webhook) -> list[tuple[str, str]]:
    """Pump and deliver once; returns the deliveries as (key, status), in order."""
    pump(hook)
    deliveries.drain(hook.public_id)
    return [(row.subject.rpartition("/")[2], row.status) for row in rows_of(hook)]


def rows_of(hook: Webhook) -> list[WebhookDelivery]:
    return list(WebhookDelivery.objects.filter(webhook=hook).order_by("pk"))


def by_attempt(*statuses: int) -> Manners:
    """The n-th request gets the n-th status; later ones 204."""

    def manners(handler: Handler, number: int) -> None:
        answer((*statuses, 204)[min(number - 1, len(statuses))])(handler, number)

    return manners


# What arrives --------------------------------------------------------------------------------


def test_deliver__change__arrives_as_a_signed_cloud_event(
    alice: Person, receiver: Receiver, settings: Any
) -> None:
    hook, secret = make(alice, receiver)
    write(alice, "a/b")
    assert work(hook) == [("a%2Fb", "delivered")]
    (received,) = receiver.received
    (row,) = rows_of(hook)
    event = received.event
    assert event | {"data": None, "sequence": None, "time": None} == {
        "specversion": "1.0",
        "id": row.event_id,
        "source": f"{settings.SITE_URL}/workspaces/acme",
        "type": "commonhold.entry.put",
        "subject": "state/notes/a%2Fb",
        "time": None,
        "datacontenttype": "application/json",
        "data": None,
        "sequence": None,
    }
    change = alice.api("GET", "/changes?kind=entry.put").json()["items"][0]
    assert event["data"] == change
    assert event["time"] == change["at"]
    assert received.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert received.headers["webhook-id"] == event["id"]
    assert received.headers["commonhold-webhook"] == hook.public_id
    assert received.headers["commonhold-delivery"] == row.public_id
    assert received.headers["commonhold-attempt"] == "1"
    assert is_signed(received, secret)
    assert row.response_status == 204
    assert row.latency_ms is not None
    hook.refresh_from_db()
    assert hook.last_delivered_at is not None


def test_deliver__secret_rotated__signed_with_both_until_the_overlap_ends(
    alice: Person, receiver: Receiver
) -> None:
    hook, first = make(alice, receiver)
    _, second = webhooks.rotate_secret(actor=alice.actor, webhook_id=hook.public_id)
    write(alice, "a")
    work(hook)
    hook.secrets.filter(expires_at__isnull=False).update(expires_at=Now())
    write(alice, "b")
    work(hook)
    both, new_only = receiver.received
    assert [is_signed(both, secret) for secret in (first, second)] == [True, True]
    assert [is_signed(new_only, secret) for secret in (first, second)] == [False, True]


def test_deliver__secret_key_missing__sends_nothing_unsigned_and_reports_it(
    alice: Person, receiver: Receiver
) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a")
    with override_settings(SECRET_KEY="another", SECRET_KEY_FALLBACKS=[]):
        assert work(hook) == [("a", "failed")]
    hook.refresh_from_db()
    assert (hook.status, receiver.received) == ("disabled", [])
    assert "rotate the secret" in hook.status_reason


def test_sequence__later_change__compares_greater_as_text(
    alice: Person, receiver: Receiver
) -> None:
    hook, _ = make(alice, receiver)
    write(alice, *(f"k{number}" for number in range(12)))
    work(hook)
    sequences = [received.event["sequence"] for received in receiver.received]
    assert sequences == sorted(set(sequences))


# Order ---------------------------------------------------------------------------------------


def test_drain__several_workers_and_failures_between__accepted_in_feed_order(
    alice: Person,
) -> None:
    accepted: list[str] = []
    overlaps: list[int] = []
    at_once = threading.Lock()

    def moody(handler: Handler, number: int) -> None:
        if not at_once.acquire(blocking=False):
            overlaps.append(number)
            return
        status = 500 if number % 4 == 0 else 204
        if status == 204:
            accepted.append(handler.server.received[number - 1].key)
        at_once.release()
        answer(status)(handler, number)

    keys = [f"k{number:02}" for number in range(20)]
    with receiving(moody) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, *keys)
        pump(hook)
        while webhooks_sql.find_due_deliveries():
            race([lambda: deliveries.drain(hook.public_id)] * 3)
    assert (accepted, overlaps) == (keys, [])
    assert {row.status for row in rows_of(hook)} == {"delivered"}


def test_deliver__not_the_first__is_not_claimed(alice: Person, receiver: Receiver) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a", "b")
    pump(hook)
    first, second = rows_of(hook)
    assert deliveries.deliver(second.public_id) is None
    assert deliveries.deliver(first.public_id) == DeliveryStatus.DELIVERED
    assert deliveries.deliver(first.public_id) is None
    assert deliveries.deliver(second.public_id) == DeliveryStatus.DELIVERED
    assert receiver.keys == ["a", "b"]


def test_deliver__two_workers_claim_the_same__sends_one_request(
    alice: Person, receiver: Receiver
) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a")
    pump(hook)
    (row,) = rows_of(hook)
    outcomes = race([lambda: deliveries.deliver(row.public_id)] * 4)
    assert sorted(map(str, outcomes)) == ["None"] * 3 + ["delivered"]
    assert receiver.keys == ["a"]


def test_deliver__replayed_and_next_at_the_same_moment__one_is_in_progress(
    alice: Person,
) -> None:
    """The first is queued again while the second is in progress: the index prevents both at
    once."""
    gate = threading.Event()

    def wait(handler: Handler, number: int) -> None:
        if number == 2:
            gate.wait(30)
        answer(204)(handler, number)

    with receiving(wait) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a", "b")
        pump(hook)
        first, second = rows_of(hook)
        deliveries.deliver(first.public_id)

        def replay_meanwhile() -> Any:
            receiver.wait_for(2)
            webhook_flow.replay_delivery(actor=alice.actor, delivery_id=first.public_id)
            refused = deliveries.deliver(first.public_id)
            gate.set()
            return refused

        assert race([lambda: deliveries.deliver(second.public_id), replay_meanwhile]) == [
            "delivered",
            None,
        ]
        assert deliveries.deliver(first.public_id) == "delivered"
        assert receiver.keys == ["a", "b", "a"]


# Failures ------------------------------------------------------------------------------------


def test_deliver__receiver_fails_twice__succeeds_at_the_third_attempt(alice: Person) -> None:
    with receiving(by_attempt(500, 503)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        assert work(hook) == [("a", "failed")]
        hook.refresh_from_db()
        assert (hook.last_error, hook.status) == ("the receiver returned 500", "active")
        assert hook.failing_since is not None
        work(hook)
        assert work(hook) == [("a", "delivered")]
    (row,) = rows_of(hook)
    assert (row.attempts, row.error) == (3, "")
    hook.refresh_from_db()
    assert (hook.failing_since, hook.last_error) == (None, "")
    ids = {received.headers["webhook-id"] for received in receiver.received}
    assert len(ids) == 1
    assert [r.headers["commonhold-attempt"] for r in receiver.received] == ["1", "2", "3"]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 302])
def test_deliver__attempts_exhausted__is_a_dead_letter_and_the_next_is_delivered(
    alice: Person, status: int
) -> None:
    with receiving(by_attempt(status, status, status)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a", "b")
        for _ in range(2):
            assert work(hook) == [("a", "failed"), ("b", "queued")]
        work(hook)
        assert work(hook) == [("a", "dead"), ("b", "delivered")]
    row = rows_of(hook)[0]
    assert (row.attempts, row.response_status) == (3, status)
    assert f"the receiver returned {status}" in row.error


def test_deliver__failed__pauses_increase(
    alice: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WEBHOOK_RETRY_SECONDS = 100
    monkeypatch.setattr("secrets.SystemRandom.random", lambda _: 0.0)
    with receiving(by_attempt(500, 500)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        for pause in (100, 200):
            work(hook)
            assert work(hook) == [("a", "failed")]
            due = Now() + timedelta(seconds=pause)
            slack = timedelta(seconds=30)
            soon = WebhookDelivery.objects.filter(
                next_attempt_at__gt=due - slack, next_attempt_at__lte=due
            )
            assert soon.update(next_attempt_at=Now()) == 1
        assert work(hook) == [("a", "delivered")]
        assert len(receiver.received) == 3


def test_deliver__retry_after__is_honoured(alice: Person) -> None:
    with receiving(answer(503, Retry_After="1800")) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        work(hook)
    late = WebhookDelivery.objects.filter(next_attempt_at__gt=Now() + timedelta(seconds=1700))
    assert late.count() == 1


def test_deliver__receiver_hangs__times_out_and_is_retried(alice: Person, settings: Any) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 0.2
    with receiving(hang) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        assert work(hook) == [("a", "failed")]
    (row,) = rows_of(hook)
    assert row.error == "no answer within 0.2 s"
    assert row.response_status is None


def test_deliver__endless_response__counts_by_its_status(alice: Person) -> None:
    with receiving(flood) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        assert work(hook) == [("a", "delivered")]


def test_deliver__no_listener__reports_it(alice: Person) -> None:
    hook, _ = make(alice, f"http://127.0.0.1:{free_port()}/")
    write(alice, "a")
    assert work(hook) == [("a", "failed")]
    assert rows_of(hook)[0].error == "connection refused"


def test_deliver__redirect_to_a_private_address__is_not_followed(
    alice: Person, receiver: Receiver
) -> None:
    with receiving(answer(307, Location=receiver.url)) as outside:
        hook, _ = make(alice, outside)
        write(alice, "a")
        assert work(hook) == [("a", "failed")]
    assert receiver.received == []
    assert "redirects are not followed" in rows_of(hook)[0].error


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
def test_deliver__private_address_not_allowed__is_never_called(
    alice: Person, receiver: Receiver, settings: Any, host: str
) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = False
    hook, _ = make(alice, f"http://{host}:{receiver.port}/")
    write(alice, "a")
    assert work(hook) == [("a", "failed")]
    assert receiver.received == []
    assert rows_of(hook)[0].response_status is None
    assert "WEBHOOK_ALLOW_PRIVATE" in rows_of(hook)[0].error


# Dead letters --------------------------------------------------------------------------------


def _two_dead(alice: Person, receiver: Receiver) -> Webhook:
    hook, _ = make(alice, receiver)
    write(alice, "a", "b", "c")
    pump(hook)
    first = [row.pk for row in rows_of(hook)[:2]]
    WebhookDelivery.objects.filter(pk__in=first).update(
        status="dead", attempts=3, finished_at=Now()
    )
    return hook


def test_replay_dead_letters__all__are_delivered_first_and_in_order(
    alice: Person, receiver: Receiver
) -> None:
    hook = _two_dead(alice, receiver)
    assert webhook_flow.replay_dead_letters(actor=alice.actor, webhook_id=hook.public_id) == 2
    assert [status for _, status in work(hook)] == ["delivered"] * 3
    assert receiver.keys == ["a", "b", "c"]
    assert webhook_flow.replay_dead_letters(actor=alice.actor, webhook_id=hook.public_id) == 0


def test_replay_delivery__delivered__sends_the_same_event_again(
    alice: Person, receiver: Receiver
) -> None:
    hook, secret = make(alice, receiver)
    write(alice, "a")
    work(hook)
    (row,) = rows_of(hook)
    webhook_flow.replay_delivery(actor=alice.actor, delivery_id=row.public_id)
    assert work(hook) == [("a", "delivered")]
    first, again = receiver.received
    assert first.body == again.body
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert is_signed(again, secret)
    assert rows_of(hook)[0].replays == 1


def test_replay_delivery__failed__is_attempted_now(alice: Person, settings: Any) -> None:
    settings.WEBHOOK_RETRY_SECONDS = 3000
    with receiving(by_attempt(500)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        assert work(hook) == work(hook) == [("a", "failed")]
        webhook_flow.replay_delivery(actor=alice.actor, delivery_id=rows_of(hook)[0].public_id)
        assert work(hook) == [("a", "delivered")]


# Switching off -------------------------------------------------------------------------------


def test_deliver__all_failed_for_a_day__webhook_is_disabled_with_the_reason(alice: Person) -> None:
    with receiving(by_attempt(500, 500)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a", "b")
        work(hook)
        Webhook.objects.update(failing_since=Now() - timedelta(hours=25))
        work(hook)
        hook.refresh_from_db()
        assert hook.status == "disabled"
        assert (
            hook.status_reason
            == "no delivery succeeded for 24 h; last error: the receiver returned 500"
        )
        assert AuditRow.objects.get(action="webhook.disable").actor_kind == "system"
        assert work(hook) == [("a", "failed"), ("b", "queued")]
        webhook_flow.resume_webhook(actor=alice.actor, webhook_id=hook.public_id)
        assert work(hook) == [("a", "delivered"), ("b", "delivered")]


def test_deliver__receiver_returns_gone__webhook_is_disabled_at_once(alice: Person) -> None:
    with receiving(answer(410)) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        work(hook)
    hook.refresh_from_db()
    assert (hook.status, hook.status_reason) == ("disabled", "the receiver returned 410 Gone")


def test_deliver__url_changed_meanwhile__response_of_the_former_one_does_not_disable(
    alice: Person, receiver: Receiver
) -> None:
    def change(handler: Handler, number: int) -> None:
        url = receiver.url
        race(
            [lambda: webhooks.change_webhook(actor=alice.actor, webhook_id=hook.public_id, url=url)]
        )
        answer(410)(handler, number)

    with receiving(change) as former:
        hook, _ = make(alice, former)
        write(alice, "a")
        work(hook)
    hook.refresh_from_db()
    assert (hook.status, hook.failing_since, hook.last_error) == ("active", None, "")
    assert work(hook) == [("a", "delivered")]


# Tests ---------------------------------------------------------------------------------------


def test_send_test__paused_webhook_with_a_queue__is_sent_at_once_and_once(alice: Person) -> None:
    with receiving(answer(500)) as receiver:
        hook, secret = make(alice, receiver)
        write(alice, "a")
        pump(hook)
        webhook_flow.pause_webhook(actor=alice.actor, webhook_id=hook.public_id)
        row = webhook_flow.send_test(actor=alice.actor, webhook_id=hook.public_id)
        assert webhooks_sql.find_due_tests() == [row.public_id]
        assert deliveries.deliver(row.public_id) == DeliveryStatus.DEAD
        assert deliveries.deliver(row.public_id) is None
    (received,) = receiver.received
    assert received.event["type"] == "commonhold.webhook.test"
    assert is_signed(received, secret)
    hook.refresh_from_db()
    assert hook.failing_since is None
    assert webhooks.find_webhook(alice.actor, hook.public_id).dead == 0  # type: ignore[attr-defined]


# Workers that die ----------------------------------------------------------------------------


def _abandon(hook: Webhook, attempts: int = 1) -> WebhookDelivery:
    """A worker claimed the first delivery, and its lease has expired."""
    pump(hook)
    row = rows_of(hook)[0]
    assert webhooks_sql.claim(row.public_id, lease=timedelta(seconds=-1), most=3)
    WebhookDelivery.objects.filter(pk=row.pk).update(attempts=attempts)
    return row


def test_tick__worker_died__its_delivery_is_repeated(alice: Person, receiver: Receiver) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a")
    _abandon(hook)
    wait_for_feed(hook.workspace_id)
    report, heads, tests = deliveries.tick()
    assert (report["given_up"], heads, tests) == (0, [hook.public_id], [])
    assert work(hook) == [("a", "delivered")]


def test_tick__worker_died_in_the_last_attempt__is_a_dead_letter(
    alice: Person, receiver: Receiver
) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a", "b")
    row = _abandon(hook, attempts=3)
    report, _, _ = deliveries.tick()
    assert report["given_up"] == 1
    row.refresh_from_db()
    assert (row.status, "may have arrived" in row.error) == ("dead", True)
    assert work(hook) == [("a", "dead"), ("b", "delivered")]


def test_settle__claim_was_taken_over__writes_nothing(alice: Person, receiver: Receiver) -> None:
    hook, _ = make(alice, receiver)
    write(alice, "a")
    pump(hook)
    (row,) = rows_of(hook)
    late = webhooks_sql.claim(row.public_id, lease=timedelta(seconds=-1), most=3)
    assert late is not None
    assert deliveries.deliver(row.public_id) == DeliveryStatus.DELIVERED
    failed = deliveries.DeliveryAttempt(500, "the receiver returned 500", 1)
    assert deliveries._settle(late, failed) is None
    assert work(hook) == [("a", "delivered")]
    hook.refresh_from_db()
    assert hook.failing_since is None


def test_deliver__webhook_deleted_meanwhile__ends_without_error(alice: Person) -> None:
    def delete(handler: Handler, number: int) -> None:
        race([lambda: Webhook.objects.all().delete()])
        answer(204)(handler, number)

    with receiving(delete) as receiver:
        hook, _ = make(alice, receiver)
        write(alice, "a")
        assert work(hook) == []
        assert receiver.keys == ["a"]


# Sweeps --------------------------------------------------------------------------------------


def test_anything_to_do__without_webhooks__is_false(alice: Person, receiver: Receiver) -> None:
    assert not webhooks_sql.has_work()
    hook, _ = make(alice, receiver)
    assert webhooks_sql.has_work()
    webhook_flow.pause_webhook(actor=alice.actor, webhook_id=hook.public_id)
    assert not webhooks_sql.has_work()
    webhook_flow.send_test(actor=alice.actor, webhook_id=hook.public_id)
    assert webhooks_sql.has_work()


def test_purge__finished_deliveries__are_deleted_by_status_and_age(
    alice: Person, receiver: Receiver
) -> None:
    hook, _ = make(alice, receiver)
    write(alice, *"abcdef")
    pump(hook)
    ages = [("delivered", 8), ("delivered", 6), ("dead", 31), ("dead", 29), ("failed", 99)]
    for row, (status, days) in zip(rows_of(hook), ages, strict=False):
        WebhookDelivery.objects.filter(pk=row.pk).update(
            status=status, finished_at=Now() - timedelta(days=days)
        )
    assert deliveries.purge_deliveries() == {"deliveries": 2}
    assert [row.subject[-1] for row in rows_of(hook)] == ["b", "d", "e", "f"]
