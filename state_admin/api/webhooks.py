"""Webhooks: /webhooks, /webhooks/{id}, …/{pause|resume|rotate|test|replay|deliveries}, and
/deliveries/{id}/replay."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from state_admin import egress
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import DeliveryStatus, Webhook, WebhookDelivery
from state_admin.services import webhook_flow, webhooks
from state_admin.services.errors import BadRequest
from state_admin.services.webhooks import Filter

from . import pagination
from .bodies import Body, Flag, Part, Text, Whole, answer, encode, no_content, verbatim
from .endpoint import Endpoint

_ADMIN = {"POST": Role.ADMIN, "PATCH": Role.ADMIN, "DELETE": Role.ADMIN}


class FilterBody(Part):
    kinds = serializers.ListField(child=Text(), required=False)
    namespaces = serializers.ListField(child=Text(), required=False)
    key = Text(required=False, allow_blank=True)
    prefix = Text(required=False, allow_blank=True)
    thread = Text(required=False, allow_blank=True)
    run = Text(required=False, allow_blank=True)


class WebhookBody(Body):
    name = Text()
    url = Text()
    filter = FilterBody(required=False)
    cursor = Text(required=False)


class WebhookChange(Body):
    name = Text(required=False)
    url = Text(required=False)
    filter = FilterBody(required=False)


class ResumeBody(Body):
    skip = Flag(required=False)


class RotateBody(Body):
    overlap_seconds = Whole(required=False, min_value=0)


class ReplayBody(Body):
    dead_letters = Flag(required=False)
    cursor = Text(required=False)


def show_webhook(hook: Webhook, actor: Actor) -> dict[str, Any]:
    """A URL may hold a secret in its path: only those who may change it see all of it."""
    return {
        "id": hook.public_id,
        "name": hook.name,
        "url": hook.url if actor.may(Role.ADMIN) else egress.origin_of(hook.url),
        "status": hook.status,
        "status_reason": hook.status_reason or None,
        "filter": {
            "kinds": hook.kinds,
            "namespaces": hook.namespaces,
            "key": hook.key,
            "prefix": hook.prefix,
            "thread": hook.thread,
            "run": hook.run,
        },
        "sees": {
            "namespaces": hook.grant_namespaces,
            "thread_prefixes": hook.grant_thread_prefixes,
        },
        "created_by": hook.created_by,
        "waiting": hook.waiting,  # type: ignore[attr-defined]  # with_counts
        "dead_letters": hook.dead,  # type: ignore[attr-defined]
        "failing_since": hook.failing_since,
        "last_error": hook.last_error or None,
        "last_delivered_at": hook.last_delivered_at,
        "created_at": hook.created_at,
        "updated_at": hook.updated_at,
    }


def show_delivery(row: WebhookDelivery) -> dict[str, Any]:
    open_end = row.status in (DeliveryStatus.QUEUED, DeliveryStatus.FAILED)
    return {
        "id": row.public_id,
        "webhook_id": row.webhook.public_id,
        "status": row.status,
        "test": row.test,
        "event": verbatim(row.body),
        "attempts": row.attempts,
        "replays": row.replays,
        "response_status": row.response_status,
        "latency_ms": row.latency_ms,
        "error": row.error or None,
        "next_attempt_at": row.next_attempt_at if open_end else None,
        "created_at": row.created_at,
        "attempted_at": row.attempted_at,
        "finished_at": row.finished_at,
    }


def _with_secret(hook: Webhook, actor: Actor, secret: str, status: int) -> HttpResponse:
    shown = show_webhook(hook, actor)
    response = answer({**shown, "secret": secret}, status)
    response.kept_content = encode({**shown, "secret": None})  # type: ignore[attr-defined]
    return response


def _filter_of(given: dict[str, Any]) -> Filter:
    fields: dict[str, Any] = {
        name: tuple(part) if isinstance(part, list) else part for name, part in given.items()
    }
    return Filter(**fields)


def _optional(body: type[Body], request: Request) -> dict[str, Any]:
    """A body that may be left out."""
    raw = request.data
    return body.take(raw if raw else values.read(b"{}"))


class WebhookList(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="list_webhooks")
    def get(self, request: Request) -> HttpResponse:
        """Webhooks, newest first, with what waits and what was given up."""
        page = pagination.read_page(self)
        rows = Webhook.objects.visible_to(self.actor).with_counts().order_by("-id")
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        shown, cursor = page.close(list(rows[: page.limit + 1]), lambda row: row.pk)
        items = [show_webhook(row, self.actor) for row in shown]
        return answer({"items": items, "next_cursor": cursor})

    @extend_schema(operation_id="create_webhook", request=WebhookBody)
    def post(self, request: Request) -> HttpResponse:
        """Make a webhook. The answer holds its signing secret, which is never shown again."""
        given = WebhookBody.take(request.data)
        hook, secret = webhooks.create_webhook(
            actor=self.actor,
            name=given["name"],
            url=given["url"],
            wanted=_filter_of(given.get("filter", {})),
            cursor=given.get("cursor", ""),
            reason=self.reason,
        )
        response = _with_secret(hook, self.actor, secret, 201)
        response["Location"] = f"/api/v1/webhooks/{hook.public_id}"
        return response


class WebhookDetail(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="get_webhook")
    def get(self, request: Request, webhook_id: str) -> HttpResponse:
        return answer(show_webhook(webhooks.find_webhook(self.actor, webhook_id), self.actor))

    @extend_schema(operation_id="change_webhook", request=WebhookChange)
    def patch(self, request: Request, webhook_id: str) -> HttpResponse:
        """Change name, URL or filter; a filter is replaced as a whole."""
        given = WebhookChange.take(request.data)
        wanted = _filter_of(given["filter"]) if "filter" in given else None
        hook = webhooks.change_webhook(
            actor=self.actor,
            webhook_id=webhook_id,
            name=given.get("name"),
            url=given.get("url"),
            wanted=wanted,
            reason=self.reason,
        )
        return answer(show_webhook(hook, self.actor))

    @extend_schema(operation_id="delete_webhook")
    def delete(self, request: Request, webhook_id: str) -> HttpResponse:
        webhooks.delete_webhook(actor=self.actor, webhook_id=webhook_id, reason=self.reason)
        return no_content()


class WebhookPause(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="pause_webhook", request=None)
    def post(self, request: Request, webhook_id: str) -> HttpResponse:
        """Send nothing more for now. Its place in the feed is kept as long as changes are."""
        hook = webhook_flow.pause_webhook(
            actor=self.actor, webhook_id=webhook_id, reason=self.reason
        )
        return answer(show_webhook(hook, self.actor))


class WebhookResume(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="resume_webhook", request=ResumeBody)
    def post(self, request: Request, webhook_id: str) -> HttpResponse:
        """Go on where it stopped; with `skip`, from now."""
        given = _optional(ResumeBody, request)
        hook = webhook_flow.resume_webhook(
            actor=self.actor,
            webhook_id=webhook_id,
            skip=given.get("skip", False),
            reason=self.reason,
        )
        return answer(show_webhook(hook, self.actor))


class WebhookRotate(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="rotate_webhook_secret", request=RotateBody)
    def post(self, request: Request, webhook_id: str) -> HttpResponse:
        """A new secret, shown once; the former one goes on signing beside it for a day, or for
        `overlap_seconds`."""
        given = _optional(RotateBody, request)
        hook, secret = webhooks.rotate_secret(
            actor=self.actor,
            webhook_id=webhook_id,
            overlap_seconds=given.get("overlap_seconds", webhooks.DEFAULT_OVERLAP),
            reason=self.reason,
        )
        return _with_secret(hook, self.actor, secret, 200)


class WebhookTest(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="test_webhook", request=None)
    def post(self, request: Request, webhook_id: str) -> HttpResponse:
        """Send a test event, once, whatever the status. 202: a worker does it; see deliveries."""
        made = webhook_flow.send_test(actor=self.actor, webhook_id=webhook_id)
        return answer(show_delivery(made), 202)


class WebhookDeliveries(Endpoint):
    @extend_schema(operation_id="list_deliveries")
    def get(self, request: Request, webhook_id: str) -> HttpResponse:
        """Deliveries, newest first, by status."""
        hook = webhooks.find_webhook(self.actor, webhook_id)
        page = pagination.read_page(self)
        rows = WebhookDelivery.objects.filter(webhook=hook).select_related("webhook")
        if status := self.query.get("status"):
            rows = rows.filter(status=status)
        if page.after is not None:
            rows = rows.filter(id__lt=page.after)
        found = list(rows.order_by("-id")[: page.limit + 1])
        shown, cursor = page.close(found, lambda row: row.pk)
        return answer({"items": [show_delivery(row) for row in shown], "next_cursor": cursor})


class WebhookReplay(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="replay_webhook", request=ReplayBody)
    def post(self, request: Request, webhook_id: str) -> HttpResponse:
        """Send again: all dead letters, or every wanted change behind a cursor."""
        given = ReplayBody.take(request.data)
        if given.get("dead_letters", False) == ("cursor" in given):
            raise BadRequest('say either {"dead_letters": true} or {"cursor": "…"}')
        replayed = None
        if "cursor" in given:
            hook = webhook_flow.replay_from(
                actor=self.actor,
                webhook_id=webhook_id,
                cursor=given["cursor"],
                reason=self.reason,
            )
        else:
            replayed = webhook_flow.replay_dead_letters(
                actor=self.actor, webhook_id=webhook_id, reason=self.reason
            )
            hook = webhooks.find_webhook(self.actor, webhook_id)
        return answer({**show_webhook(hook, self.actor), "replayed": replayed}, 202)


class DeliveryReplay(Endpoint):
    roles = _ADMIN

    @extend_schema(operation_id="replay_delivery", request=None)
    def post(self, request: Request, delivery_id: str) -> HttpResponse:
        """Deliver one again, or try one that failed now instead of later."""
        row = webhook_flow.replay_delivery(
            actor=self.actor, delivery_id=delivery_id, reason=self.reason
        )
        return answer(show_delivery(row), 202)
