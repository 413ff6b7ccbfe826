"""Reads the effective view of a thread: its messages with summaries in place of those that they
summarize."""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile

from django.db.models import F, Q, Sum

from state_admin.models import Message, Revision, Thread
from state_admin.models.large_columns import StoredBytes
from state_admin.models.messages import MessageQuerySet, MessageRole

# The maximum number of leading system messages that `recent_messages` returns.
_LEADING = 20


def effective_messages(
    thread: Thread, upto: int | None = None, *, bodies: bool = True
) -> list[Message]:
    """Return the newest summary, if any, then the retained and the later messages. `upto`: only
    messages up to and including this seq. Without `bodies`, the later ones have `body_bytes` in place
    of their bodies.

    Every summary starts at the first message, so the one with the highest `folds_to` covers all
    others. Reads two index ranges.
    """
    log = Message.objects.filter(thread=thread)
    summary = active_summary(thread)
    tail = log.filter(folds_to=None)
    if not bodies:
        tail = tail.defer("body").annotate(body_bytes=StoredBytes("body"))
    if upto is not None:
        tail = tail.filter(seq__lte=upto)
    if summary is not None:
        tail = tail.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
        return [summary, *tail.in_order()]
    return list(tail.in_order())


def recent_messages(
    thread: Thread, most: int, at: Revision | None = None
) -> tuple[list[Message], int]:
    """Return the start of the effective view (the summary and leading system messages) and its
    newest `most` messages, without bodies (`MessageQuerySet.lines`); and the number of messages
    between them. `at`: the view that the thread had at this revision."""
    log = Message.objects.at_revision(at) if at else Message.objects.filter(thread=thread)
    summary = _newest_summary(log, at.at if at else None)
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


def active_summary(thread: Thread) -> Message | None:
    """Return the summary at the start of the effective view, if any."""
    return _newest_summary(Message.objects.filter(thread=thread))


def _newest_summary(log: MessageQuerySet, at: datetime | None = None) -> Message | None:
    return log.active_summaries(at).order_by("-folds_to", "-seq").first()


def sum_effective_tokens(thread: Thread) -> int:
    """Return the estimated tokens of the effective view, without loading it."""
    log = Message.objects.filter(thread=thread, folds_to=None)
    summary = active_summary(thread)
    if summary is not None:
        log = log.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
    raw: int = log.aggregate(total=Sum("estimated_tokens"))["total"] or 0
    return raw + (summary.estimated_tokens if summary is not None else 0)


def recount_context(thread: Thread) -> None:
    """Update the thread's context_tokens after a summary was added or undone. The caller must hold
    the thread's lock."""
    Thread.objects.filter(pk=thread.pk).update(context_tokens=sum_effective_tokens(thread))
