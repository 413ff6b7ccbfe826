"""Stores the first response to an idempotent request, in the transaction of its effect."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from state_admin.domain import values
from state_admin.models import IdempotencyRecord

from .errors import MEDIA_TYPE, Gone, InFlight, Invalid


@dataclass(frozen=True)
class StoredResponse:
    """The stored response to an earlier request."""

    status: int
    headers: dict[str, str]
    body: bytes


def claim(scope: str, fingerprint: str) -> StoredResponse | None:
    """Reserve this request until the end of the transaction.

    None: the caller must perform it. A StoredResponse: it was performed already. Raises InFlight if
    it is in progress, and Invalid if the key was used for another request. An advisory lock fails
    immediately, where the unique index would make the second caller wait.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"replay {scope}"]
        )
        (mine,) = cursor.fetchone()
    if not mine:
        raise InFlight("a request with this Idempotency-Key is still in flight")
    record = IdempotencyRecord.objects.filter(scope=scope).first()
    if record is None:
        IdempotencyRecord.objects.create(scope=scope, fingerprint=fingerprint)
        return None
    if record.fingerprint != fingerprint:
        raise Invalid(
            "this Idempotency-Key was used for a different request",
            hint="Use a new key for each different request.",
        )
    return StoredResponse(record.status, record.headers, bytes(record.body))


def keep(
    scope: str, workspace_id: int | None, status: int, headers: dict[str, str], body: bytes
) -> None:
    """Store the response to a request that `claim` reserved. `workspace_id`: whose data it
    contains."""
    IdempotencyRecord.objects.filter(scope=scope).update(
        workspace_id=workspace_id, status=status, headers=headers, body=body
    )


_WITHDRAWN = Gone(
    "the stored response of this request was deleted",
    hint=("The request was applied once. A redaction or an erasure deleted the response later."),
)


def withdraw(workspace_id: int) -> int:
    """Delete all responses stored for a workspace, but not the fact that the requests were
    performed: a repetition gets 410 Gone. Returns their number.

    All of them, because any response may contain a part of a secret: a conflict, a page, a snippet.
    """
    kept = IdempotencyRecord.objects.filter(workspace_id=workspace_id).exclude(body=b"")
    return kept.update(
        status=_WITHDRAWN.status,
        headers={"Content-Type": MEDIA_TYPE},
        body=values.dump(_WITHDRAWN.document()).encode(),
    )
