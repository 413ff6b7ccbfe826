"""Creates, derives and rotates the signing secrets of webhooks, which are not stored
(docs/adr/0007)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from state_admin.domain import signatures
from state_admin.models import Webhook, WebhookSecret

from .encryption import key_id

# The maximum number of secrets that sign at the same time. Each makes the signature header longer.
MOST_LIVE = 4
_PURPOSE = "commonhold.webhook.secret"


def make_secret(hook: Webhook) -> str:
    """Create a new secret of a webhook. Returns its text, which is available only here."""
    key = settings.SECRET_KEY
    row = WebhookSecret.objects.create(
        webhook=hook, salt=secrets.token_hex(32), key_id=key_id(_PURPOSE, key)
    )
    return signatures.spell(_derive(key, row.salt))


def retire_secrets(hook: Webhook, overlap: timedelta) -> None:
    """Let the current secrets expire after `overlap`. The oldest ones beyond MOST_LIVE, including
    the next secret, expire immediately."""
    live = WebhookSecret.objects.filter(webhook=hook).live()
    end = Now() + overlap
    live.filter(Q(expires_at=None) | Q(expires_at__gt=end)).order_by().update(expires_at=end)
    surplus = list(live.values_list("pk", flat=True)[MOST_LIVE - 1 :])
    WebhookSecret.objects.filter(pk__in=surplus).update(expires_at=Now())


def live_secrets(webhook_pk: int) -> list[bytes]:
    """Return the secrets that sign now, newest first, without those derived from a SECRET_KEY that
    is no longer configured."""
    keys = _keys()
    rows = WebhookSecret.objects.filter(webhook_id=webhook_pk).live()
    return [_derive(keys[row.key_id], row.salt) for row in rows if row.key_id in keys]


def underivable() -> Iterator[str]:
    """The webhooks (`workspace/name`) that should sign with a secret of a SECRET_KEY that is no
    longer configured."""
    yield from _name_webhooks(WebhookSecret.objects.live().exclude(key_id__in=key_ids()))


def of_former_keys() -> Iterator[str]:
    """The webhooks (`workspace/name`) that sign with a secret of a key in SECRET_KEY_FALLBACKS."""
    yield from _name_webhooks(WebhookSecret.objects.live().filter(key_id__in=key_ids()[1:]))


def _name_webhooks(rows: QuerySet[WebhookSecret]) -> Iterator[str]:
    names = rows.order_by("webhook_id").values_list("webhook__workspace__slug", "webhook__name")
    yield from (f"{slug}/{name}" for slug, name in names.distinct())


def key_ids() -> list[str]:
    """The ids of the keys from which secrets are derived, that of new ones first."""
    return list(_keys())


def _keys() -> dict[str, str]:
    """The configured keys by their ids, the one of new secrets first."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return {key_id(_PURPOSE, key): key for key in keys}


def _derive(key: str, salt: str) -> bytes:
    return salted_hmac(_PURPOSE, salt, secret=key, algorithm="sha256").digest()
