"""Pauses, resumes, tests and replays webhooks."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from state_admin.domain.access import Actor, Role
from state_admin.models import DeliveryStatus, Webhook, WebhookDelivery, WebhookStatus, feed_sql
from state_admin.models.feed_sql import Position
from state_admin.models.webhooks import UNFINISHED

from . import deliveries, notifications, webhook_pump
from .actors import require
from .errors import Conflict, Gone
from .webhooks import find_delivery, find_position, find_webhook, lock_webhook, record_verb


def pause_webhook(*, actor: Actor, webhook_id: str, reason: str = "") -> Webhook:
    """Stop sending, but keep the position in the feed. Has no effect on a webhook that is not
    active."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        message = reason or f"paused by {actor.name}"
        if (
            Webhook.objects.active()
            .filter(pk=hook.pk)
            .update(status=WebhookStatus.PAUSED, status_reason=message, updated_at=Now())
        ):
            record_verb(actor, hook, "pause", reason)
    return find_webhook(actor, webhook_id)


def resume_webhook(
    *,
    actor: Actor,
    webhook_id: str,
    skip: bool = False,
    if_stopped: bool = False,
    reason: str = "",
) -> Webhook:
    """Send again, from the position where it stopped. `skip`: from now on; waiting deliveries
    become dead letters. `if_stopped`: raise Conflict instead of skipping deliveries of an active
    webhook, so that a form sent twice skips once.

    Raises Gone if changes after the position may have been deleted meanwhile; then only `skip` is
    possible.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        if hook.status == WebhookStatus.ACTIVE and not skip:
            return find_webhook(actor, webhook_id)
        if hook.status == WebhookStatus.ACTIVE and if_stopped:
            raise Conflict(
                "the webhook is already active",
                hint="Nothing was skipped. To skip its deliveries, pause it first.",
            )
        changed: dict[str, object] = {}
        if skip:
            end = feed_sql.read_end(hook.workspace_id)
            changed = _at(end.position, end.at)
            _waiting(hook).update(
                status=DeliveryStatus.DEAD,
                error=f"skipped by {actor.name}",
                finished_at=Now(),
            )
        elif webhook_pump.has_lost_position(hook, feed_sql.read_end(hook.workspace_id)):
            raise Gone(
                "the webhook's position in the change feed has expired",
                hint="Changes that were not delivered may have been deleted. Read the state in the "
                "receiver, then resume with skip.",
            )
        Webhook.objects.filter(pk=hook.pk).update(
            status=WebhookStatus.ACTIVE,
            status_reason="",
            failing_since=None,
            last_error="",
            updated_at=Now(),
            **changed,
        )
        _waiting(hook).update(next_attempt_at=Now())
        record_verb(actor, hook, "resume", reason, skip=skip)
        notifications.notify_worker(deliveries.DRAIN, hook.public_id)
    return find_webhook(actor, webhook_id)


def send_test(*, actor: Actor, webhook_id: str) -> WebhookDelivery:
    """Send a test event now: out of order, once, even if the webhook is paused."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        delivery = webhook_pump.make_test(hook, asked_by=actor.name)
        record_verb(actor, hook, "test", "")
        notifications.notify_worker(deliveries.DELIVER, delivery.public_id)
    return find_delivery(actor, delivery.public_id)


def replay_delivery(*, actor: Actor, delivery_id: str, reason: str = "") -> WebhookDelivery:
    """Deliver a finished delivery again, the same event, before all waiting ones; or retry a failed
    one now. Raises Conflict if it is in progress."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, find_delivery(actor, delivery_id).webhook.public_id)
        delivery = find_delivery(actor, delivery_id)
        if delivery.test:
            raise Conflict("a test delivery cannot be replayed; send a new test")
        one = WebhookDelivery.objects.filter(pk=delivery.pk)
        finished = one.filter(status__in=(DeliveryStatus.DELIVERED, DeliveryStatus.DEAD))
        again = one.filter(status=DeliveryStatus.FAILED)
        if not _requeue(finished) and not again.update(next_attempt_at=Now()):
            raise Conflict(f"the delivery is already {delivery.status}")
        record_verb(actor, hook, "replay", reason, deliveries=1)
        notifications.notify_worker(deliveries.DRAIN, hook.public_id)
    return find_delivery(actor, delivery_id)


def replay_dead_letters(*, actor: Actor, webhook_id: str, reason: str = "") -> int:
    """Deliver all dead letters again, in the order of the feed, before all waiting deliveries.
    Returns their number."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        number = _requeue(
            WebhookDelivery.objects.filter(webhook=hook, status=DeliveryStatus.DEAD, test=False)
        )
        if number:
            record_verb(actor, hook, "replay", reason, deliveries=number)
            notifications.notify_worker(deliveries.DRAIN, hook.public_id)
    return number


def replay_from(*, actor: Actor, webhook_id: str, cursor: str, reason: str = "") -> Webhook:
    """Set the position back to `cursor`: every matching change after it is sent again, in order.
    Raises Conflict for a cursor after the position, and Gone for an expired one."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        place, at = find_position(actor, cursor)
        if place > hook.place:
            raise Conflict(
                "the cursor is ahead of the webhook",
                hint=(
                    "The cursor can only be set back. To skip changes that are not delivered yet, "
                    "resume with skip."
                ),
            )
        # The pump creates them again, in the order of the feed.
        _waiting(hook).filter(
            Q(change_xid__gt=place.xid) | Q(change_xid=place.xid, change_id__gt=place.id)
        ).delete()
        Webhook.objects.filter(pk=hook.pk).update(**_at(place, at), updated_at=Now())
        record_verb(actor, hook, "replay", reason, cursor=cursor)
    return find_webhook(actor, webhook_id)


def _waiting(hook: Webhook) -> deliveries.Rows:
    """The deliveries of the webhook that are waiting."""
    resting = [status for status in UNFINISHED if status != DeliveryStatus.DELIVERING]
    return WebhookDelivery.objects.filter(webhook=hook, test=False, status__in=resting)


def _requeue(rows: deliveries.Rows) -> int:
    return rows.update(
        status=DeliveryStatus.QUEUED,
        attempts=0,
        replays=F("replays") + 1,
        next_attempt_at=Now(),
        finished_at=None,
        error="",
    )


def _at(place: Position, at: datetime) -> dict[str, object]:
    return {"place_xid": place.xid, "place_id": place.id, "place_at": at}
