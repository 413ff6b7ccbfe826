"""The mailbox: …/dispatches and …/interrupt of a thread, /dispatches, /dispatches/{id} and its
actions, and the bulk actions claim, counts, replay and clear."""

from __future__ import annotations

import msgspec
from django.http import HttpResponse

from state_admin.contract import dispatches as contract
from state_admin.models import Dispatch
from state_admin.models.dispatches import DispatchQuerySet
from state_admin.models.feed_sql import FeedFilter
from state_admin.rest.bodies import Response, answer
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.long_polling import answer_news, memory_of
from state_admin.rest.pagination import answer_rows
from state_admin.services import dead_letters, dispatches
from state_admin.services.dispatches import Claims
from state_admin.services.errors import BadRequest
from state_admin.services.runs import read_moment


@handles(contract.ENQUEUE_DISPATCH)
def enqueue_dispatch(call: Endpoint, thread_id: str) -> HttpResponse:
    fields = call.body(contract.NewDispatch).given()
    dispatch = dispatches.enqueue_dispatch(
        **call.author,
        thread_id=thread_id,
        available_at=read_moment(fields.pop("available_at", None), "/available_at"),
        **fields,
    )
    response = answer(contract.Dispatch.of(dispatch), 201)
    response["Location"] = f"/api/v1/dispatches/{dispatch.public_id}"
    return response


@handles(contract.INTERRUPT_THREAD)
def interrupt_thread(call: Endpoint, thread_id: str) -> HttpResponse:
    return answer(dispatches.interrupt_thread(**call.author, thread_id=thread_id))


@handles(contract.LIST_DISPATCHES)
def list_dispatches(call: Endpoint) -> HttpResponse:
    rows = _matching(call).select_related("thread", "run")
    rows = rows.filter(**call.given(status="status", dedupe_key="dedupe_key"))
    return answer_rows(call, rows, contract.Dispatch.of)


def _matching(call: Endpoint) -> DispatchQuerySet:
    return Dispatch.objects.visible_to(call.actor).concerning(
        thread_id=call.query.thread_id or "", agent_id=call.query.agent_id or ""
    )


@handles(contract.COUNT_DISPATCHES)
def count_dispatches(call: Endpoint) -> HttpResponse:
    counts = _matching(call).count_by_status()
    return answer(msgspec.convert(counts, contract.DispatchCounts))


@handles(contract.CLAIM_DISPATCHES)
def claim_dispatches(call: Endpoint) -> HttpResponse:
    request = call.request
    if "wait" in request.query_params and "HTTP_IDEMPOTENCY_KEY" in request.META:
        raise BadRequest(
            "wait cannot be combined with Idempotency-Key",
            hint=(
                "If the response is lost, the dispatch returns to the queue when its lease expires."
            ),
            parameter="wait",
        )
    # A long poll is called again without its body.
    given = memory_of(request)
    if given is None:
        given = call.body(contract.ClaimRequest).given()
    return answer_news(
        call,
        FeedFilter(kinds=("mailbox.ready",), thread=given.get("thread_id", "")),
        look=lambda: dispatches.claim_dispatches(**call.author, **given),
        is_news=lambda claims: bool(claims.dispatches),
        show=_answer_claims,
        memory=given,
    )


def _answer_claims(claims: Claims) -> Response:
    items = [
        contract.ClaimedDispatch.of(row, claim_token=claims.token) for row in claims.dispatches
    ]
    return answer(contract.Claims(items=items))


@handles(contract.GET_DISPATCH)
def get_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    return answer(contract.Dispatch.of(dispatches.find_dispatch(call.actor, dispatch_id)))


@handles(contract.EXTEND_DISPATCH)
def extend_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    body = call.body(contract.Extension)
    row = dispatches.extend_dispatch(**call.author, dispatch_id=dispatch_id, **body.given())
    return answer(contract.Dispatch.of(row))


@handles(contract.ACK_DISPATCH)
def ack_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    body = call.body(contract.Acknowledgement)
    row = dispatches.ack_dispatch(**call.author, dispatch_id=dispatch_id, **body.given())
    return answer(contract.Dispatch.of(row))


@handles(contract.NACK_DISPATCH)
def nack_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    body = call.body(contract.NegativeAcknowledgement)
    row = dispatches.nack_dispatch(**call.author, dispatch_id=dispatch_id, **body.given())
    return answer(contract.Dispatch.of(row))


@handles(contract.CANCEL_DISPATCH)
def cancel_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    row = dispatches.cancel_dispatch(**call.author, dispatch_id=dispatch_id)
    return answer(contract.Dispatch.of(row))


@handles(contract.REPLAY_DISPATCH)
def replay_dispatch(call: Endpoint, dispatch_id: str) -> HttpResponse:
    row = dead_letters.replay_dispatch(**call.author, dispatch_id=dispatch_id)
    return answer(contract.Dispatch.of(row))


@handles(contract.REPLAY_DEAD_LETTERS)
def replay_dead_letters(call: Endpoint) -> HttpResponse:
    scope = call.body(contract.DeadLetterScope).given()
    number = dead_letters.replay_dead_letters(**call.author, **scope)
    return answer(contract.Replayed(replayed=number))


@handles(contract.CLEAR_DEAD_LETTERS)
def clear_dead_letters(call: Endpoint) -> HttpResponse:
    scope = call.body(contract.DeadLetterScope).given()
    return answer(dead_letters.clear_dead_letters(**call.author, dry_run=call.dry_run, **scope))
