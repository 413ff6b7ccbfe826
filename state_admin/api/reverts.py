"""Reverts of requests and to moments: /reverts, /reverts/{id}, skipped, cancel."""

from __future__ import annotations

from django.http import HttpResponse

from state_admin.contract import reverts as contract
from state_admin.models import Revert
from state_admin.rest.bodies import answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import revert_jobs

from .restores import read_moment


@handles(contract.REQUEST_REVERT)
def request_revert(call: Endpoint) -> HttpResponse:
    fields = read_moment(call.body(contract.RevertRequest))
    # A dry run is not left to a worker: it would be rolled back before.
    request = revert_jobs.start_revert if call.dry_run else revert_jobs.request_revert
    job = request(**call.author, **fields)
    response = answer(contract.Revert.of(job), 202)
    response["Location"] = f"/api/v1/reverts/{job.public_id}"
    return response


@handles(contract.LIST_REVERTS)
def list_reverts(call: Endpoint) -> HttpResponse:
    given = call.given(request_id="target", status="status")
    return answer_rows(
        call, Revert.objects.visible_to(call.actor).filter(**given), contract.Revert.of
    )


@handles(contract.GET_REVERT)
def get_revert(call: Endpoint, revert_id: str) -> HttpResponse:
    return answer(contract.Revert.of(revert_jobs.find_revert(call.actor, revert_id)))


@handles(contract.LIST_SKIPPED_ENTRIES)
def list_skipped_entries(call: Endpoint, revert_id: str) -> HttpResponse:
    job = revert_jobs.find_revert(call.actor, revert_id)
    rows = revert_jobs.skipped_entries(call.actor, job)
    return answer_rows(call, rows, contract.SkippedEntry.of)


@handles(contract.CANCEL_REVERT)
def cancel_revert(call: Endpoint, revert_id: str) -> HttpResponse:
    job = revert_jobs.cancel_revert(**call.author, revert_id=revert_id)
    return answer(contract.Revert.of(job))
