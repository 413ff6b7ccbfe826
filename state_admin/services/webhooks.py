"""Creates, changes and deletes webhooks, and rotates their secrets.

webhook_flow.py pauses, resumes and replays them. deliveries.py has the work of the workers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from state_admin import egress
from state_admin.contract.webhooks import WebhookFilter
from state_admin.domain import changes
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.values import Fault
from state_admin.models import Webhook, WebhookDelivery, database, erasures_sql, feed_sql
from state_admin.models.feed_sql import Position

from . import journal
from .actors import require
from .errors import Invalid, QuotaExceeded
from .feed_cursors import open_cursor
from .finding import find_row, refuse
from .pointers import cursor_in_body
from .webhook_secrets import make_secret, retire_secrets

MOST_PER_WORKSPACE = 100
DEFAULT_OVERLAP = 24 * 3600
LONGEST_OVERLAP = 30 * 24 * 3600
_MOST_GLOBS = 50
_NAMESPACE = re.compile(r"[A-Za-z0-9_.:*-]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def create_webhook(
    *,
    actor: Actor,
    name: str,
    url: str,
    filters: WebhookFilter | None = None,
    cursor: str = "",
    reason: str = "",
) -> tuple[Webhook, str]:
    """Create a webhook that may see what `actor` may see now, even if the actor changes later.
    Returns it with its secret, once. It starts with the next change, or after `cursor`.

    Raises Invalid for a URL that can never be called, and Gone for an expired cursor.
    """
    require(actor, Role.ADMIN)
    filters = filters or WebhookFilter()
    _check(name, url, filters)
    with transaction.atomic():
        database.lock("webhooks", actor.workspace_id)
        place, place_at = find_position(actor, cursor)
        mine = Webhook.objects.filter(workspace_id=actor.workspace_id)
        if mine.count() >= MOST_PER_WORKSPACE:
            raise QuotaExceeded(
                "quota exceeded: webhooks", hint=f"A workspace has at most {MOST_PER_WORKSPACE}."
            )
        hook = Webhook.objects.create(
            workspace_id=actor.workspace_id,
            public_id=uuid7(),
            name=name.strip(),
            url=url,
            **_columns(filters),
            grant_namespaces=list(actor.namespaces),
            grant_thread_prefixes=list(actor.thread_prefixes),
            created_by=actor.name,
            place_xid=place.xid,
            place_id=place.id,
            place_at=place_at,
        )
        secret = make_secret(hook)
        record_verb(actor, hook, "create", reason, to=egress.origin_of(url))
    return find_webhook(actor, hook.public_id), secret


def change_webhook(
    *,
    actor: Actor,
    webhook_id: str,
    name: str | None = None,
    url: str | None = None,
    filters: WebhookFilter | None = None,
    reason: str = "",
) -> Webhook:
    """Change the given fields. A new filter applies to changes that are not deliveries yet. What
    the webhook may see does not change."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        changed: dict[str, object] = _columns(filters) if filters is not None else {}
        if name is not None:
            changed["name"] = name.strip()
        if url is not None and url != hook.url:
            changed |= {"url": url, "failing_since": None, "last_error": ""}
        kept = hook.name if name is None else name
        _check(kept, hook.url if url is None else url, filters or WebhookFilter())
        if changed:
            Webhook.objects.filter(pk=hook.pk).update(**changed, updated_at=Now())
            to = {} if url is None else {"to": egress.origin_of(url)}
            record_verb(actor, hook, "change", reason, changed=sorted(changed), **to)
    return find_webhook(actor, webhook_id)


def rotate_secret(
    *, actor: Actor, webhook_id: str, overlap_seconds: int = DEFAULT_OVERLAP, reason: str = ""
) -> tuple[Webhook, str]:
    """Create a new secret, which is returned once. The former secrets also sign for
    `overlap_seconds`; 0 ends them immediately, for a secret that leaked."""
    require(actor, Role.ADMIN)
    if not 0 <= overlap_seconds <= LONGEST_OVERLAP:
        limits = f"must be between 0 and {LONGEST_OVERLAP}"
        raise Invalid(f"overlap_seconds {limits}", [Fault("/overlap_seconds", limits)])
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        retire_secrets(hook, timedelta(seconds=overlap_seconds))
        secret = make_secret(hook)
        record_verb(actor, hook, "rotate", reason, overlap_seconds=overlap_seconds)
    return find_webhook(actor, webhook_id), secret


