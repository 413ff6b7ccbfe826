"""A thread as AG-UI events: GET to observe it, POST for the run of an AG-UI client.

The state, messages, tools and context that AG-UI clients send with a run are not stored: agents
write with commits, people through /api/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from django.http import HttpResponse

from state_admin.contract import agent_views as contract
from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.domain.values import Fault
from state_admin.models import Run, RunStatus, Thread, Ticket
from state_admin.models.feed_sql import FeedRow
from state_admin.models.runs import IN_PROGRESS, RunQuerySet
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.services import runs, threads
from state_admin.services.errors import Gone, Invalid
from state_admin.services.listeners import CLOSED

from . import ag_ui_events, parts, reading
from .ag_ui_events import Event
from .following import answer_stream, event


class _EventEncoder:
    """What one client has received of a thread: the revision of its state, and how many of its
    messages. The state itself would be in memory once per client.

    Runs are read before the thread and its messages, so that all messages of an ended run are sent
    before its end."""

    def __init__(self, actor: Actor, thread_id: str) -> None:
        self.actor, self.thread_id = actor, thread_id
        self.over = False
        self._revision = 0
        self._seq = 0

    def close(self, why: str) -> bytes:
        return _encode([ag_ui_events.closed(CLOSED[why])])

    def _encode_snapshot(self, thread: Thread) -> list[Event]:
        state = reading.read_state(self.actor, self.thread_id)
        self._revision = state["revision"]
        log, _ = self._read_log(thread)
        return [ag_ui_events.state_snapshot(state), ag_ui_events.messages_snapshot(log)]

    def _encode_updates(self, thread: Thread) -> list[Event]:
        changes = self._encode_state(thread)
        seen = self._seq
        log, cut = self._read_log(thread)
        fresh = [message for message in log if message.seq > seen]
        events = ag_ui_events.message_events(fresh)
        if events is None or (cut and len(fresh) == len(log)):
            events = [ag_ui_events.messages_snapshot(log)]
        return [*changes, *events]

    def _encode_state(self, thread: Thread) -> list[Event]:
        if thread.revision == self._revision:
            return []
        after = reading.read_state(self.actor, self.thread_id)
        try:
            before = reading.read_state(self.actor, self.thread_id, self._revision)
        except Gone:
            before = None
        self._revision = after["revision"]
        if before is None:
            return [ag_ui_events.state_snapshot(after)]
        return ag_ui_events.state_change(before, after)

    def _read_log(self, thread: Thread) -> tuple[list[parts.ThreadMessage], bool]:
        """The newest messages, and whether older ones are left out; none if there is no new one."""
        if thread.message_count == self._seq:
            return [], False
        log, cut = reading.read_messages(thread)
        self._seq = max(thread.message_count, log[-1].seq if log else 0)
        return log, cut

    def _find_runs(self, run_ids: Collection[str]) -> RunQuerySet:
        rows = Run.objects.visible_to(self.actor).filter(thread__public_id=self.thread_id)
        return rows.filter(public_id__in=run_ids)

    def _encode_start(self, run_id: str, run: Run | None) -> Event:
        above = runs.parents_of(self.actor, [run]) if run else ()
        return ag_ui_events.run_started(self.thread_id, run_id, *above)

    def _encode_end(self, run: Run) -> list[Event]:
        """The end of a run that is done or waits; [] if it has resumed since it was read."""
        pending = list(Ticket.objects.filter(run=run).pending().order_by("pk"))
        if not runs.is_resting(self.actor, run, pending):
            return []
        return [ag_ui_events.run_finished(self.thread_id, run.public_id, run, pending)]


class ThreadEventEncoder(_EventEncoder):
    """The events of a thread, over all its runs."""

    def __init__(self, actor: Actor, thread_id: str) -> None:
        super().__init__(actor, thread_id)
        self._open = ""  # the run for which RUN_STARTED was sent, and RUN_FINISHED was not
        self._done = ""  # the last run for which the RUN_FINISHED of its end was sent

    def begin(
        self, missed: Sequence[FeedRow], coming: Callable[[], Sequence[FeedRow]] = tuple
    ) -> bytes:
        active = threads.read_thread(self.actor, self.thread_id).active_run
        changes = [(row.run, row.kind) for row in missed]
        if active is not None:
            start = (active.public_id, "run.start")
            # If its start follows, so may the end of the run that the client knows.
            if start not in ((row.run, row.kind) for row in coming()):
                changes.append(start)
        events = self._encode_runs(changes)
        thread = threads.find_thread(self.actor, self.thread_id)
        return _encode([*self._encode_snapshot(thread), *events])

    def encode_changes(self, rows: Sequence[FeedRow]) -> bytes:
        events = self._encode_runs([(row.run, row.kind) for row in rows if row.run])
        thread = threads.find_thread(self.actor, self.thread_id)
        # The events of a run must be between its start and its end.
        last = events[-1:] if events and events[-1]["type"] != "RUN_STARTED" else []
        return _encode([*events[: len(events) - len(last)], *self._encode_updates(thread), *last])

    def _encode_runs(self, changes: Sequence[tuple[str, str]]) -> list[Event]:
        """The events of changes of runs (id, kind). All runs are read together, so that at most one
        is active."""
        kinds: dict[str, set[str]] = {}
        for run_id, kind in changes:
            kinds.setdefault(run_id, set()).add(kind)
        found = {run.public_id: run for run in self._find_runs(kinds)}
        return [
            each
            for run_id, seen in kinds.items()
            if run_id in found
            for each in self._encode_run(found[run_id], "run.start" in seen, "run.done" in seen)
        ]

    def _encode_run(self, run: Run, started: bool, ended: bool) -> list[Event]:
        """The events of a run's change. `started`, `ended`: whether changes of these kinds arrived.
        A run that waits for a decision ends for AG-UI, and starts again after it."""
        events: list[Event] = []
        # A run is read later than its changes. So the end of this one may have been sent, or the
        # start of a later one.
        if run.public_id == self._done or self._open not in ("", run.public_id):
            return events
        going = run.status in IN_PROGRESS
        if self._open != run.public_id and (started or going):
            events.append(self._encode_start(run.public_id, run))
            self._open = run.public_id
        if not going and (ended or self._open == run.public_id):
            ends = self._encode_end(run)
            self._open = "" if ends else self._open
            if run.status == RunStatus.DONE:
                self._done = run.public_id
            events += ends
        return events


class RunEventEncoder(_EventEncoder):
    """One run from its start to its end, as AG-UI clients expect it of an agent: the run named in
    the request, else the active one. Without one, the current state of the thread."""

    def __init__(self, actor: Actor, thread_id: str, run_id: str) -> None:
        super().__init__(actor, thread_id)
        self._run_id = run_id

    def begin(
        self, missed: Sequence[FeedRow], coming: Callable[[], Sequence[FeedRow]] = tuple
    ) -> bytes:
        named = self._find_runs([self._run_id]).first()
        thread = threads.read_thread(self.actor, self.thread_id)
        run = named or thread.active_run
        if run is not None:
            self._run_id = run.public_id
        started = self._encode_start(self._run_id, run)
        return _encode([started, *self._encode_snapshot(thread), *self._encode_ended(run)])

    def encode_changes(self, rows: Sequence[FeedRow]) -> bytes:
        run = self._find_runs([self._run_id]).first()
        thread = threads.find_thread(self.actor, self.thread_id)
        return _encode([*self._encode_updates(thread), *self._encode_ended(run)])

    def close(self, why: str) -> bytes:
        problem = CLOSED[why]
        return _encode([{"type": "RUN_ERROR", "message": problem.detail, "code": problem.slug}])

    def _encode_ended(self, run: Run | None) -> list[Event]:
        if run is None:
            self.over = True
            return [ag_ui_events.run_finished(self.thread_id, self._run_id)]
        ends = [] if run.status in IN_PROGRESS else self._encode_end(run)
        self.over = bool(ends)
        return ends


@handles(contract.WATCH_THREAD)
def watch_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    threads.find_thread(call.actor, thread_id)
    return answer_stream(call, thread_id, ThreadEventEncoder(call.actor, thread_id))


@handles(contract.JOIN_RUN)
def join_run(call: Endpoint, thread_id: str) -> HttpResponse:
    body = call.body(contract.RunAgentInput)
    if body.thread_id != thread_id:
        raise Invalid(
            "threadId is not the thread of the path", [Fault("/threadId", f"must be {thread_id}")]
        )
    run_id = threads.check_id(body.run_id, "/runId")
    threads.find_thread(call.actor, thread_id)
    return answer_stream(call, thread_id, RunEventEncoder(call.actor, thread_id, run_id))


def _encode(events: Sequence[Event]) -> bytes:
    return b"".join(event(values.dump(each)) for each in events)
