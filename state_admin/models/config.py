"""The secrets of the config registry, encrypted, and the one read of it that appends may wait for.
Its records are entries like any other."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.config import Kind

from . import hot
from .entries import Entry


class ConfigSecret(models.Model):
    """One secret, in whose place the entry's value holds a marker with `public_id` (docs/adr/0010).

    It lives as long as the newest value names it: replaced, cleared or deleted, it is gone.
    """

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="secrets", db_index=False
    )
    pointer = models.CharField(max_length=128, db_collation="C")
    public_id = models.CharField(max_length=36, db_collation="C")
    # Nonce and AES-256-GCM ciphertext, bound to workspace, namespace, key, pointer and public_id.
    ciphertext = models.BinaryField()
    # Which key encrypted it, as a fingerprint: keys are rotated.
    key_id = models.CharField(max_length=16)
    set_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "config_secrets"
        constraints = [
            # The secret at a place of an entry; the secrets that a write made obsolete.
            models.UniqueConstraint(
                fields=["entry", "pointer"], name="config_secrets_place_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pointer} of entry {self.entry_id}"


# Of the model that an agent's record names. What redaction put in a number's place is no number.
# NOT MATERIALIZED: two probes of the unique index. Else PostgreSQL lays out every entry first,
# because both sides of the join read them.
_WINDOW = """
WITH records AS NOT MATERIALIZED (
    SELECT n.name, e.key, e.value FROM namespaces n JOIN entries e ON e.namespace_id = n.id
    WHERE n.workspace_id = %(workspace)s AND NOT e.deleted
        AND (e.expires_at IS NULL OR e.expires_at > now())
)
SELECT CASE json_typeof(m.value -> 'context_window') WHEN 'number'
        THEN (m.value ->> 'context_window')::bigint END,
    CASE json_typeof(m.value -> 'max_output_tokens') WHEN 'number'
        THEN (m.value ->> 'max_output_tokens')::bigint END
FROM records a JOIN records m ON m.name = %(models)s AND m.key = a.value ->> 'model_id'
WHERE a.name = %(agents)s AND a.key = %(agent)s
"""


def find_agent_window(workspace_id: int, agent_id: str) -> tuple[int | None, int | None]:
    """Context window and longest answer, in tokens, of the model that an agent talks with; None:
    nobody says."""
    row = hot.fetch_one(
        _WINDOW,
        {
            "workspace": workspace_id,
            "agent": agent_id,
            "agents": Kind.AGENTS.namespace,
            "models": Kind.MODELS.namespace,
        },
    )
    return (row[0], row[1]) if row else (None, None)
