"""The timeline of a run: its revisions, with tool calls, tickets and dispatches between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from state_admin.models import (
    Dispatch,
    DispatchStatus,
    Message,
    Revision,
    Run,
    Ticket,
    TicketStatus,
)

from .addresses import run_action_url, run_url, thread_url
from .thread_states import describe_touched_keys

_PAGE = 40
_DISPATCHES = 50
_CALLS = 200
_CLIP = 200

_DECIDED = {
    TicketStatus.RESUMED: ("done", "approved"),
    TicketStatus.CANCELLED: ("failed", "refused"),
    TicketStatus.VOID: ("", "void"),
}
_DISPATCHED = {
    DispatchStatus.CLAIMED: "running",
    DispatchStatus.QUEUED: "waiting",
    DispatchStatus.ACKED: "done",
    DispatchStatus.DEAD: "failed",
}


@dataclass(frozen=True)
class TimelineStep:
    """A revision that the run created, with its messages and their tool calls."""

    revision: Revision
    url: str
    messages: tuple[int, int] | None
    messages_url: str
    knowledge_url: str
    resume_url: str
    calls: list[tuple[int, list[str]]] = field(default_factory=list)

    @property
    def touched(self) -> str:
        return describe_touched_keys(self.revision)


@dataclass(frozen=True)
class Event:
    """A tool call, ticket or dispatch of the run: an event that is not a revision."""

    at: datetime
    icon: str
    state: str
    status_label: str
    name: str
    note: str = ""
    url: str = ""


def read_timeline(
    run: Run, tickets: Sequence[Ticket], before: int | None
) -> tuple[list[TimelineStep | Event], str]:
    """A page of the timeline, newest first, and the URL of the next page. The run's revisions are
    between its first and its last, so this reads one range of the primary key."""
    rows = Revision.objects.filter(
        thread=run.thread, number__gte=run.start_revision - 1, number__lte=run.last_revision
    ).order_by("-number")
    if before:  # includes the last revision of the previous page, at which this page's events end
        rows = rows.filter(number__lte=before)
    skipped = 1 if before else 0
    revisions = list(rows[: _PAGE + 1 + skipped])
    until = revisions[0].at if before and revisions else None
    revisions = revisions[skipped:]
    more = len(revisions) > _PAGE
    since = revisions[_PAGE - 1].at if more else None
    events = [
        event
        for event in (*_of_tickets(tickets), *_of_dispatches(run))
        if (since is None or event.at >= since) and (until is None or event.at < until)
    ]
    older = run_url(run.public_id, before=revisions[_PAGE - 1].number) if more else ""
    return list(_between(_steps(run, revisions)[:_PAGE], events)), older


def _between(
    steps: Sequence[TimelineStep], events: Sequence[Event]
) -> Iterator[TimelineStep | Event]:
    """The steps in order, with the events inserted by time."""
    remaining = sorted(events, key=lambda event: event.at)
    for step in steps:
        while remaining and remaining[-1].at > step.revision.at:
            yield remaining.pop()
        yield step
    yield from reversed(remaining)


def _steps(run: Run, revisions: Sequence[Revision]) -> list[TimelineStep]:
    thread_id = run.thread.public_id
    steps = []
    for row, earlier in zip(revisions, [*revisions[1:], None], strict=True):
        if row.run_id != run.pk:
            continue
        count = earlier.message_count if earlier else row.message_count
        first, last = count + 1, row.message_count
        steps.append(
            TimelineStep(
                row,
                thread_url(thread_id, tab="state", at=row.number),
                (first, last) if last >= first else None,
                thread_url(thread_id, message=first),
                run_action_url("knowledge", run.public_id, step=row.step or 1),
                run_action_url("resume", run.public_id, revision=row.number),
            )
        )
    ranges = [step.messages for step in steps if step.messages]
    if ranges:
        first, last = ranges[-1][0], ranges[0][1]
        log = Message.objects.filter(thread=run.thread, seq__gte=first, seq__lte=last)
        for seq, called in log.calls().order_by("-seq")[:_CALLS]:
            for step in steps:
                if step.messages and step.messages[0] <= seq <= step.messages[1]:
                    step.calls.append((seq, called))
    return steps


def _of_tickets(tickets: Sequence[Ticket]) -> Iterator[Event]:
    for ticket in tickets:
        name = ticket.tool_name or ticket.public_id
        yield Event(ticket.created_at, "circle-check", "waiting", "requested", name, ticket.reason)
        if ticket.status == TicketStatus.PENDING or ticket.decided_at is None:
            continue
        state, label = _DECIDED[TicketStatus(ticket.status)]
        answer = (ticket.payload or "")[:_CLIP] if label == "approved" else ""
        note = f"by {ticket.decided_by}" + (f": {answer}" if answer not in ("", "null") else "")
        yield Event(
            ticket.decided_at, "circle-check", state, label, name, note if ticket.decided_by else ""
        )


def _of_dispatches(run: Run) -> Iterator[Event]:
    for dispatch in Dispatch.objects.filter(run=run).order_by("-pk")[:_DISPATCHES]:
        tries = f"attempt {dispatch.attempts} of {dispatch.max_attempts}"
        parts = [f"for {dispatch.agent_id}" if dispatch.agent_id else "", dispatch.last_error]
        yield Event(
            dispatch.created_at,
            "inbox",
            _DISPATCHED.get(DispatchStatus(dispatch.status), ""),
            f"dispatch {dispatch.get_status_display().lower()}",
            f"…{dispatch.public_id[-8:]}",
            ", ".join(part for part in (*parts, tries if dispatch.attempts else "") if part)[
                :_CLIP
            ],
        )
