"""Sends the deliveries of webhooks.

A delivery is a row. A worker claims it with a conditional UPDATE, sends it outside any transaction,
and records the result if its claim is still valid. The broker only notifies workers: the next tick
finds deliveries whose notification was lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce, Now

from project import log_context, tracing
from state_admin import egress
from state_admin.domain import retries, signatures, webhooks
from state_admin.models import DeliveryStatus, Webhook, WebhookDelivery, webhooks_sql
from state_admin.models.webhooks import WebhookQuerySet
from state_admin.models.webhooks_sql import ClaimedDelivery

from .batching import delete_in_batches, skip_frozen
from .webhook_pump import disable_webhook, pump_webhook
from .webhook_secrets import live_secrets

Rows: TypeAlias = QuerySet[WebhookDelivery, WebhookDelivery]

DRAIN = "state_admin.tasks.webhooks.drain"
DELIVER = "state_admin.tasks.webhooks.deliver"
# The maximum number of seconds that a worker spends on one webhook at a time.
_TURN = 20.0
# Seconds in addition to the timeout of the request, so that a claim does not expire while sending.
_LEASE_SLACK = timedelta(seconds=5)
_PURGE_BATCH = 2000

log = structlog.get_logger()


@dataclass(frozen=True)
class DeliveryAttempt:
    """The result of one attempt. `error` is empty if the receiver accepted it."""

    status: int | None
    error: str
    latency_ms: int
    retry_after: float | None = None
    # No further attempt can help: why the webhook is switched off.
    hopeless: str = ""


def drain(webhook_id: str) -> int:
    """Send the deliveries of a webhook, one after the other, until one fails, none is due, or the
    time is over. Returns how many were delivered."""
    ends = time.monotonic() + _TURN
    arrived = 0
    while time.monotonic() < ends:
        due = webhooks_sql.find_due_deliveries(webhook_id)
        if not due or deliver(due[0][1]) != DeliveryStatus.DELIVERED:
            break
        arrived += 1
    return arrived


def deliver(delivery_id: str) -> DeliveryStatus | None:
    """Make one attempt, if it is the turn of this delivery. None: it is not, or another worker has
    it, or took it over meanwhile. Never starts to send after the end of its lease, so a lost claim
    causes at most one extra request."""
    timeout = settings.WEBHOOK_TIMEOUT_SECONDS
    try:
        with transaction.atomic():
            claimed = webhooks_sql.claim(
                delivery_id,
                lease=timedelta(seconds=timeout) + _LEASE_SLACK,
                most=settings.WEBHOOK_MAX_ATTEMPTS,
            )
    except IntegrityError:
        return None
    if claimed is None:
        return None
    event = webhooks.read_event(claimed.body.encode())
    # In the trace of the request that made the change, else in that of the job.
    parent = {"traceparent": event.traceparent} if event.traceparent else None
    with (
        tracing.span("webhook delivery", parent=parent),
        log_context.bound(
            webhook_id=claimed.webhook_public_id,
            delivery_id=claimed.public_id,
            workspace=claimed.workspace_id,
            thread_id=event.data.thread_id,
            run_id=event.data.run_id,
        ),
    ):
        return _settle(claimed, _attempt(claimed, event.traceparent, timeout))


def _attempt(claimed: ClaimedDelivery, traceparent: str, timeout: float) -> DeliveryAttempt:
    keys = live_secrets(claimed.webhook_id)
    if keys:
        attributes = {
            "http.request.method": "POST",
            "http.request.resend_count": claimed.attempts - 1,
        }
        with tracing.span("POST", attributes, kind="client") as span:
            attempt = _send(claimed, keys, traceparent, timeout)
            span.set({"http.response.status_code": attempt.status})
            if attempt.error:
                span.fail(str(attempt.status or "no_response"))
            return attempt
    why = (
        "the signing secret was derived from a SECRET_KEY that is no longer "
        "configured; rotate the secret"
    )
    return DeliveryAttempt(None, why, 0, hopeless=why)


def _send(
    claimed: ClaimedDelivery, keys: list[bytes], traceparent: str, timeout: float
) -> DeliveryAttempt:
    body = claimed.body.encode()
    headers = {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "user-agent": "Commonhold-Webhook/1",
        "webhook-id": claimed.event_id,
        "webhook-timestamp": str(claimed.now),
        "webhook-signature": signatures.sign(keys, claimed.event_id, claimed.now, body),
        "commonhold-webhook": claimed.webhook_public_id,
        "commonhold-delivery": claimed.public_id,
        "commonhold-attempt": str(claimed.attempts),
    }
    if traceparent:
        headers["traceparent"] = traceparent
    tracing.inject(headers)
    began = time.monotonic()
    status, error, hopeless, retry_after = None, "", "", None
    try:
        reply = egress.post(
            claimed.url,
            body,
            headers,
            seconds=timeout,
            allow_private=settings.WEBHOOK_ALLOW_PRIVATE,
        )
        status = reply.status
        retry_after = retries.requested_seconds(reply.retry_after, claimed.now)
        if 300 <= status < 400:
            error = (
                f"the receiver returned {status}: redirects are not followed; configure the "
                "final URL"
            )
        elif not 200 <= status < 300:
            error = f"the receiver returned {status}"
        if status == 410:
            hopeless = "the receiver returned 410 Gone"
    except (egress.Refused, egress.Failed) as failed:
        error = str(failed)
    latency = int((time.monotonic() - began) * 1000)
    return DeliveryAttempt(status, error, latency, retry_after, hopeless)


def _settle(claimed: ClaimedDelivery, outcome: DeliveryAttempt) -> DeliveryStatus | None:
    """Record an attempt if the claim is still valid."""
    status, pause = _next(claimed, outcome)
    with transaction.atomic():
        # Lock the webhook before the delivery, as webhook_flow.py does, to prevent deadlocks.
        hook = Webhook.objects.filter(pk=claimed.webhook_id).select_for_update(no_key=True)
        if not hook.first():
            return None
        finished = status in (DeliveryStatus.DELIVERED, DeliveryStatus.DEAD)
        settled = WebhookDelivery.objects.held(claimed.id, claimed.claim).update(
            status=status,
            response_status=outcome.status,
            latency_ms=outcome.latency_ms,
            error=outcome.error[:500],
            lease_expires_at=None,
            next_attempt_at=Now() + timedelta(seconds=pause),
            finished_at=Now() if finished else None,
        )
        if not settled:
            return None
        # The result of a receiver that was replaced meanwhile does not apply to the current one.
        current = Webhook.objects.filter(pk=claimed.webhook_id, url=claimed.url)
        if outcome.hopeless:
            disable_webhook(current, outcome.hopeless)
        if not claimed.test:
            _note_health(current, outcome)
    log.info(
        "webhook.attempt",
        attempt=claimed.attempts,
        status=status.value,
        response=outcome.status,
        ms=outcome.latency_ms,
        error=outcome.error or None,
    )
    return status


def _next(claimed: ClaimedDelivery, outcome: DeliveryAttempt) -> tuple[DeliveryStatus, float]:
    """The delivery's status after this attempt, and the seconds until the next."""
    if not outcome.error:
        return DeliveryStatus.DELIVERED, 0.0
    if claimed.test or claimed.attempts >= settings.WEBHOOK_MAX_ATTEMPTS:
        return DeliveryStatus.DEAD, 0.0
    return DeliveryStatus.FAILED, retries.pause_before_retry(
        claimed.attempts,
        base=settings.WEBHOOK_RETRY_SECONDS,
        retry_after=outcome.retry_after,
    )


