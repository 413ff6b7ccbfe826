"""Changes state, log and metadata of a thread together, outside any run (the Agent Protocol)."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import Thread

from . import exports, journal, messages, state_keys, threads
from .actors import require


def patch_thread(
    *,
    actor: Actor,
    thread_id: str,
    values: Mapping[str, Raw] | None = None,
    new_messages: Sequence[Raw] = (),
    metadata: Raw | None = None,
    expected_revision: int | None = None,
    reason: str = "",
) -> Thread:
    """Set state keys as one new revision, append `new_messages`, and merge `metadata`: all or
    nothing. An argument that is None or empty has no effect.

    Raises RevisionConflict if the state is not at `expected_revision`, and what
    exports.import_snapshot, messages.append_messages and threads.change_thread raise.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        state_keys.hold_registry(actor)  # must be called before the thread is locked
        threads.guard(threads.find_thread(actor, thread_id, lock=True), expected_revision)
        if new_messages:  # first, because the new revision stores the number of messages
            messages.append_messages(
                actor=actor, thread_id=thread_id, messages=new_messages, reason=reason
            )
        if values:
            exports.import_snapshot(
                actor=actor,
                thread_id=thread_id,
                revision=expected_revision or 0,
                extensions=values,
                mode="merge",
                pointer="/values",
                reason=reason,
            )
        if metadata is not None:
            threads.change_thread(
                actor=actor,
                thread_id=thread_id,
                metadata=metadata,
                merge=operator.or_,
                reason=reason,
            )
        journal.align_feed_clock(actor)
        return threads.read_thread(actor, thread_id)
