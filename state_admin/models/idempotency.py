"""Idempotency records: the first response to a request with an Idempotency-Key."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class IdempotencyRecord(models.Model):
    # SHA-256 over the credentials and the key, so that the keys of two clients never collide.
    scope = models.CharField(max_length=64, primary_key=True)
    # The workspace whose data the response may contain.
    workspace = models.ForeignKey(
        "Workspace", null=True, blank=True, on_delete=models.CASCADE, db_index=False
    )
    # HMAC-SHA-256 over method, path and body.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "idempotency_records"
        indexes = [
            # The sweep deletes records older than a day.
            models.Index(fields=["created_at"], name="idempotency_age"),
        ]
