"""Signatures of webhooks according to the Standard Webhooks specification, whose libraries verify
them.

`webhook-signature: v1,<base64> v1,<base64>`: HMAC-SHA256 over
`<webhook-id>.<webhook-timestamp>.<body>`, one for each valid secret.
https://github.com/standard-webhooks/standard-webhooks
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"


def spell(secret: bytes) -> str:
    """The text form of a secret: `whsec_<base64>`."""
    return PREFIX + base64.b64encode(secret).decode()


def sign(secrets: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: newest secret first."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()
        for secret in secrets
    )
