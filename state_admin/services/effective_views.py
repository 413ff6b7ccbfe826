"""Reads the effective view of a thread: its log as a model should see it."""

from __future__ import annotations

from itertools import takewhile

from django.db.models import F, Q, Sum

from state_admin.models import Message, Thread
from state_admin.models.messages import MessageRole

# System messages that a log may begin with and that stay in every context, as far as people see.
_LEADING = 20


def effective_messages(thread: Thread, upto: int | None = None) -> list[Message]:
    """The log as a model should see it: the folded beginning as its newest summary, then the rest,
    or no more of it than the messages up to and with `upto`.

    Every fold begins at the first message, so the one that reaches furthest contains the others.
    Two index ranges, whatever the length of the log.
    """
    log = Message.objects.filter(thread=thread)
    summary = active_summary(thread)
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
    summary = active_summary(thread)
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
    """The summary that the effective view begins with, if any."""
    standing = Message.objects.filter(thread=thread).active_summaries()
    return standing.order_by("-folds_to", "-seq").first()


def sum_effective_tokens(thread: Thread) -> int:
    """The estimated tokens of the effective view, without loading it."""
    log = Message.objects.filter(thread=thread, folds_to=None)
    summary = active_summary(thread)
    if summary is not None:
        log = log.filter(Q(seq__gt=summary.folds_to) | Q(seq=summary.fold_carries))
    raw: int = log.aggregate(total=Sum("estimated_tokens"))["total"] or 0
    return raw + (summary.estimated_tokens if summary is not None else 0)


def recount_context(thread: Thread) -> None:
    """Set the thread's context_tokens after a fold was laid or lifted. Under the thread's lock."""
    Thread.objects.filter(pk=thread.pk).update(context_tokens=sum_effective_tokens(thread))