def delete_webhook(*, actor: Actor, webhook_id: str, reason: str = "") -> None:
    """Delete a webhook with its deliveries. A delivery in progress may still arrive."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        hook = lock_webhook(actor, webhook_id)
        record_verb(actor, hook, "delete", reason)
        hook.delete()


def find_webhook(actor: Actor, webhook_id: str) -> Webhook:
    """With its counts (models.webhooks.with_counts)."""
    rows = Webhook.objects.visible_to(actor).with_counts()
    return find_row(rows, "webhook", public_id=webhook_id)


def find_delivery(actor: Actor, delivery_id: str) -> WebhookDelivery:
    rows = WebhookDelivery.objects.visible_to(actor).select_related("webhook")
    return find_row(rows, "delivery", public_id=delivery_id)


def lock_webhook(actor: Actor, webhook_id: str) -> Webhook:
    """The webhook, locked until the end of the transaction. Lock it before its deliveries, as
    workers do. No erasure runs meanwhile, because it locks deliveries in another order."""
    erasures_sql.lock_erasure(actor.workspace_id, shared=True)
    rows = Webhook.objects.visible_to(actor).select_for_update(no_key=True)
    return find_row(rows, "webhook", public_id=webhook_id)


def find_position(actor: Actor, cursor: str) -> tuple[Position, datetime]:
    """The position that a cursor names, or the end of the feed."""
    end = feed_sql.read_end(actor.workspace_id)
    with cursor_in_body():
        return open_cursor(cursor, end) if cursor else (end.position, end.at)


def _columns(filters: WebhookFilter) -> dict[str, object]:
    return {
        "kinds": list(filters.kinds),
        "namespaces": list(filters.namespaces),
        "key": filters.key,
        "prefix": filters.prefix,
        "thread": filters.thread_id,
        "run": filters.run_id,
    }


def _check(name: str, url: str, filters: WebhookFilter) -> None:
    faults = []
    if not name.strip() or len(name.strip()) > 128 or _CONTROL.search(name):
        faults.append(Fault("/name", "must have 1 to 128 characters"))
    try:
        egress.check_url(url, allow_private=settings.WEBHOOK_ALLOW_PRIVATE)
    except egress.Refused as refused:
        faults.append(Fault("/url", str(refused)))
    faults += _check_globs(
        "/filter/kinds",
        filters.kinds,
        changes.kinds_matching,
        "must be a kind of change such as entry.put, or a glob that matches one such as run.*",
    )
    faults += _check_globs(
        "/filter/namespaces",
        filters.namespaces,
        _NAMESPACE.fullmatch,
        "must be a name or a glob such as team_*",
    )
    for field, most in (("key", 512), ("prefix", 512), ("thread_id", 128), ("run_id", 128)):
        text = getattr(filters, field)
        if len(text.encode(errors="replace")) > most or _CONTROL.search(text):
            faults.append(Fault(f"/filter/{field}", f"at most {most} bytes, no control characters"))
    refuse(faults, "the webhook is not valid")


def _check_globs(
    pointer: str, globs: Sequence[str], is_legal: Callable[[str], object], message: str
) -> list[Fault]:
    if len(globs) > _MOST_GLOBS:
        return [Fault(pointer, f"at most {_MOST_GLOBS}")]
    return [
        Fault(f"{pointer}/{number}", message)
        for number, glob in enumerate(globs)
        if len(glob) > 128 or not is_legal(glob)
    ]


def record_verb(actor: Actor, hook: Webhook, verb: str, reason: str, **detail: object) -> None:
    # The subject is its name, as for tokens: restricted readers of the audit must not learn ids of
    # webhooks that they cannot see.
    trace = journal.Trace(f"webhook.{verb}", key=hook.name, detail=detail)
    journal.record(actor, [trace], reason=reason)
