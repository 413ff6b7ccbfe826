"""Creates the deliveries of webhooks from the change feed.

The deliveries are inserted in the transaction that advances the webhook's position in the feed, so
that every matching change has exactly one delivery, also after a crash.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
import orjson
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from state_admin.domain import webhooks
from state_admin.domain.ids import uuid7
from state_admin.models import Webhook, WebhookDelivery, WebhookStatus, erasures_sql, feed_sql
from state_admin.models.feed_sql import FeedEnd, FeedRow
from state_admin.models.webhooks import UNFINISHED, WebhookQuerySet
from state_admin.streams import cursors, events

from . import journal
from .actors import system_actor

# The maximum number of changes per read of the feed, and per transaction.
PAGE = 500
# The maximum number of unfinished deliveries of a webhook. Further changes remain in the feed.
MOST_WAITING = 10_000
# How often `place_at` is updated while there are no changes, so that the position does not expire.
_RENEW_PLACE = timedelta(hours=1)


def pump_webhook(webhook_id: str) -> int:
    """Create deliveries for the new changes that match an active webhook. Returns their number.

    Safe to run concurrently: only one call can advance the position, and inserts the rows in the
    same transaction.
    """
    queued = 0
    while True:
        hook = (
            Webhook.objects.active()
            .select_related("workspace")
            .filter(public_id=webhook_id)
            .first()
        )
        if hook is None:
            return queued
        count, more = _pump_page(hook)
        queued += count
        if not more:
            return queued


def _pump_page(hook: Webhook) -> tuple[int, bool]:
    """Process one page of the feed. Returns the number of deliveries, and whether there may be more
    changes."""
    end = feed_sql.read_end(hook.workspace_id)
    if has_lost_position(hook, end):
        why = "changes were deleted before they could be queued for the webhook"
        disable_webhook(_unchanged(hook), why)
        return 0, False
    if end.position <= hook.place:
        if end.at - hook.place_at > _RENEW_PLACE:
            _unchanged(hook).update(place_at=end.at)
        return 0, False
    waiting = WebhookDelivery.objects.filter(webhook=hook, status__in=UNFINISHED).count()
    limit = min(PAGE, MOST_WAITING - waiting)
    if limit <= 0:
        return 0, False
    with transaction.atomic():
        erasures_sql.lock_erasure(hook.workspace_id, shared=True)
        rows = feed_sql.read_page(
            hook.reader, after=hook.place, until=end.position, filters=hook.feed_filter, limit=limit
        )
        full = len(rows) == limit
        place, at = (rows[-1].position, rows[-1].at) if full else (end.position, end.at)
        queued = [
            _delivery(hook, row) for row in rows if hook.choice.takes(row.kind, row.namespace)
        ]
        # Locks the webhook, so that deliveries get ids in the order of the feed. If no row matches,
        # another worker has advanced the position, or the filter was changed.
        if not _unchanged(hook).update(place_xid=place.xid, place_id=place.id, place_at=at):
            return 0, False
        WebhookDelivery.objects.bulk_create(queued)
    return len(queued), full


def has_lost_position(hook: Webhook, end: FeedEnd) -> bool:
    """Whether changes after the webhook's position may have been deleted, by the rule for
    cursors."""
    try:
        cursors.resume(cursors.seal(hook.place, hook.place_at), end, settings.CHANGE_RETENTION)
    except cursors.ExpiredCursor:
        return True
    return False


def _unchanged(hook: Webhook) -> WebhookQuerySet:
    """The webhook, if it is active, and neither its position nor its filter has changed."""
    return Webhook.objects.active().filter(
        pk=hook.pk,
        place_xid=hook.place_xid,
        place_id=hook.place_id,
        updated_at=hook.updated_at,
    )


def _delivery(hook: Webhook, row: FeedRow) -> WebhookDelivery:
    event_id = f"chg_{row.id}"
    subject = webhooks.subject_of(row.namespace, row.key, row.thread, row.run)
    event = webhooks.cloud_event(
        event_id=event_id,
        source=_source(hook),
        kind=webhooks.TYPE_PREFIX + row.kind,
        at=row.at,
        data=msgspec.structs.asdict(events.show(row)),
        subject=subject,
        sequence=f"{row.xid:019d}.{row.id:019d}",
        traceparent=row.traceparent,
    )
    return WebhookDelivery(
        webhook=hook,
        public_id=uuid7(),
        change_xid=row.xid,
        change_id=row.id,
        event_id=event_id,
        kind=row.kind,
        subject=subject,
        body=orjson.dumps(event).decode(),
    )


def make_test(hook: Webhook, *, asked_by: str) -> WebhookDelivery:
    """Insert a test delivery, in the transaction of the caller."""
    public_id = uuid7()
    event = webhooks.cloud_event(
        event_id=f"test_{public_id}",
        source=_source(hook),
        kind=webhooks.TEST_TYPE,
        at=timezone.now(),
        data={"webhook_id": hook.public_id, "asked_by": asked_by},
    )
    return WebhookDelivery.objects.create(
        webhook=hook,
        public_id=public_id,
        change_xid=0,
        change_id=0,
        event_id=event["id"],
        kind="webhook.test",
        body=orjson.dumps(event).decode(),
        test=True,
    )


def _source(hook: Webhook) -> str:
    return f"{settings.SITE_URL}/workspaces/{hook.workspace.slug}"


def disable_webhook(rows: WebhookQuerySet, why: str) -> None:
    """Disable the only webhook in `rows`, if it is active, with the reason. Its deliveries remain."""
    with transaction.atomic():
        hook = rows.active().select_for_update(no_key=True).first()
        if hook is not None:
            Webhook.objects.filter(pk=hook.pk).update(
                status=WebhookStatus.DISABLED, status_reason=why, updated_at=Now()
            )
            actor = system_actor(hook.workspace_id, "webhooks")
            trace = journal.Trace("webhook.disable", key=hook.name, detail={"why": why})
            journal.record(actor, [trace], reason=why)
