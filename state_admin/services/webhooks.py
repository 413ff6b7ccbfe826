"""Webhooks as people manage them: create, change, rotate, pause, resume, test, replay, delete.

What workers do with them is in services/deliveries.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from state_admin import egress
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Fault
from state_admin.models import (
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    WebhookStatus,
    feed_sql,
)
from state_admin.models.feed_sql import Position
from state_admin.models.webhooks import UNFINISHED
from state_admin.streams import cursors

from . import deliveries, doorbell, journal
from .actors import require
from .errors import BadRequest, Conflict, Gone, Invalid, NotFound, QuotaExceeded
from .webhook_secrets import make_secret, retire_secrets

MOST_PER_WORKSPACE = 100
DEFAULT_OVERLAP = 24 * 3600
LONGEST_OVERLAP = 30 * 24 * 3600
_MOST_GLOBS = 50
_KIND = re.compile(r"[a-z_*]+(\.[a-z_*]+)*")
_NAMESPACE = re.compile(r"[A-Za-z0-9_.:*-]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Filter:
    """Which changes a webhook wants: all of the conditions, of each list any. Empty: everything
    that its creator may see. `kinds` and `namespaces` are globs in which only `*` is special."""

    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    key: str = ""
    prefix: str = ""
    thread: str = ""
    run: str = ""


def create_webhook(
    *,
    actor: Actor,
    name: str,
    url: str,
    wanted: Filter = Filter(),
    cursor: str = "",
    reason: str = "",
) -> tuple[Webhook, str]:
    """Make a webhook that sees what `actor` sees now, whatever becomes of the actor; answers it
    with its secret, once. It begins with the next change, or behind `cursor`.

    Invalid for a URL that could never be called; Gone for an expired cursor.
    """
    require(actor, Role.ADMIN)
    _check(name, url, wanted)
    with transaction.atomic():
        place, place_at = _place(actor, cursor)
        mine = Webhook.objects.filter(workspace_id=actor.workspace_id)
        if mine.count() >= MOST_PER_WORKSPACE:
            raise QuotaExceeded(
                "quota exceeded: webhooks", detail=f"A workspace has at most {MOST_PER_WORKSPACE}."
            )
        hook = Webhook.objects.create(
            workspace_id=actor.workspace_id,
            public_id=uuid7(),
            name=name.strip(),
            url=url,
            **_columns(wanted),
            grant_namespaces=list(actor.namespaces),
            grant_thread_prefixes=list(actor.thread_prefixes),
            created_by=actor.name,
            place_xid=place.xid,
            place_id=place.id,
            place_at=place_at,
        )
        secret = make_secret(hook)
        _record(actor, hook, "create", reason, {"to": egress.origin_of(url)})
    return find_webhook(actor, hook.public_id), secret


def change_webhook(
    *,
    actor: Actor,
    webhook_id: str,
    name: str | None = None,
    url: str | None = None,
    wanted: Filter | None = None,
    reason: str = "",
) -> Webhook:
    """Change what is given. A new filter holds for changes that are not deliveries yet; what it may
    see stays as it was at the creation."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        changed: dict[str, object] = _columns(wanted) if wanted is not None else {}
        if name is not None:
            changed["name"] = name.strip()
        if url is not None and url != hook.url:
            changed |= {"url": url, "failing_since": None, "last_error": ""}
        kept = hook.name if name is None else name
        _check(kept, hook.url if url is None else url, wanted or Filter())
        if changed:
            Webhook.objects.filter(pk=hook.pk).update(**changed, updated_at=Now())
            detail = {"changed": sorted(changed)}
            if url is not None:
                detail["to"] = [egress.origin_of(url)]
            _record(actor, hook, "change", reason, detail)
    return find_webhook(actor, webhook_id)


def rotate_secret(
    *, actor: Actor, webhook_id: str, overlap_seconds: int = DEFAULT_OVERLAP, reason: str = ""
) -> tuple[Webhook, str]:
    """A new secret, answered once. The former ones go on signing beside it for `overlap_seconds`;
    0 ends them at once: for a secret that leaked."""
    require(actor, Role.ADMIN)
    if not 0 <= overlap_seconds <= LONGEST_OVERLAP:
        raise Invalid(f"overlap_seconds must be between 0 and {LONGEST_OVERLAP}")
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        retire_secrets(hook, timedelta(seconds=overlap_seconds))
        secret = make_secret(hook)
        _record(actor, hook, "rotate", reason, {"overlap_seconds": overlap_seconds})
    return find_webhook(actor, webhook_id), secret


