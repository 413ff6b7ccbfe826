"""Runs and their commits: /runs, /runs/{id}, …/commits, …/heartbeat, …/lease, and the operations
that end a run."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django.http import HttpResponse
from msgspec import UNSET

from state_admin.contract import runs as contract
from state_admin.contract.base import Page
from state_admin.contract.items import Selection
from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.models import Run
from state_admin.models.feed_sql import FeedFilter
from state_admin.rest import etags, long_polling, pagination
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.items import answer_items
from state_admin.services import leases, recoveries, runs
from state_admin.services.errors import Invalid
from state_admin.services.runs import RunChange

from .threads import read_object

_COST_PLACES = Decimal("0.000001")


def run_document(actor: Actor, run: Run) -> contract.Run:
    """Return the run, without what `actor` may not see."""
    return contract.Run.of(run, actor, runs.parents_of(actor, [run]))


@handles(contract.START_RUN)
def start_run(call: Endpoint, thread_id: str) -> HttpResponse:
    fields = call.body(contract.NewRun).given()
    run, created = runs.start_run(
        **call.author,
        thread_id=thread_id,
        run_id=fields.pop("id", None),
        metadata=read_object(fields.pop("metadata", UNSET), "metadata"),
        **fields,
    )
    return answer(run_document(call.actor, run), 201 if created else 200, etag=run.last_revision)


@handles(contract.LIST_RUNS)
def list_runs(call: Endpoint) -> HttpResponse:
    given = call.given(thread_id="thread__public_id", status="status", agent_id="agent_id")
    rows = Run.objects.visible_to(call.actor).timed().select_related("thread").filter(**given)
    rows = rows.defer("created_from")
    if call.query.stuck:
        rows = rows.stuck()
    page_runs, cursor = pagination.fetch_page(call, rows)
    # One query for the parents of all of them.
    parents = runs.parents_of(call.actor, page_runs)
    items = [contract.Run.of(row, call.actor, parents) for row in page_runs]
    return answer(Page(items=items, next_cursor=cursor))


@handles(contract.GET_RUN)
def get_run(call: Endpoint, run_id: str) -> HttpResponse:
    since = call.query.since
    if since is None:
        since = long_polling.memory_of(call.request)
    if since is None:
        since = runs.find_run(call.actor, run_id).last_revision
    return long_polling.answer_news(
        call,
        FeedFilter(run=run_id),
        look=lambda: runs.find_run(call.actor, run_id),
        is_news=lambda run: run.last_revision > since,
        show=lambda run: answer(run_document(call.actor, run), etag=run.last_revision),
        memory=since,
    )


@handles(contract.CHANGE_RUN)
def change_run(call: Endpoint, run_id: str) -> HttpResponse:
    body = call.body(contract.RunChange)
    run = runs.change_run(
        **call.author,
        run_id=run_id,
        change=read_change(body),
        fencing_token=body.fencing_token,
        expected_revision=etags.expected_version(call.request),
    )
    return answer(run_document(call.actor, run), etag=run.last_revision)


@handles(contract.HEARTBEAT_RUN)
def heartbeat_run(call: Endpoint, run_id: str) -> HttpResponse:
    token = call.body(contract.Heartbeat).fencing_token
    run = runs.heartbeat(**call.author, run_id=run_id, fencing_token=token)
    return answer(run_document(call.actor, run))


@handles(contract.TAKE_LEASE)
def take_lease(call: Endpoint, run_id: str) -> HttpResponse:
    fields = call.body(contract.LeaseRequest).given()
    run = leases.take_lease(**call.author, run_id=run_id, **fields)
    return answer(run_document(call.actor, run))


@handles(contract.RELEASE_LEASE)
def release_lease(call: Endpoint, run_id: str) -> HttpResponse:
    run = leases.release_lease(**call.author, run_id=run_id, fencing_token=call.query.fencing_token)
    return answer(run_document(call.actor, run))


@handles(contract.FAIL_RUN)
def fail_run(call: Endpoint, run_id: str) -> HttpResponse:
    run = recoveries.fail_run(
        **call.author,
        run_id=run_id,
        message=call.body(contract.RunFailure).message,
        expected_revision=etags.expected_version(call.request),
    )
    return answer(run_document(call.actor, run), etag=run.last_revision)


@handles(contract.RESUME_RUN)
def resume_run(call: Endpoint, run_id: str) -> HttpResponse:
    fields = call.body(contract.RunRecovery).given()
    run = recoveries.resume_run(**call.author, run_id=run_id, **fields)
    return answer(run_document(call.actor, run))


@handles(contract.CANCEL_RUN)
def cancel_run(call: Endpoint, run_id: str) -> HttpResponse:
    run = runs.cancel_run(
        **call.author, run_id=run_id, expected_revision=etags.expected_version(call.request)
    )
    return answer(run_document(call.actor, run), etag=run.last_revision)


@handles(contract.CANCEL_RUNS)
def cancel_runs(call: Endpoint) -> HttpResponse:
    def cancel(run_id: str) -> int:
        runs.cancel_run(**call.author, run_id=run_id)
        return 200

    return answer_items(call.body(Selection).ids, cancel)


def read_change(body: contract.RunFields, pointer: str = "") -> RunChange:
    """Return the change that the fields describe; `pointer` is their place in the body."""
    fields = body.given()
    fields.pop("fencing_token", None)
    for name in ("waiting", "termination_reason"):
        if name in fields:
            values.check(fields[name], f"{pointer}/{name}")
            fields[name] = values.load(fields[name].text)
    if "cost_usd" in fields:
        fields["cost_usd"] = _read_cost(fields["cost_usd"], pointer)
    if "metadata" in fields:
        fields["metadata"] = read_object(fields["metadata"], "metadata", pointer)
    return RunChange(**fields, pointer=pointer)


def _read_cost(given: int | float | str, pointer: str) -> Decimal:
    """Convert a cost to the precision of its column. A float is read as its shortest decimal
    representation."""
    try:
        cost = Decimal(str(given).strip())
        exponent = cost.as_tuple().exponent
        fits = cost >= 0 and isinstance(exponent, int) and exponent >= -6 and cost.adjusted() < 8
    except InvalidOperation:
        fits = False
    if not fits:
        expected = (
            "must be a number of at least 0 with at most 8 digits before and 6 after the point"
        )
        raise Invalid("the cost is not valid", [values.Fault(f"{pointer}/cost_usd", expected)])
    return cost.quantize(_COST_PLACES)
