"""The timeline of a run: its steps with their messages, tool calls and state changes, and between
them its tickets, dispatches, delegated runs, and the compactions of its thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.urls import reverse

from state_admin.domain.access import Actor
from state_admin.models import (
    Compaction,
    CompactionStatus,
    Dispatch,
    DispatchStatus,
    Message,
    Revision,
    Run,
    RunStatus,
    Ticket,
    TicketStatus,
)
from state_admin.templatetags.json_html import pretty
from state_admin.templatetags.threads import ended_as, failed_at_end
from state_admin.templatetags.ui import how_long, tokens

from . import paging
from .addresses import run_action_url, run_url, thread_action_url, thread_url, ticket_url
from .conversations import parsed
from .htmx import Request
from .mailbox import DISPATCH_STATES
from .run_costs import Prices, prices_of
from .state_changes import StateChanges, changes_of
from .text_budget import CLIP, TextBudget, TraceText

_Row = TypeVar("_Row", bound=Model)

PAGE = 40
ORDERS = ("oldest", "newest")
_EVENTS = 50  # of each kind on a page
# The kinds of events, by the parameters that continue them within a page of steps.
_KINDS = ("tickets", "dispatches", "compactions", "delegated")
_MESSAGES = 12  # of a step
_CALLS = 8  # of a message
_LINE = 160
# Calls and results of other pages are looked for in so many messages before and after the page.
_AROUND = 20
# Width of the drawing of bars, and of the shortest bar.
_WIDE, _THIN = 1000, 6

_DECIDED = {
    TicketStatus.RESUMED: ("done", "approved"),
    TicketStatus.CANCELLED: ("failed", "refused"),
    TicketStatus.VOID: ("", "void"),
}
_COMPACTED = {CompactionStatus.DONE: "done", CompactionStatus.FAILED: "failed"}


@dataclass(frozen=True)
class Bar:
    """When something happened within the run: `x` and `width` of a drawing that is _WIDE wide, and
    how long it took."""

    x: int
    width: int
    text: str


@dataclass
class TraceCall:
    """A tool call. `result` and `result_seq` are those of its tool message, if that is near."""

    name: str
    gist: str
    arguments: TraceText
    result: TraceText | None = None
    result_seq: int = 0
    result_url: str = ""
    failed: bool = False


@dataclass
class TraceMessage:
    """A message in one line, with its tool calls. `name`: of the tool that returned it."""

    seq: int
    role: str
    line: str
    url: str
    whole_url: str
    name: str = ""
    summary: bool = False
    failed: bool = False
    calls: list[TraceCall] = field(default_factory=list)


@dataclass
class Step:
    """A revision that the run created."""

    revision: Revision
    bar: Bar
    state_url: str
    knowledge_url: str
    resume_url: str
    messages_url: str
    first_message: int  # the seq of its first message, or of the next one if it has none
    messages: list[TraceMessage] = field(default_factory=list)
    more_messages: int = 0
    tokens: int = 0  # estimated, of all messages; 0 if some are not shown
    cost: Decimal | None = None  # of its messages; None without prices
    changes: StateChanges = field(default_factory=StateChanges)
    failed: bool = False

    @property
    def at(self) -> datetime:
        return self.revision.at

    @property
    def number(self) -> int:
        return self.revision.step or 1

    @property
    def gist(self) -> str:
        """What the step did, in a few words."""
        for message in self.messages:
            if message.calls:
                return ", ".join(call.name for call in message.calls)
            if message.line:
                return f"{message.name or message.role}: {message.line}"
        names = (line.name for line in self.changes.lines)
        return self.revision.label or ", ".join(names) or str(self.revision.kind)


@dataclass(frozen=True)
class Event:
    """A ticket, dispatch, delegated run or compaction."""

    at: datetime
    icon: str
    state: str
    status_label: str
    name: str
    note: str = ""
    url: str = ""
    bar: Bar | None = None


@dataclass(frozen=True)
class Waterfall:
    """The steps around one of them in short, with the events between them, oldest first. `rows`: each with
    the number of the first step at or after it, one more than the last step if there is none."""

    rows: list[tuple[Step | Event, int]]
    step: Step
    failures: list[Step]
    first: int
    last: int
    earlier_url: str
    later_url: str
    more_events: bool


@dataclass(frozen=True)
class Timeline:
    """A page of the timeline. `failures` are its failed steps; `more_events` are URLs of the same
    steps with the next events, by kind."""

    rows: list[Step | Event]
    prices: Prices | None
    order: str
    failures: list[Step]
    first_url: str
    next_url: str
    more_events: dict[str, str]
    other_order: str
    other_url: str


def read_timeline(request: Request, run: Run) -> Timeline:
    """The page of the timeline that the query string names.

    A finished run is read from its start, as a story; of an active one the newest step comes first,
    because the question is what it does now.
    """
    default = "oldest" if run.status == RunStatus.DONE else "newest"
    order = paging.choice(request, "order", ORDERS) or default
    oldest_first = order == "oldest"
    cursor = paging.whole_number(request, "after" if oldest_first else "before")
    page = {"after" if oldest_first else "before": cursor} if cursor else {}
    numbers = {kind: paging.whole_number(request, kind) for kind in _KINDS}
    places = {kind: number for kind, number in numbers.items() if number is not None}
    start, end = run.start_revision, run.last_revision
    if oldest_first:
        first = max(cursor + 1, start) if cursor else start
        last = min(first + PAGE - 1, end)
        next_page = {"after": last} if last < end else {}
    else:
        last = min(cursor - 1, end) if cursor else end
        first = max(last - PAGE + 1, start)
        next_page = {"before": first} if first > start else {}

    def url(order: str, **place: int) -> str:
        # The default changes when the run ends, and a cursor belongs to one order.
        parameter = order if place or order != default else ""
        return run_url(run.public_id, order=parameter, **place)

    steps, since, until = _steps(run, first, last)
    events, more = _events(request.actor, run, since, until, oldest_first, places)
    rows: list[Step | Event] = sorted((*steps, *events), key=_order)
    if not oldest_first:
        rows.reverse()
    prices = prices_of(request.actor, run.agent_id)
    _fill(run, [row for row in rows if isinstance(row, Step)], prices)
    other = "newest" if oldest_first else "oldest"
    return Timeline(
        rows=rows,
        prices=prices,
        order=order,
        failures=[step for step in steps if step.failed],
        first_url=url(order) if page or places else "",
        next_url=url(order, **next_page) if next_page else "",
        more_events={
            kind: url(order, **page, **places | {kind: place}) for kind, place in more.items()
        },
        other_order=other,
        other_url=url(other),
    )


def read_waterfall(actor: Actor, run: Run, revision: int) -> Waterfall:
    """The part of the run that contains the step of `revision`, which has the most room for its
    texts. The parts do not depend on the step, so that a slider moves within one."""
    first = revision - (revision - run.start_revision) % PAGE
    last = min(first + PAGE - 1, max(revision, run.last_revision))  # the run may have a new step
    steps, since, until = _steps(run, first, last)
    events, more = _events(actor, run, since, until, True, {})
    step = next(each for each in steps if each.revision.number == revision)
    rest = (each for each in steps if each is not step)
    _fill(run, [step, *rest], prices_of(actor, run.agent_id))
    reached = steps[-1].number + 1
    found: list[Step | Event] = sorted((*steps, *events), key=_order)
    rows: list[tuple[Step | Event, int]] = []
    for row in reversed(found):
        reached = row.number if isinstance(row, Step) else reached
        rows.append((row, reached))
    first_step, last_step = steps[0].number, steps[-1].number

    def url(number: int) -> str:
        return run_action_url("knowledge", run.public_id, step=number)

    return Waterfall(
        rows=rows[::-1],
        step=step,
        failures=[each for each in steps if each.failed],
        first=first_step,
        last=last_step,
        earlier_url=url(first_step - 1) if first_step > 1 else "",
        later_url=url(last_step + 1) if last_step < run.revision_count else "",
        more_events=bool(more),
    )


def _order(row: Step | Event) -> tuple[datetime, bool]:
    return row.at, isinstance(row, Event)


def _steps(run: Run, first: int, last: int) -> tuple[list[Step], datetime | None, datetime | None]:
    """The steps of the revisions [first, last], and the times that separate them from the pages
    before and behind: None at the ends of the run."""
    thread_id = run.thread.public_id
    found = Revision.objects.filter(thread=run.thread, number__gte=first - 1, number__lte=last)
    rows = list(found.order_by("number"))
    earlier = rows.pop(0) if rows and rows[0].number < first else None
    since = earlier.at if earlier and first > run.start_revision else None
    until = rows[-1].at if rows and last < run.last_revision else None
    dropped = {row.number for row in (*rows, *([earlier] if earlier else [])) if row.dropped}
    own = [row for row in rows if row.run_id == run.pk]
    changes = changes_of(own, dropped)
    steps = []
    for row in rows:
        count = earlier.message_count if earlier else 0
        began = earlier.at if earlier and row.number > run.start_revision else row.at
        earlier = row
        if row.run_id != run.pk:
            continue
        seqs = range(count + 1, row.message_count + 1)
        step = Step(
            revision=row,
            bar=_bar(run, began, row.at),
            state_url=thread_url(thread_id, tab="state", at=row.number),
            knowledge_url=run_action_url("knowledge", run.public_id, step=row.step or 1),
            resume_url=run_action_url("resume", run.public_id, revision=row.number),
            messages_url=thread_url(thread_id, message=seqs.start),
            first_message=seqs.start,
            messages=[_unread(thread_id, seq) for seq in seqs[:_MESSAGES]],
            more_messages=max(len(seqs) - _MESSAGES, 0),
            changes=changes[row.number],
            failed=row.number == run.last_revision and failed_at_end(run),
        )
        steps.append(step)
    return steps, since, until


def _unread(thread_id: str, seq: int) -> TraceMessage:
    url = thread_url(thread_id, message=seq)
    return TraceMessage(seq, "", "", url, thread_action_url(f"message/{seq}", thread_id))


def _bar(run: Run, began: datetime, ended: datetime) -> Bar:
    """The place of [began, ended] within the run so far."""
    start = run.created_at
    whole = ((run.finished_at or run.read_at) - start).total_seconds() or 1
    left, right = (
        min(max((moment - start).total_seconds() / whole, 0), 1) * _WIDE
        for moment in (began, ended)
    )
    width = max(round(right - left), _THIN)
    return Bar(min(round(left), _WIDE - width), width, how_long(ended - began))


@dataclass
class _Log:
    """The messages of a page and some around them, with their tool calls and results paired. The id
    of a call is unique among calls without a result only."""

    rows: dict[int, Any] = field(default_factory=dict)
    # By the message of the call and its id.
    results: dict[tuple[int, str], Any] = field(default_factory=dict)
    # The message of the call and the name of the tool, by the message of the result.
    calls: dict[int, tuple[int, str]] = field(default_factory=dict)


def _read_log(run: Run, seqs: Sequence[int]) -> _Log:
    log = _Log()
    if not seqs:
        return log
    around = (
        *range(max(min(seqs) - _AROUND, 1), min(seqs)),
        *range(max(seqs) + 1, max(seqs) + 1 + _AROUND),
    )
    # The range, too: for a list alone, PostgreSQL may read all messages of the thread.
    found = Message.objects.filter(
        thread=run.thread,
        seq__in=[*seqs, *around],
        seq__range=(min(seqs) - _AROUND, max(seqs) + _AROUND),
    )
    waiting: dict[str, tuple[int, str]] = {}
    for row in found.traced(CLIP + 1, _CALLS).order_by("seq"):
        log.rows[row.seq] = row
        if row.answers in waiting:
            log.calls[row.seq] = call = waiting.pop(row.answers)
            log.results[call[0], row.answers] = row
        waiting |= {call["id"]: (row.seq, call["name"]) for call in row.called or ()}
    return log


def _fill(run: Run, steps: Sequence[Step], prices: Prices | None) -> None:
    """Add the texts of messages, calls and results, in the order of the page and as far as there is
    room."""
    log = _read_log(run, [message.seq for step in steps for message in step.messages])
    failed = {name for step in steps for name in step.changes.failed}
    budget = TextBudget()
    for step in steps:
        step.changes.keep(lambda line: budget.has(line.name, line.before, line.after))
        seqs = {message.seq for message in step.messages}
        rows = [log.rows[seq] for seq in seqs if seq in log.rows]
        step.tokens = 0 if step.more_messages else sum(row.estimated_tokens for row in rows)
        step.cost = prices.of_messages(rows) if prices and step.tokens else None
        messages, step.messages = step.messages, []
        for message in messages:
            row = log.rows.get(message.seq)
            if row is None:
                continue
            message.failed = row.failed or row.answers in step.changes.failed
            step.failed = step.failed or message.failed
            caller, name = log.calls.get(row.seq, (0, ""))
            if caller in seqs:  # shown with its call
                continue
            line = _first_line(row.excerpt)
            if not budget.has(line, message.url):
                step.more_messages += 1
                continue
            message.role, message.line, message.name = row.role, line, name
            message.summary = row.folds_to is not None
            message.calls = list(_calls(run, row, log, failed, budget))
            # A failed result is in the step of its message.
            silent = any(call.failed and call.result is None for call in message.calls)
            step.failed = step.failed or silent
            step.messages.append(message)


def _calls(
    run: Run, row: Any, log: _Log, failed: set[str], budget: TextBudget
) -> Iterator[TraceCall]:
    for call in row.called or ():
        arguments = call["arguments"]
        result = log.results.get((row.seq, call["id"]))
        gist = arguments[:_LINE]
        budget.has(gist, call["name"])
        trace = TraceCall(call["name"], gist, budget.text(_readable(arguments)))
        trace.failed = result.failed if result else call["id"] in failed
        if result is not None:
            trace.result = budget.text(_readable(result.excerpt))
            trace.result_seq = result.seq
            trace.result_url = thread_url(run.thread.public_id, message=result.seq)
        yield trace


def _first_line(text: str) -> str:
    text = text.removeprefix("<conversation-summary>\n")
    lines = (line.strip().lstrip("#").lstrip() for line in text.splitlines())  # Markdown
    line = next((line for line in lines if line), "")
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def _readable(text: str) -> str:
    """JSON in a text as indented JSON, if it is complete."""
    value = parsed(text, CLIP)
    return text if isinstance(value, str) else pretty(value)


def _events(
    actor: Actor,
    run: Run,
    since: datetime | None,
    until: datetime | None,
    oldest_first: bool,
    places: dict[str, int],
) -> tuple[list[Event], dict[str, int]]:
    """What happened in (since, until], at most _EVENTS of each kind behind its place, and the places
    where the kinds with more continue."""
    more: dict[str, int] = {}

    def during(name: str) -> Q:
        after = Q(**{f"{name}__gt": since}) if since else Q()
        return after & Q(**{f"{name}__lte": until}) if until else after

    def cut(kind: str, rows: QuerySet[_Row]) -> Sequence[_Row]:
        if kind in places:
            rows = rows.filter(**{"pk__gt" if oldest_first else "pk__lt": places[kind]})
        rows = rows.order_by("pk" if oldest_first else "-pk")
        kept, last = paging.cut(rows, _EVENTS, lambda row: str(row.pk))
        if last:
            more[kind] = int(last)
        return kept

    tickets = Ticket.objects.filter(run=run).filter(during("created_at") | during("decided_at"))
    created = during("created_at")
    dispatches = Dispatch.objects.filter(created, run=run)
    compactions = Compaction.objects.visible_to(actor).filter(
        created, thread=run.thread, created_at__gte=run.created_at
    )
    if run.finished_at:
        compactions = compactions.filter(created_at__lte=run.finished_at)
    children = (
        Run.objects.visible_to(actor).filter(created, parent_run_id=run.public_id).timed()
    ).select_related("thread")
    found: Iterable[Event] = (
        *_of_tickets(cut("tickets", tickets)),
        *_of_dispatches(cut("dispatches", dispatches)),
        *_of_compactions(cut("compactions", compactions)),
        *_of_children(run, cut("delegated", children)),
    )
    within = [
        event
        for event in found
        if (since is None or event.at > since) and (until is None or event.at <= until)
    ]
    return within, more


def _of_tickets(tickets: Iterable[Ticket]) -> Iterator[Event]:
    for ticket in tickets:
        name, url = ticket.tool_name or ticket.public_id, ticket_url(ticket.public_id)
        yield Event(
            ticket.created_at,
            "circle-check",
            "waiting",
            "requested",
            name,
            ticket.reason[:_LINE],
            url,
        )
        if ticket.status == TicketStatus.PENDING or ticket.decided_at is None:
            continue
        state, label = _DECIDED[TicketStatus(ticket.status)]
        answer = (ticket.payload or "")[:_LINE] if label == "approved" else ""
        note = f"by {ticket.decided_by}" + (f": {answer}" if answer not in ("", "null") else "")
        yield Event(
            ticket.decided_at, "circle-check", state, label, name,
            note if ticket.decided_by else "", url,
        )  # fmt: skip


def _of_dispatches(dispatches: Iterable[Dispatch]) -> Iterator[Event]:
    for dispatch in dispatches:
        tries = f"attempt {dispatch.attempts} of {dispatch.max_attempts}"
        parts = [f"for {dispatch.agent_id}" if dispatch.agent_id else "", dispatch.last_error]
        yield Event(
            dispatch.created_at,
            "inbox",
            DISPATCH_STATES.get(DispatchStatus(dispatch.status), ""),
            f"dispatch {dispatch.get_status_display().lower()}",
            f"…{dispatch.public_id[-8:]}",
            ", ".join(part for part in (*parts, tries if dispatch.attempts else "") if part)[
                :_LINE
            ],
        )


def _of_compactions(jobs: Iterable[Compaction]) -> Iterator[Event]:
    for job in jobs:
        saved = f"{tokens(job.tokens_before)} → {tokens(job.tokens_after)} tokens"
        yield Event(
            job.created_at,
            "fold-vertical",
            _COMPACTED.get(CompactionStatus(job.status), ""),
            f"{job.kind} compaction {job.status}",
            f"…{job.public_id[-8:]}",
            saved if job.tokens_after is not None else job.detail[:_LINE],
            reverse("web:compaction-detail", args=[job.public_id]),
        )


def _of_children(run: Run, children: Iterable[Run]) -> Iterator[Event]:
    for child in children:
        done = child.status == RunStatus.DONE
        ended = ended_as(child) if done else child.status
        state = "failed" if failed_at_end(child) else "done" if done else "running"
        used = f"{tokens(child.input_tokens)} / {tokens(child.output_tokens)} tokens"
        cost = f"${child.cost_usd:.4f}" if child.cost_usd else ""
        parts = (child.agent_id, child.thread.title or child.thread.public_id, used, cost)
        yield Event(
            child.created_at,
            "git-fork",
            state,
            f"delegated run {ended}",
            child.public_id,
            ", ".join(part[:_LINE] for part in parts if part),
            run_url(child.public_id),
            _bar(run, child.created_at, child.finished_at or child.read_at),
        )
