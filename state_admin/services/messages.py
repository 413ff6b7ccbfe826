"""Appends messages to a thread's log and reads its effective view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.db.models import F, Q, Sum

from state_admin.domain import messages as rules
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.ids import uuid7
from state_admin.domain.messages import ParsedMessage
from state_admin.domain.values import Fault, Raw
from state_admin.models import Message, Thread, snapshots_sql
from state_admin.models.messages import MessageRole
from state_admin.models.snapshots_sql import Advanced

from . import journal, threads
from .actors import require
from .batches import BatchOperation, Outcome, run_batch
from .errors import Conflict, Invalid, VersionConflict
from .state_keys import hold_registry

MAX_MESSAGES = 1000
# System messages that a log may begin with and that stay in every context, as far as people see.
_LEADING = 20


@dataclass(frozen=True)
class Appended:
    """The (id, seq) of each message, the thread's counts now, and what became of the operations."""

    placed: list[tuple[str, int]]
    thread: Advanced
    outcomes: list[Outcome]


def parse_messages(raws: Sequence[Raw]) -> list[ParsedMessage]:
    """Check the messages of one request; Invalid names every place that is wrong."""
    if not 1 <= len(raws) <= MAX_MESSAGES:
        raise Invalid(f"a request takes 1 to {MAX_MESSAGES} messages, not {len(raws)}")
    parsed: list[ParsedMessage] = []
    faults: list[Fault] = []
    for index, raw in enumerate(raws):
        pointer = f"/messages/{index}"
        try:
            values.check(raw, pointer)
            parsed.append(rules.parse_message(raw, pointer))
        except (values.RefusedJSON, rules.MessageRefused) as refused:
            faults += refused.faults
    if faults:
        raise Invalid("a message cannot be stored", faults)
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
    """Append to the log outside any commit: state and revision stay as they are.

    `operations` on entries, an atomic batch, land together with the messages or not at all. Raises
    Invalid, Conflict (a repeated id), VersionConflict (the log is not as long as expected),
    RevisionConflict (the state is not at `expected_revision`), and what the batch raises.
    """
    from .compactions import request_when_due  # compaction reads the log that this module writes

    require(actor, Role.EDITOR)
    parsed = parse_messages(messages)
    with transaction.atomic():
        if operations:  # who uninstalls a plugin comes from the entries to the threads
            hold_registry(actor)
        thread = threads.find_thread(actor, thread_id, lock=True)
        threads.guard(thread, expected_revision)
        guard(thread, expected_message_count)
        arrays = columns(parsed)
        moved = snapshots_sql.append(
            {
                **journal.stamp(actor, reason),
                **arrays,
                "workspace": actor.workspace_id,
                "thread": thread.pk,
                "thread_id": thread_id,
                "run": None,
            }
        )
        check_inserted(thread, parsed, moved)
        requested = request_when_due(actor, thread, moved.context_tokens)
        outcomes = run_batch(actor=actor, operations=operations) if operations else []
        if requested or operations:
            journal.align_feed_clock(actor)
    first = moved.message_count - len(parsed) + 1
    placed = list(zip(arrays["ids"], range(first, first + len(parsed)), strict=True))
    return Appended(placed, moved, outcomes)


def guard(thread: Thread, expected_message_count: int | None) -> None:
    """Raise VersionConflict when the log is not as long as the caller believes."""
    if expected_message_count is not None and expected_message_count != thread.message_count:
        raise VersionConflict(expected_message_count, thread.message_count, of="thread")


def columns(parsed: Sequence[ParsedMessage]) -> dict[str, Any]:
    """Messages as the arrays that the hot statements insert (models/snapshots_sql.py)."""
    return {
        "new_messages": len(parsed),
        "new_tokens": sum(message.tokens for message in parsed),
        "ids": [message.id or uuid7() for message in parsed],
        "roles": [message.role for message in parsed],
        "visibilities": [message.visibility for message in parsed],
        "bodies": [message.body for message in parsed],
        "opens": [values.dump(list(message.opens)) for message in parsed],
        "answers": [message.answers for message in parsed],
        "tokens": [message.tokens for message in parsed],
    }


def check_inserted(thread: Thread, parsed: Sequence[ParsedMessage], moved: Advanced) -> None:
    """Raise Conflict, which rolls back, when a message's id was in the log already."""
    if moved.inserted == len(parsed):
        return
    ids = [message.id for message in parsed if message.id]
    before = thread.message_count
    held = Message.objects.filter(thread=thread, public_id__in=ids, seq__lte=before)
    raise Conflict(f"message already committed: {held.in_order().values_list('public_id')[0][0]}")


def effective_messages(thread: Thread, upto: int | None = None) -> list[Message]:
    """The log as a model should see it: the folded beginning as its newest summary, then the rest,
     or no more of it than the messages up to and with `upto`.

     Every fold begins at the first message, so the one that reaches furthest contains the others
    . Two index ranges, whatever the length of the log.
    """
    log = Message.objects.filter(thread=thread)
    summary = standing_summary(thread)
    tail = log.filter(folds_to=None)
    if upto is not None:
        tail = tail.filter(seq__lte=upto)
    if summary is not None:
        tail = tail.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
        return [summary, *tail.in_order()]
    return list(tail.in_order())


def recent_messages(thread: Thread, most: int) -> tuple[list[Message], int]:
    """What the effective view begins with (the summary, system messages) and the newest `most`
    messages of it, without bodies (`MessageQuerySet.lines`), and how many stand in between."""
    log = Message.objects.filter(thread=thread)
    summary = standing_summary(thread)
    folded = summary.folds_to or 0 if summary else 0
    tail = log.filter(folds_to=None, seq__gt=folded).lines()
    newest = list(tail.order_by("-seq")[:most])[::-1]
    begins = []
    if summary is not None:
        lead = log.filter(Q(pk=summary.pk) | Q(seq=summary.fold_carries))
        begins = list(lead.lines().order_by(F("folds_to").asc(nulls_last=True)))
    if len(newest) < most:
        return [*begins, *newest], 0
    first = tail.filter(seq__lt=newest[0].seq).in_order()[:_LEADING]
    system = list(takewhile(lambda row: row.role == MessageRole.SYSTEM, first))
    between = newest[0].seq - 1 - folded - len(system)
    return [*begins, *system, *newest], between


def standing_summary(thread: Thread) -> Message | None:
    """The summary that the effective view begins with, if any."""
    standing = Message.objects.filter(thread=thread).standing_summaries()
    return standing.order_by("-folds_to", "-seq").first()


def sum_effective_tokens(thread: Thread) -> int:
    """The estimated tokens of the effective view, without loading it."""
    log = Message.objects.filter(thread=thread, folds_to=None)
    summary = standing_summary(thread)
    if summary is not None:
        log = log.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
    raw: int = log.aggregate(total=Sum("estimated_tokens"))["total"] or 0
    return raw + (summary.estimated_tokens if summary is not None else 0)


def recount_context(thread: Thread) -> None:
    """Set the thread's context_tokens after a fold was laid or lifted. Under the thread's lock."""
    Thread.objects.filter(pk=thread.pk).update(context_tokens=sum_effective_tokens(thread))
