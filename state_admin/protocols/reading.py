"""Reads the newest messages and the state of a thread, for AG-UI and the AI SDK."""

from __future__ import annotations

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import Message, Thread
from state_admin.services import snapshots

from . import parts

# Maximum number of messages read from a thread: the newest ones.
MOST_MESSAGES = 500


def read_messages(thread: Thread) -> list[parts.ThreadMessage]:
    """The newest messages that are not internal, in order."""
    rows = Message.objects.filter(thread=thread).external().select_related("run")
    return [parts.read(row) for row in rows.order_by("-seq")[:MOST_MESSAGES]][::-1]


def read_state(actor: Actor, thread_id: str) -> JSON:
    """The persistent state, as in the reference implementation; other keys are not sent."""
    snapshot = snapshots.read_snapshot(actor=actor, thread_id=thread_id)
    held = {row.key: values.load(row.value) for row in snapshot.rows if row.persistent}
    return {"revision": snapshot.revision, "extensions": held}
