"""Appends messages to a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from state_admin.domain import messages as rules
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.messages import ParsedMessage
from state_admin.domain.values import Fault, Raw
from state_admin.models import Message, Thread, snapshots_sql
from state_admin.models.snapshots_sql import AdvancedThread, Move, NewMessage

from . import journal, threads
from .actors import require
from .batches import BatchOperation, OperationResult, run_batch
from .compactions import request_when_due
from .errors import Conflict, Invalid, VersionConflict
from .finding import refuse
from .state_keys import hold_registry

MAX_MESSAGES = 1000


@dataclass(frozen=True)
class Appended:
    """The (id, seq) of each message, the thread's counts after the append, and the results of the
    operations."""

    placed: list[tuple[str, int]]
    thread: AdvancedThread
    outcomes: list[OperationResult]


def parse_messages(raws: Sequence[Raw]) -> list[ParsedMessage]:
    """Check the messages of a request. Raises Invalid with all faults."""
    if not 1 <= len(raws) <= MAX_MESSAGES:
        raise Invalid(
            f"a request takes 1 to {MAX_MESSAGES} messages, not {len(raws)}",
            [Fault("/messages", f"must have 1 to {MAX_MESSAGES} items")],
        )
    parsed: list[ParsedMessage] = []
    faults: list[Fault] = []
    for index, raw in enumerate(raws):
        pointer = f"/messages/{index}"
        try:
            values.check(raw, pointer)
            parsed.append(rules.parse_message(raw, pointer))
        except (values.RefusedJSON, rules.MessageRefused) as refused:
            faults += refused.faults
    refuse(faults, "a message cannot be stored")
    ids = [message.id for message in parsed if message.id is not None]
    if repeated := {identity for identity in ids if ids.count(identity) > 1}:
        raise Conflict(f"duplicate message id in the request: {min(repeated)}")
    return parsed


def append_messages(
    *,
    actor: Actor,
    thread_id: str,
    messages: Sequence[Raw],
    expected_message_count: int | None = None,
    expected_revision: int | None = None,
    operations: Sequence[BatchOperation] = (),
    reason: str = "",
) -> Appended:
    """Append messages outside a commit: state and revision do not change.

    `operations` on entries are an atomic batch, stored together with the messages or not at all.
    Raises Invalid, Conflict (a repeated id), VersionConflict (the message count is not the expected
    one), RevisionConflict (the state does not have `expected_revision`), and what the batch raises.
    """
    require(actor, Role.EDITOR)
    parsed = parse_messages(messages)
    with transaction.atomic():
        if operations:  # prevents a deadlock with uninstall_plugin, which locks entries first
            hold_registry(actor)
        thread = threads.find_thread(actor, thread_id, lock=True)
        threads.guard(thread, expected_revision)
        guard(thread, expected_message_count)
        rows = new_messages(parsed)
        moved = snapshots_sql.append(
            Move(
                thread=thread.pk,
                thread_id=thread_id,
                action="message.append",
                stamp=journal.parameters(actor, reason),
                messages=rows,
            )
        )
        check_inserted(thread, parsed, moved)
        requested = request_when_due(actor, thread, moved.context_tokens)
        outcomes = run_batch(actor=actor, operations=operations) if operations else []
        if requested or operations:
            journal.align_feed_clock(actor)
    first = moved.message_count - len(parsed) + 1
    placed = [(row.public_id, place) for place, row in enumerate(rows, start=first)]
    return Appended(placed, moved, outcomes)


def guard(thread: Thread, expected_message_count: int | None) -> None:
    """Raise VersionConflict unless the thread has the number of messages that the caller
    expects."""
    if expected_message_count is not None and expected_message_count != thread.message_count:
        raise VersionConflict(expected_message_count, thread.message_count, of="thread")


def new_messages(parsed: Sequence[ParsedMessage]) -> list[NewMessage]:
    """Messages as they are appended; those without an id get one."""
    return [
        NewMessage(
            public_id=message.id or uuid7(),
            role=message.role,
            visibility=message.visibility,
            body=message.body,
            opens=values.dump(list(message.opens)),
            answers=message.answers,
            tokens=message.tokens,
        )
        for message in parsed
    ]


def check_inserted(thread: Thread, parsed: Sequence[ParsedMessage], moved: AdvancedThread) -> None:
    """Raise Conflict, which rolls back, if the thread already has a message with one of the ids."""
    if moved.inserted == len(parsed):
        return
    ids = [message.id for message in parsed if message.id]
    before = thread.message_count
    stored = Message.objects.filter(thread=thread, public_id__in=ids, seq__lte=before)
    raise Conflict(f"message already committed: {stored.in_order().values_list('public_id')[0][0]}")
