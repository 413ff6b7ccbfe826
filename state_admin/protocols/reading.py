"""Reads the newest messages and the state of a thread, for the protocols."""

from __future__ import annotations

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import Message, Thread
from state_admin.models.large_columns import StoredBytes, without_related
from state_admin.models.messages import MessageQuerySet
from state_admin.services import snapshots
from state_admin.services.batching import split_by_size

from . import parts

# Maximum number of messages read from a thread: the newest ones, up to batching.MOST_BYTES.
MOST_MESSAGES = 500


def read_messages(thread: Thread) -> tuple[list[parts.ThreadMessage], bool]:
    """The newest messages that are not internal, in order, and whether older ones are left out."""
    rows = without_related(Message.objects.filter(thread=thread).select_related("run"))
    newest, cut = newest_messages(rows)
    return [parts.read(row) for row in newest], cut


def newest_messages(rows: MessageQuerySet) -> tuple[list[Message], bool]:
    """The newest of `rows` that are not internal, in order, and whether older ones are left out."""
    rows = rows.external()
    sized = list(rows.order_by("-seq").values_list("seq", StoredBytes("body"))[: MOST_MESSAGES + 1])
    newest = next(split_by_size(sized, MOST_MESSAGES), [])
    return list(rows.filter(seq__in=newest).in_order()), len(newest) < len(sized)


def read_state(actor: Actor, thread_id: str, revision: int | None = None) -> JSON:
    """The persistent state, as in the reference implementation; other keys are not sent."""
    snapshot = snapshots.read_snapshot(actor=actor, thread_id=thread_id, revision=revision)
    held = {row.key: values.load(row.value) for row in snapshot.rows if row.persistent}
    return {"revision": snapshot.revision, "extensions": held}
