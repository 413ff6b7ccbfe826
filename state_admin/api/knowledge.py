"""What runs knew and read: /runs/{id}/knowledge, /runs/{id}/reads, /reads/{ns}/{key}."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import knowledge as contract
from state_admin.contract.base import Page
from state_admin.contract.snapshots import Snapshot
from state_admin.contract.types import time_of
from state_admin.rest import pagination
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import knowledge, runs
from state_admin.services.errors import BadRequest

# Separates namespace and key in a cursor: neither can hold it.
_BETWEEN = "\n"


@handles(contract.READ_KNOWLEDGE)
def read_knowledge(call: Endpoint, run_id: str) -> HttpResponse:
    query = call.query
    if query.step is not None and query.revision is not None:
        raise BadRequest("choose step or revision, not both")
    page = pagination.read_page(call, str)
    namespace, _, key = (page.after or "").partition(_BETWEEN)
    known = knowledge.read_knowledge(
        actor=call.actor,
        run_id=run_id,
        step=query.step,
        revision=query.revision,
        after=(namespace, key),
        limit=page.limit + 1,
    )
    shown, cursor = page.close(known.entries, lambda row: row.namespace + _BETWEEN + row.key)
    return answer(
        contract.Knowledge(
            run_id=run_id,
            thread_id=known.run.thread.public_id,
            step=known.revision.step,
            steps=known.steps,
            revision=known.revision.number,
            at=time_of(known.revision.at),
            exact=known.exact,
            scopes=list(known.keys),
            state=Snapshot.of(known.state) if known.state else None,
            reads=list(map(contract.RunRead.of, known.reads)),
            items=list(map(contract.KnownEntry.of, shown)),
            next_cursor=cursor,
        )
    )


@handles(contract.LIST_RUN_READS)
def list_run_reads(call: Endpoint, run_id: str) -> HttpResponse:
    run = runs.find_run(call.actor, run_id)
    rows = knowledge.reads_of_run(call.actor, run, stale=call.query.stale)
    return answer_rows(call, rows, contract.RunRead.of, created="at")


@handles(contract.LIST_READERS)
def list_readers(call: Endpoint, namespace: str, key: str) -> HttpResponse:
    page = pagination.read_page(call, str)
    rows = knowledge.readers_of(call.actor, namespace, key, call.query.version)
    if page.after is not None:
        rows = rows.behind(*_place(page.after))
    found = list(rows[: page.limit + 1])
    shown, cursor = page.close(found, lambda row: f"{row.version}.{row.pk}")
    return answer(Page(items=list(map(contract.EntryReader.of, shown)), next_cursor=cursor))


def _place(after: str) -> tuple[int, int]:
    version, _, row_id = after.partition(".")
    try:
        return int(version), int(row_id)
    except ValueError:
        raise BadRequest("cursor must be a value that this API returned") from None
