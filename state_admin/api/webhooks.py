"""Webhooks: /webhooks, /webhooks/{id}, …/{pause|resume|rotate|test|replay|deliveries}, and
/deliveries/{id}/replay."""

from __future__ import annotations

from django.http import HttpResponse
from msgspec import UNSET, structs

from state_admin import egress
from state_admin.contract import webhooks as contract
from state_admin.domain.access import Actor, Role
from state_admin.models import Webhook, WebhookDelivery
from state_admin.rest.bodies import answer, answer_once, no_content
from state_admin.rest.endpoint import Endpoint, handles
from state_admin.rest.pagination import answer_rows
from state_admin.services import webhook_flow, webhooks
from state_admin.services.errors import BadRequest


def _url(hook: Webhook, actor: Actor) -> str:
    """Return the URL; its path may contain a secret, so only those who may change it see all of
    it."""
    return hook.url if actor.may(Role.ADMIN) else egress.origin_of(hook.url)


def _show(call: Endpoint, hook: Webhook) -> HttpResponse:
    return answer(contract.Webhook.of(hook, _url(hook, call.actor)))


def _show_with_secret(call: Endpoint, hook: Webhook, secret: str, status: int) -> HttpResponse:
    document = contract.WebhookWithSecret.of(hook, _url(hook, call.actor), secret=secret)
    return answer_once(document, status, kept=structs.replace(document, secret=None))


@handles(contract.LIST_WEBHOOKS)
def list_webhooks(call: Endpoint) -> HttpResponse:
    rows = Webhook.objects.visible_to(call.actor).with_counts()
    rows = rows.filter(**call.given(status="status"))
    return answer_rows(call, rows, lambda row: contract.Webhook.of(row, _url(row, call.actor)))


@handles(contract.CREATE_WEBHOOK)
def create_webhook(call: Endpoint) -> HttpResponse:
    body = call.body(contract.NewWebhook)
    hook, secret = webhooks.create_webhook(
        **call.author,
        name=body.name,
        url=body.url,
        filters=body.filter or None,
        cursor=body.cursor or "",
    )
    response = _show_with_secret(call, hook, secret, 201)
    response["Location"] = f"/api/v1/webhooks/{hook.public_id}"
    return response


@handles(contract.GET_WEBHOOK)
def get_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    return _show(call, webhooks.find_webhook(call.actor, webhook_id))


@handles(contract.CHANGE_WEBHOOK)
def change_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    body = call.body(contract.WebhookChanges)
    hook = webhooks.change_webhook(
        **call.author,
        webhook_id=webhook_id,
        name=None if body.name is UNSET else body.name,
        url=None if body.url is UNSET else body.url,
        filters=body.filter or None,
    )
    return _show(call, hook)


@handles(contract.DELETE_WEBHOOK)
def delete_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    webhooks.delete_webhook(**call.author, webhook_id=webhook_id)
    return no_content()


@handles(contract.PAUSE_WEBHOOK)
def pause_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    hook = webhook_flow.pause_webhook(**call.author, webhook_id=webhook_id)
    return _show(call, hook)


@handles(contract.RESUME_WEBHOOK)
def resume_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    hook = webhook_flow.resume_webhook(
        **call.author, webhook_id=webhook_id, skip=call.body(contract.Resumption).skip
    )
    return _show(call, hook)


@handles(contract.ROTATE_WEBHOOK_SECRET)
def rotate_webhook_secret(call: Endpoint, webhook_id: str) -> HttpResponse:
    fields = call.body(contract.SecretRotation).given()
    hook, secret = webhooks.rotate_secret(**call.author, webhook_id=webhook_id, **fields)
    return _show_with_secret(call, hook, secret, 200)


@handles(contract.TEST_WEBHOOK)
def send_test(call: Endpoint, webhook_id: str) -> HttpResponse:
    row = webhook_flow.send_test(actor=call.actor, webhook_id=webhook_id)
    return answer(contract.Delivery.of(row), 202)


@handles(contract.LIST_DELIVERIES)
def list_deliveries(call: Endpoint, webhook_id: str) -> HttpResponse:
    hook = webhooks.find_webhook(call.actor, webhook_id)
    rows = WebhookDelivery.objects.filter(webhook=hook).select_related("webhook")
    rows = rows.filter(**call.given(status="status"))
    return answer_rows(call, rows, contract.Delivery.of, owner={"webhook_id": hook.pk})


@handles(contract.REPLAY_WEBHOOK)
def replay_webhook(call: Endpoint, webhook_id: str) -> HttpResponse:
    body = call.body(contract.Replay)
    if body.dead_letters == (body.cursor is not UNSET):
        raise BadRequest('send either {"dead_letters": true} or {"cursor": "…"}')
    replayed = None
    if body.cursor is not UNSET:
        hook = webhook_flow.replay_from(**call.author, webhook_id=webhook_id, cursor=body.cursor)
    else:
        replayed = webhook_flow.replay_dead_letters(**call.author, webhook_id=webhook_id)
        hook = webhooks.find_webhook(call.actor, webhook_id)
    url = _url(hook, call.actor)
    return answer(contract.WebhookReplayed.of(hook, url, replayed=replayed), 202)


@handles(contract.REPLAY_DELIVERY)
def replay_delivery(call: Endpoint, delivery_id: str) -> HttpResponse:
    row = webhook_flow.replay_delivery(**call.author, delivery_id=delivery_id)
    return answer(contract.Delivery.of(row), 202)
