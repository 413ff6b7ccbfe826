"""The context of a run at a step, and the runs that read a version of an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpResponse

from state_admin.domain import values
from state_admin.domain.values import JSON
from state_admin.models.knowledge_sql import VisibleVersion
from state_admin.models.state_changes_sql import LARGEST, ValueChange
from state_admin.services import knowledge
from state_admin.services.effective_views import recent_messages
from state_admin.services.snapshots import LIFECYCLE

from . import paging
from .addresses import entry_action_url, entry_url, run_action_url, run_url, thread_url
from .entry_address import entry_page, entry_paths
from .htmx import Request, render
from .id_address import id_page, id_path
from .run_timeline import read_waterfall
from .runs import run_tabs
from .state_changes import StateLine, lines_of
from .thread_contexts import line_of
from .thread_states import held_values, nodes_of

PAGE = 50
# The newest messages of the context that the page shows.
_MESSAGES = 12


@dataclass(frozen=True)
class VisibleEntry:
    """An entry in the context of the run."""

    entry: VisibleVersion
    value: JSON
    url: str
    tree_url: str
    readers_url: str
    # What changed since the step before: None if nothing did, "new", or "changed" with its lines.
    since: str | None = None
    lines: Sequence[StateLine] = ()

    @property
    def moved(self) -> bool:
        return self.entry.current != self.entry.version


@id_page(replica=True)
def run_knowledge(request: Request, run_id: str) -> HttpResponse:
    after = (request.GET.get("namespace", ""), request.GET.get("after", ""))
    known_state = knowledge.read_knowledge(
        actor=request.actor,
        run_id=run_id,
        step=paging.whole_number(request, "step"),
        after=after,
        limit=PAGE + 1,
    )
    before = knowledge.read_entries_before(
        actor=request.actor, knowledge=known_state, after=after, limit=PAGE + 1
    )
    run, revision = known_state.run, known_state.revision
    step = revision.step or 0

    def url(number: int, **query: str) -> str:
        return run_action_url("knowledge", run_id, step=number, **query)

    entries, next_url = paging.cut(
        known_state.entries, PAGE, lambda last: url(step, namespace=last.namespace, after=last.key)
    )
    state = None
    if known_state.state:
        held = held_values(known_state.state, revision)
        state = [value for value in held if value.key != LIFECYCLE]
    waterfall = read_waterfall(request.actor, run, revision.number)
    messages, between = recent_messages(run.thread, _MESSAGES, revision)
    context = {
        "run": run,
        "thread": run.thread,
        "tabs": run_tabs(run_id),
        "tab": "knowledge",
        "knowledge": known_state,
        "step": step,
        "previous_url": url(step - 1) if step > 1 else "",
        "next_step_url": url(step + 1) if step < known_state.steps else "",
        "state": state,
        "nodes": nodes_of(len(state or ())),
        "state_url": thread_url(run.thread.public_id, tab="state", at=revision.number),
        "this_step": waterfall.step,
        "waterfall": waterfall,
        "messages": [
            replace(
                line_of(run.thread, row, ()),
                lifted=False,
                lit=row.seq >= waterfall.step.first_message,
            )
            for row in messages
        ],
        "messages_between": between,
        "message_count": len(messages) + between,
        "message_tokens": None if between else sum(row.estimated_tokens for row in messages),
        "entries": [_visible_entry(row, before) for row in entries],
        "gone": _gone(entries, before, more=bool(next_url)),
        "reads": known_state.reads,
        "stale": [row for row in known_state.reads if not row.version == row.held == row.current],
        "pager": {"first": url(step) if request.GET.get("after") else "", "next": next_url},
    }
    return render(request, "runs/knowledge.html", context, part="run")


def _visible_entry(row: VisibleVersion, before: Sequence[VisibleVersion] | None) -> VisibleEntry:
    since, lines = _since(row, before)
    return VisibleEntry(
        entry=row,
        value=values.load(row.value) if row.value is not None and not row.lost else None,
        url=entry_url(row.namespace, row.key, version=row.version),
        tree_url=entry_action_url("tree", row.namespace, row.key, version=row.version),
        readers_url=entry_action_url("readers", row.namespace, row.key, version=row.version),
        since=since,
        lines=lines,
    )


def _since(
    row: VisibleVersion, before: Sequence[VisibleVersion] | None
) -> tuple[str | None, Sequence[StateLine]]:
    """What changed in an entry since the step before."""
    if before is None:
        return None, ()
    old = next((each for each in before if _place(each) == _place(row)), None)
    if old is None:
        return ("new", ()) if _reaches(before, row) else (None, ())
    if old.version == row.version:
        return None, ()
    texts = (old.value, row.value)
    if any(text is None or len(text) > LARGEST for text in texts):
        return "changed", ()
    return "changed", list(lines_of(ValueChange(0, "value", True, row.value, True, old.value)))


def _gone(
    rows: Sequence[VisibleVersion], before: Sequence[VisibleVersion] | None, *, more: bool
) -> list[VisibleVersion]:
    """The entries that the step before could see, and this one cannot, up to the last one shown if
    there are more pages."""
    kept = {_place(row) for row in rows}
    return [
        row
        for row in before or ()
        if _place(row) not in kept and (not more or _place(row) < _place(rows[-1]))
    ]


def _reaches(rows: Sequence[VisibleVersion], row: VisibleVersion) -> bool:
    """Whether `rows`, which are a page, would contain the place of `row`."""
    return len(rows) <= PAGE or _place(row) <= _place(rows[-1])


def _place(row: VisibleVersion) -> tuple[str, str]:
    return row.namespace, row.key


@entry_page(replica=True)
def entry_readers(request: Request, namespace: str, key: str) -> HttpResponse:
    version = paging.whole_number(request, "version")
    rows = knowledge.readers_of(request.actor, namespace, key, version)
    before = paging.whole_number(request, "before")
    last = paging.whole_number(request, "last")
    if before is not None and last is not None:
        rows = rows.behind(last, before)

    def url(**query: int) -> str:
        return entry_action_url("readers", namespace, key, version=version, **query)

    reads, next_url = paging.cut(rows, PAGE, lambda row: url(last=row.version, before=row.pk))
    context: dict[str, Any] = {
        "namespace": namespace,
        "key": key,
        "version": version,
        "entry_address": entry_url(namespace, key, version=version),
        "readers": [
            (row, run_url(row.run.public_id),
             run_action_url("knowledge", row.run.public_id, step=row.step))
            for row in reads
        ],
        "pager": {"first": url() if before else "", "next": next_url},
    }  # fmt: skip
    return render(request, "entries/readers.html", context, part="readers")


urlpatterns = [
    id_path("run/knowledge", run_knowledge, "run-knowledge"),
    *entry_paths("entry/readers", entry_readers, "entry-readers"),
]
