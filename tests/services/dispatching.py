"""Mailboxes with thousands of dispatches."""

from __future__ import annotations

from django.db import connection

from state_admin.models import Mailbox, dispatches_sql
from tests.builders import Person


def fill(
    person: Person, *, threads: int, each: int, prefix: str = "x", priority: int | None = None
) -> None:
    """Many queued dispatches, by one statement, as enqueue would store them. The planner needs more
    than a few."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH made AS (
                INSERT INTO threads (workspace_id, public_id, resource_id, title, metadata,
                    created_from, revision, message_count, context_tokens)
                SELECT %(w)s, %(prefix)s || n, '', '', '{}', '{}', 0, 0, 0
                FROM generate_series(1, %(threads)s) n RETURNING id
            ), boxes AS (
                INSERT INTO mailboxes (thread_id, workspace_id, epoch, next_agent)
                SELECT id, %(w)s, 0, '' FROM made RETURNING thread_id
            )
            INSERT INTO dispatches (workspace_id, thread_id, public_id, agent_id, payload, priority,
                dedupe_key, epoch, status, attempts, max_attempts, replays, last_error,
                claim_digest, claimed_by)
            SELECT %(w)s, thread_id, thread_id || '-' || n,
                CASE WHEN thread_id %% 50 = 0 THEN 'planner' ELSE 'writer' END, n::text::json,
                coalesce(%(priority)s, (thread_id * 31 + n * 17) %% 256),
                '', 0, 'Queued', 0, 5, 0, '', '', ''
            FROM boxes, generate_series(1, %(each)s) n
            """,
            {
                "w": person.actor.workspace_id,
                "threads": threads,
                "each": each,
                "prefix": prefix,
                "priority": priority,
            },
        )
    fresh = Mailbox.objects.filter(thread__public_id__startswith=prefix)
    dispatches_sql.refresh(list(fresh.values_list("pk", flat=True)), "test")
