"""The encrypted secrets of the config registry, and the query of a model's window that appends run.
The records of the registry are entries."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from state_admin.domain.config import Kind

from . import hot
from .entries import Entry


class ConfigSecret(models.Model):
    """A secret, for which the entry's value contains a marker with `public_id`
    (docs/adr/0010-secrets-of-the-config.md). It exists as long as the newest value has its marker;
    when replaced, cleared or deleted, its row is deleted."""

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="secrets", db_index=False
    )
    pointer = models.CharField(max_length=128, db_collation="C")
    public_id = models.CharField(max_length=36, db_collation="C")
    # Nonce and AES-256-GCM ciphertext; workspace, namespace, key, pointer and public_id are
    # authenticated with it.
    ciphertext = models.BinaryField()
    # The fingerprint of the key that encrypted it: keys are rotated.
    key_id = models.CharField(max_length=16)
    set_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "config_secrets"
        constraints = [
            # The secret at a pointer of an entry; the secrets that a write made obsolete.
            models.UniqueConstraint(fields=["entry", "pointer"], name="config_secrets_place_unique")
        ]


# The window of the model that an agent's record names. A tombstone in place of a number is ignored.
# NOT MATERIALIZED: two lookups in the unique index. Without it PostgreSQL materializes every entry,
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
    """The context window and the maximum output, in tokens, of an agent's model; None where
    unknown."""
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
