"""The context and the reads of runs: /runs/{id}/knowledge, /runs/{id}/reads, /reads/{ns}/{key}."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse

from state_admin.contract import knowledge as contract
from state_admin.contract.base import Page
from state_admin.contract.snapshots import Snapshot
from state_admin.contract.types import time_of
from state_admin.rest import pagination
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import batching, knowledge, runs
from state_admin.services.errors import BadRequest
from state_admin.services.feed_cursors import bad_cursor

# Separates namespace and key in a cursor: neither can contain it.
_BETWEEN = "\n"


@handles(contract.READ_KNOWLEDGE)
def read_knowledge(call: Endpoint, run_id: str) -> HttpResponse:
    query = call.query
    if query.step is not None and query.revision is not None:
        raise BadRequest("choose step or revision, not both")
    page = pagination.read_page(call, str)
    namespace, _, key = (page.after or "").partition(_BETWEEN)
    known_state = knowledge.read_knowledge(
        actor=call.actor,
        run_id=run_id,
        step=query.step,
        revision=query.revision,
        after=(namespace, key),
        limit=page.limit + 1,
        most=batching.MOST_BYTES,
    )
    fitting = sum(not row.beyond for row in known_state.entries)
    entries, cursor = replace(page, limit=min(page.limit, fitting)).close(
        known_state.entries, lambda row: row.namespace + _BETWEEN + row.key
    )
    return answer(
        contract.Knowledge(
            run_id=run_id,
            thread_id=known_state.run.thread.public_id,
            step=known_state.revision.step,
            steps=known_state.steps,
            revision=known_state.revision.number,
            at=time_of(known_state.revision.at),
            exact=known_state.exact,
            scopes=list(known_state.keys),
            state=Snapshot.of(known_state.state) if known_state.state else None,
            reads=list(map(contract.RunRead.of, known_state.reads)),
            items=list(map(contract.KnownEntry.of, entries)),
            next_cursor=cursor,
        )
    )


@handles(contract.LIST_RUN_READS)
def list_run_reads(call: Endpoint, run_id: str) -> HttpResponse:
    run = runs.find_run(call.actor, run_id)
    rows = knowledge.reads_of_run(call.actor, run, stale=call.query.stale)
    return answer_rows(call, rows, contract.RunRead.of, created="at", owner={"run_id": run.pk})


@handles(contract.LIST_READERS)
def list_readers(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    page = pagination.read_page(call, str)
    rows = knowledge.readers_of(call.actor, namespace, key, call.query.version)
    if page.after is not None:
        rows = rows.behind(*_place(page.after))
    reads = list(rows[: page.limit + 1])
    page_reads, cursor = page.close(reads, lambda row: f"{row.version}.{row.pk}")
    return answer(Page(items=list(map(contract.EntryReader.of, page_reads)), next_cursor=cursor))


def _place(after: str) -> tuple[int, int]:
    version, _, row_id = after.partition(".")
    try:
        return int(version), int(row_id)
    except ValueError:
        raise bad_cursor() from None
