"""The signing secrets of webhooks: made, derived, rotated. Never stored (docs/adr/0007)."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from state_admin.domain import signatures
from state_admin.models import Webhook, WebhookSecret

# How many may sign at a time. More would only make headers longer.
MOST_LIVE = 4
_PURPOSE = "commonhold.webhook.secret"


def make_secret(hook: Webhook) -> str:
    """Give a webhook a new secret; answers how people carry it. It is never shown again."""
    key = settings.SECRET_KEY
    row = WebhookSecret.objects.create(
        webhook=hook, salt=secrets.token_hex(32), key_id=_fingerprint(key)
    )
    return signatures.spell(_derive(key, row.salt))


def retire_secrets(hook: Webhook, overlap: timedelta) -> None:
    """Let the present secrets sign for `overlap` more, beside the one that comes next."""
    live = WebhookSecret.objects.filter(webhook=hook).live()
    end = Now() + overlap
    live.filter(Q(expires_at=None) | Q(expires_at__gt=end)).order_by().update(expires_at=end)
    surplus = list(live.values_list("pk", flat=True)[MOST_LIVE - 1 :])
    WebhookSecret.objects.filter(pk__in=surplus).update(expires_at=Now())


def live_secrets(webhook_pk: int) -> list[bytes]:
    """The secrets that sign now, newest first; none when the SECRET_KEY they were derived from is
    no longer configured."""
    keys = {_fingerprint(key): key for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)}
    rows = WebhookSecret.objects.filter(webhook_id=webhook_pk).live()
    return [_derive(keys[row.key_id], row.salt) for row in rows if row.key_id in keys]


def _derive(key: str, salt: str) -> bytes:
    return salted_hmac(_PURPOSE, salt, secret=key, algorithm="sha256").digest()


def _fingerprint(key: str) -> str:
    """Names a SECRET_KEY without telling anything about it."""
    return salted_hmac(f"{_PURPOSE}.key", "", secret=key, algorithm="sha256").hexdigest()[:16]