def pause_webhook(*, actor: Actor, webhook_id: str, reason: str = "") -> Webhook:
    """Send nothing more; its place in the feed is kept. Nothing happens when it is not active."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        said = reason or f"paused by {actor.name}"
        if (
            Webhook.objects.active()
            .filter(pk=hook.pk)
            .update(status=WebhookStatus.PAUSED, status_reason=said, updated_at=Now())
        ):
            _record(actor, hook, "pause", reason)
    return find_webhook(actor, webhook_id)


def resume_webhook(
    *, actor: Actor, webhook_id: str, skip: bool = False, reason: str = ""
) -> Webhook:
    """Send again, from where it stopped. `skip`: from now; what waits becomes dead letters.

    Gone when changes behind its place may have been purged meanwhile: only `skip` goes on then.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        if hook.status == WebhookStatus.ACTIVE and not skip:
            return find_webhook(actor, webhook_id)
        changed: dict[str, object] = {}
        if skip:
            end = feed_sql.read_end(hook.workspace_id)
            changed = _at(end.position, end.at)
            _waiting(hook).update(
                status=DeliveryStatus.DEAD,
                error=f"skipped by {actor.name}",
                finished_at=Now(),
            )
        elif deliveries.has_lost_place(hook, feed_sql.read_end(hook.workspace_id)):
            raise Gone(
                "the webhook's place in the feed has expired",
                detail="Changes that it has not seen may be gone. Let its receiver read the state, "
                "and resume with skip.",
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
        _record(actor, hook, "resume", reason, {"skip": skip})
        doorbell.ring(deliveries.DRAIN, hook.public_id)
    return find_webhook(actor, webhook_id)


def send_test(*, actor: Actor, webhook_id: str) -> WebhookDelivery:
    """Send a test event now: out of order, once, even to a paused webhook."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        made = deliveries.make_test(hook, asked_by=actor.name)
        _record(actor, hook, "test", "")
        doorbell.ring(deliveries.DELIVER, made.public_id)
    return find_delivery(actor, made.public_id)


def delete_webhook(*, actor: Actor, webhook_id: str, reason: str = "") -> None:
    """Forget a webhook with its deliveries. One that is on its way may still arrive."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        _record(actor, hook, "delete", reason)
        hook.delete()


def replay_delivery(*, actor: Actor, delivery_id: str, reason: str = "") -> WebhookDelivery:
    """Deliver a finished one again, the same event before all that waits; or try one that failed
    now instead of later. Conflict when it is already under way."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, find_delivery(actor, delivery_id).webhook.public_id)
        delivery = find_delivery(actor, delivery_id)
        if delivery.test:
            raise Conflict("a test cannot be replayed; ask for a new one")
        one = WebhookDelivery.objects.filter(pk=delivery.pk)
        finished = one.filter(status__in=(DeliveryStatus.DELIVERED, DeliveryStatus.DEAD))
        again = one.filter(status=DeliveryStatus.FAILED)
        if not _requeue(finished) and not again.update(next_attempt_at=Now()):
            raise Conflict(f"the delivery is {delivery.status} already")
        _record(actor, hook, "replay", reason, {"deliveries": 1})
        doorbell.ring(deliveries.DRAIN, hook.public_id)
    return find_delivery(actor, delivery_id)


def replay_dead_letters(*, actor: Actor, webhook_id: str, reason: str = "") -> int:
    """Deliver all that was given up, in the feed's order, before what waits; answers how many."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        number = _requeue(
            WebhookDelivery.objects.filter(webhook=hook, status=DeliveryStatus.DEAD, test=False)
        )
        if number:
            _record(actor, hook, "replay", reason, {"deliveries": number})
            doorbell.ring(deliveries.DRAIN, hook.public_id)
    return number


