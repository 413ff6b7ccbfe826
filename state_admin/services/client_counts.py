"""How many clients of all web processes would receive a change now."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import cast

import psycopg
from django.db import connection

from state_admin.streams.client_counts import CHANNEL, HUB_CONNECTION, Question

# Seconds. A hub answers at its next poll.
_PATIENCE = 0.5

_COUNT_HUBS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s
"""


@dataclass(frozen=True)
class ClientCount:
    """`silent`: web processes that did not answer in time."""

    clients: int
    silent: int


def count_clients(workspace_id: int, kind: str, *, thread_id: str, run_id: str) -> ClientCount:
    """The clients with a token that would receive the change in a stream or long poll. Clients that
    send a request from time to time are not known.

    Waits for at most half a second, and only if there are streams. Must not be called in a transaction,
    because the question would be sent at its end.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_HUBS, [HUB_CONNECTION])
        (hubs,) = cursor.fetchone()
        if not hubs:
            return ClientCount(0, 0)
        question = Question(secrets.token_hex(8), workspace_id, kind, thread_id, run_id)
        cursor.execute(f"LISTEN {question.channel}")
        try:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, question.dump()])
            session = cast("psycopg.Connection[object]", connection.connection)
            answers = list(session.notifies(timeout=_PATIENCE, stop_after=hubs))
        finally:
            cursor.execute(f"UNLISTEN {question.channel}")
    mine = [int(answer.payload) for answer in answers if answer.channel == question.channel]
    return ClientCount(sum(mine), max(hubs - len(mine), 0))
