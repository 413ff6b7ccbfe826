"""The mailbox: …/dispatches and …/interrupt of a thread, /dispatches, /dispatches/{id} and its verbs,
and what is done with many: claim, counts, replay, clear."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from state_admin.domain import mailbox, moments
from state_admin.domain.access import Role
from state_admin.domain.values import Fault, Raw
from state_admin.models import Dispatch
from state_admin.models.feed_sql import FeedFilter
from state_admin.services import dead_letters, dispatches
from state_admin.services.dispatches import Claims
from state_admin.services.errors import BadRequest, Invalid

from . import pagination
from .bodies import Body, RawField, Text, Whole, answer, verbatim
from .endpoint import Endpoint
from .waiting import answer_news, memory_of

_DAY = 86_400


class DispatchBody(Body):
    payload = RawField(required=False)
    run_id = Text(required=False)
    agent_id = Text(required=False, max_length=128)
    priority = Whole(min_value=0, max_value=mailbox.LOWEST_PRIORITY, required=False)
    available_at = Text(required=False)
    dedupe_key = Text(required=False, max_length=256)
    max_attempts = Whole(min_value=1, max_value=100, required=False)


class ClaimBody(Body):
    thread_id = Text(required=False)
    agent_id = Text(required=False, max_length=128)
    consumer = Text(required=False, max_length=128)
    limit = Whole(min_value=1, max_value=100, required=False)
    lease_seconds = Whole(min_value=1, max_value=_DAY, required=False)


class AckBody(Body):
    claim_token = Text(max_length=128)


class ExtendBody(Body):
    claim_token = Text(max_length=128)
    lease_seconds = Whole(min_value=1, max_value=_DAY, required=False)


class NackBody(Body):
    claim_token = Text(max_length=128)
    error = Text(required=False, allow_blank=True, max_length=2000)
    retry_after = Whole(min_value=0, max_value=30 * _DAY, required=False)


class LettersBody(Body):
    thread_id = Text(required=False)
    agent_id = Text(required=False, max_length=128)


def show_dispatch(row: Dispatch) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "thread_id": row.thread.public_id,
        "run_id": row.run.public_id if row.run else None,
        "agent_id": row.agent_id,
        "payload": verbatim(row.payload or "null"),
        "priority": row.priority,
        "available_at": row.available_at,
        "dedupe_key": row.dedupe_key or None,
        "epoch": row.epoch,
        "status": row.status,
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "replays": row.replays,
        "last_error": row.last_error or None,
        "claimed_by": row.claimed_by or None,
        "claimed_at": row.claimed_at,
        "lease_until": row.lease_until,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "finished_at": row.finished_at,
    }


class ThreadDispatches(Endpoint):
    @extend_schema(operation_id="enqueue_dispatch", request=DispatchBody)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Put work into the thread's mailbox. While one with the same `dedupe_key` is open: 409."""
        given = DispatchBody.take(request.data)
        made = dispatches.enqueue_dispatch(
            actor=self.actor,
            thread_id=thread_id,
            payload=given.pop("payload", Raw("null", None)),
            available_at=_moment(given.pop("available_at", "")),
            reason=self.reason,
            **given,
        )
        response = answer(show_dispatch(made), 201)
        response["Location"] = f"/api/v1/dispatches/{made.public_id}"
        return response


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    moment = moments.read(text)
    if moment is None:
        fault = Fault("/available_at", "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
        raise Invalid("a time is not acceptable", [fault])
    return moment


class ThreadInterrupt(Endpoint):
    @extend_schema(operation_id="interrupt_thread", request=None)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        """Supersede all that is queued, under a new epoch; says who is still at work."""
        done = dispatches.interrupt_thread(
            actor=self.actor, thread_id=thread_id, reason=self.reason
        )
        return answer(
            {
                "thread_id": thread_id,
                "epoch": done.epoch,
                "superseded_dispatches": done.superseded,
                "active": show_dispatch(done.active) if done.active else None,
            }
        )


class DispatchList(Endpoint):
    @extend_schema(operation_id="list_dispatches")
    def get(self, request: Request) -> HttpResponse:
        """Dispatches, newest first, by thread, agent, status; `status=DeadLetter` for the dead."""
        page = pagination.read_page(self)
        rows = _matching(self).select_related("thread", "run").order_by("-id")
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        if dedupe_key := self.query.get("dedupe_key"):
            rows = rows.filter(dedupe_key=dedupe_key)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        return answer({"items": [show_dispatch(row) for row in shown], "next_cursor": cursor})


def _matching(view: Endpoint) -> Any:
    return Dispatch.objects.visible_to(view.actor).concerning(
        thread_id=view.query.get("thread_id", ""), agent_id=view.query.get("agent_id", "")
    )


class DispatchCounts(Endpoint):
    @extend_schema(operation_id="count_dispatches")
    def get(self, request: Request) -> HttpResponse:
        """How many there are of each status, of a thread, an agent, or all."""
        return answer(_matching(self).count_by_status())


class DispatchClaim(Endpoint):
    @extend_schema(operation_id="claim_dispatches", request=ClaimBody)
    def post(self, request: Request) -> HttpResponse:
        """Claim up to `limit` dispatches, each of another thread; with `wait` not before there is
        one. `claim_token` is shown here only: extend, ack and nack ask for it."""
        if "wait" in self.query and "HTTP_IDEMPOTENCY_KEY" in request.META:
            raise BadRequest(
                "wait cannot be combined with Idempotency-Key",
                hint="A claim whose answer is lost comes back when its lease ends.",
            )
        # A parked call is asked again without its body.
        given = memory_of(request)
        if given is None:
            given = ClaimBody.take(request.data)
        return answer_news(
            self,
            FeedFilter(kinds=("mailbox.ready",), thread=given.get("thread_id", "")),
            look=lambda: dispatches.claim_dispatches(actor=self.actor, reason=self.reason, **given),
            is_news=lambda claims: bool(claims.dispatches),
            show=_show_claims,
            memory=given,
        )


def _show_claims(claims: Claims) -> HttpResponse:
    token = {"claim_token": claims.token}
    return answer({"items": [{**show_dispatch(row), **token} for row in claims.dispatches]})


class DispatchDetail(Endpoint):
    @extend_schema(operation_id="get_dispatch")
    def get(self, request: Request, dispatch_id: str) -> HttpResponse:
        return answer(show_dispatch(dispatches.find_dispatch(self.actor, dispatch_id)))


class DispatchExtend(Endpoint):
    @extend_schema(operation_id="extend_dispatch", request=ExtendBody)
    def post(self, request: Request, dispatch_id: str) -> HttpResponse:
        """Let the lease end `lease_seconds` from now."""
        row = dispatches.extend_dispatch(
            actor=self.actor,
            dispatch_id=dispatch_id,
            reason=self.reason,
            **ExtendBody.take(request.data),
        )
        return answer(show_dispatch(row))


class DispatchAck(Endpoint):
    @extend_schema(operation_id="ack_dispatch", request=AckBody)
    def post(self, request: Request, dispatch_id: str) -> HttpResponse:
        """Delivered, which does not say that the work succeeded."""
        row = dispatches.ack_dispatch(
            actor=self.actor,
            dispatch_id=dispatch_id,
            reason=self.reason,
            **AckBody.take(request.data),
        )
        return answer(show_dispatch(row))


class DispatchNack(Endpoint):
    @extend_schema(operation_id="nack_dispatch", request=NackBody)
    def post(self, request: Request, dispatch_id: str) -> HttpResponse:
        """Give it back: tried again after `retry_after` seconds or the usual pause, or dead."""
        row = dispatches.nack_dispatch(
            actor=self.actor,
            dispatch_id=dispatch_id,
            reason=self.reason,
            **NackBody.take(request.data),
        )
        return answer(show_dispatch(row))


class DispatchCancel(Endpoint):
    @extend_schema(operation_id="cancel_dispatch", request=None)
    def post(self, request: Request, dispatch_id: str) -> HttpResponse:
        """Take a queued one out of the line."""
        row = dispatches.cancel_dispatch(
            actor=self.actor, dispatch_id=dispatch_id, reason=self.reason
        )
        return answer(show_dispatch(row))


class DispatchReplay(Endpoint):
    @extend_schema(operation_id="replay_dispatch", request=None)
    def post(self, request: Request, dispatch_id: str) -> HttpResponse:
        """Put a dead letter back into line, with all its attempts."""
        row = dead_letters.replay_dispatch(
            actor=self.actor, dispatch_id=dispatch_id, reason=self.reason
        )
        return answer(show_dispatch(row))


class LettersReplay(Endpoint):
    @extend_schema(operation_id="replay_dead_letters", request=LettersBody)
    def post(self, request: Request) -> HttpResponse:
        """Replay all dead letters, of one thread or agent or all."""
        number = dead_letters.replay_dead_letters(
            actor=self.actor, reason=self.reason, **LettersBody.take(request.data)
        )
        return answer({"replayed": number})


class LettersClear(Endpoint):
    roles = {"POST": Role.ADMIN}

    @extend_schema(operation_id="clear_dead_letters", request=LettersBody)
    def post(self, request: Request) -> HttpResponse:
        """Delete dead letters for good, of one thread or agent or all."""
        done = dead_letters.clear_dead_letters(
            actor=self.actor,
            dry_run=self.query["dry_run"],
            reason=self.reason,
            **LettersBody.take(request.data),
        )
        return answer({"deleted": done.deleted, "matched": done.matched})