def replay_from(*, actor: Actor, webhook_id: str, cursor: str, reason: str = "") -> Webhook:
    """Set the webhook back to behind `cursor`: every wanted change from there is sent again, in
    order. Conflict for a cursor ahead of its place; Gone for an expired one."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = _lock(actor, webhook_id)
        place, at = _place(actor, cursor)
        if place > hook.place:
            raise Conflict(
                "the cursor is ahead of the webhook",
                detail="It can be set back only. To leave out what waits, resume it with skip.",
            )
        # They come again, in their order.
        _waiting(hook).filter(
            Q(change_xid__gt=place.xid) | Q(change_xid=place.xid, change_id__gt=place.id)
        ).delete()
        Webhook.objects.filter(pk=hook.pk).update(**_at(place, at), updated_at=Now())
        _record(actor, hook, "replay", reason, {"cursor": cursor})
    return find_webhook(actor, webhook_id)


def find_webhook(actor: Actor, webhook_id: str) -> Webhook:
    """With its counts (models.webhooks.with_counts)."""
    found = Webhook.objects.visible_to(actor).with_counts().filter(public_id=webhook_id).first()
    if found is None:
        raise NotFound(f"webhook not found: {webhook_id}")
    return found


def find_delivery(actor: Actor, delivery_id: str) -> WebhookDelivery:
    rows = WebhookDelivery.objects.visible_to(actor).select_related("webhook")
    found = rows.filter(public_id=delivery_id).first()
    if found is None:
        raise NotFound(f"delivery not found: {delivery_id}")
    return found


def _lock(actor: Actor, webhook_id: str) -> Webhook:
    """The webhook, held until the end of the transaction: before its deliveries, as workers do."""
    rows = Webhook.objects.visible_to(actor).filter(public_id=webhook_id)
    found = rows.select_for_update(no_key=True).first()
    if found is None:
        raise NotFound(f"webhook not found: {webhook_id}")
    return found


def _waiting(hook: Webhook) -> deliveries.Rows:
    """Its deliveries that are to come and not on their way."""
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


def _place(actor: Actor, cursor: str) -> tuple[Position, datetime]:
    """The place that a cursor names, or the feed's end."""
    end = feed_sql.read_end(actor.workspace_id)
    if not cursor:
        return end.position, end.at
    try:
        place = cursors.resume(cursor, end, settings.CHANGE_RETENTION)
        return place, cursors.unseal(cursor)[1]
    except cursors.BadCursor:
        raise BadRequest("cursor must be one that this API gave out") from None
    except cursors.ExpiredCursor:
        raise Gone(
            "the cursor has expired",
            detail="Changes are kept for a limited time. Read the state, then follow from now.",
        ) from None


def _at(place: Position, at: datetime) -> dict[str, object]:
    return {"place_xid": place.xid, "place_id": place.id, "place_at": at}


def _columns(wanted: Filter) -> dict[str, object]:
    columns = asdict(wanted)
    return {**columns, "kinds": list(wanted.kinds), "namespaces": list(wanted.namespaces)}


def _check(name: str, url: str, wanted: Filter) -> None:
    faults = []
    if not name.strip() or len(name.strip()) > 128 or _CONTROL.search(name):
        faults.append(Fault("/name", "1 to 128 characters, for people"))
    try:
        egress.check_url(url, allow_private=settings.WEBHOOK_ALLOW_PRIVATE)
    except egress.Refused as refused:
        faults.append(Fault("/url", str(refused)))
    faults += _check_globs("/filter/kinds", wanted.kinds, _KIND, "like entry.put or run.*")
    faults += _check_globs("/filter/namespaces", wanted.namespaces, _NAMESPACE, "like team_*")
    for field, most in (("key", 512), ("prefix", 512), ("thread", 128), ("run", 128)):
        text = getattr(wanted, field)
        if len(text.encode(errors="replace")) > most or _CONTROL.search(text):
            faults.append(Fault(f"/filter/{field}", f"at most {most} bytes, no control characters"))
    if faults:
        raise Invalid("the webhook is not acceptable", faults)


def _check_globs(
    pointer: str, globs: Sequence[str], legal: re.Pattern[str], hint: str
) -> list[Fault]:
    if len(globs) > _MOST_GLOBS:
        return [Fault(pointer, f"at most {_MOST_GLOBS}")]
    return [
        Fault(f"{pointer}/{number}", f"must be a name in which * stands for anything, {hint}")
        for number, glob in enumerate(globs)
        if len(glob) > 128 or not legal.fullmatch(glob)
    ]


def _record(
    actor: Actor, hook: Webhook, verb: str, reason: str, detail: dict[str, object] | None = None
) -> None:
    # By its name, as tokens: an id would tell narrowed readers of the audit of what they cannot see.
    trace = journal.Trace(f"webhook.{verb}", key=hook.name, detail=detail or {})
    journal.record(actor, [trace], reason=reason)