def _note_health(row: WebhookQuerySet, outcome: DeliveryAttempt) -> None:
    if not outcome.error:
        row.update(failing_since=None, last_error="", last_delivered_at=Now())
        return
    row.update(failing_since=Coalesce("failing_since", Now()), last_error=outcome.error[:500])
    patience = settings.WEBHOOK_DISABLE_AFTER
    hours = f"{patience.total_seconds() / 3600:g} h"
    disable_webhook(
        row.filter(failing_since__lte=Now() - patience),
        f"no delivery succeeded for {hours}; last error: {outcome.error}",
    )


def tick() -> tuple[dict[str, int], list[str], list[str]]:
    """Create deliveries for all webhooks, and find those without a worker. Returns a report, the
    webhooks to drain, and the single deliveries to send."""
    queued = 0
    active = Webhook.objects.active().filter(workspace__frozen_at=None).order_by("pk")
    for webhook_id in active.values_list("public_id", flat=True):
        with skip_frozen():
            queued += pump_webhook(webhook_id)
    lost = webhooks_sql.bury_lost_deliveries(most=settings.WEBHOOK_MAX_ATTEMPTS)
    heads = [webhook_id for webhook_id, _ in webhooks_sql.find_due_deliveries()]
    return {"queued": queued, "given_up": lost}, heads, webhooks_sql.find_due_tests()


def purge_deliveries() -> dict[str, int]:
    """Delete deliveries after their retention time. Dead letters are kept longer, so that they can
    be replayed."""
    removed = 0
    frozen = Webhook.objects.filter(pk=OuterRef("webhook_id"), workspace__frozen_at__isnull=False)
    for status, age in (
        (DeliveryStatus.DELIVERED, settings.WEBHOOK_RETENTION),
        (DeliveryStatus.DEAD, settings.WEBHOOK_DEAD_RETENTION),
    ):
        old = WebhookDelivery.objects.filter(
            ~Exists(frozen), status=status, finished_at__lt=Now() - age
        )
        removed += delete_in_batches(old, "finished_at", _PURGE_BATCH)
    return {"deliveries": removed}
