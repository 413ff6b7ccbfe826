"""The deliveries of a webhook: the list on its page, and replaying a delivery."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.urls import path, reverse

from state_admin.contract import webhooks as contract
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.models import DeliveryStatus, Webhook, WebhookDelivery
from state_admin.services import webhook_flow
from state_admin.services.webhooks import find_webhook

from .actors import POST, page
from .bulk_actions import BulkAction, BulkList, Outlook, bulk_path
from .htmx import Request, list_url_of_page, see_other, toast
from .lists import list_paths
from .paging import BY_AGE, downwards, upwards
from .tables import Field, Orders, Table, choices_of, matching

PAGE = 50
_TABLE = Table(
    "web:webhook-detail",
    (
        Orders("Event", upwards("event", "kind", read=str)),
        Orders("Status", upwards("status", "status", read=str)),
        Orders("Attempts", downwards("attempts", "attempts"), numeric=True),
        Orders(
            "Response",
            downwards("response", "response", value=Coalesce("response_status", 0)),
            numeric=True,
        ),
        Orders(
            "Duration",
            downwards("duration", "duration", value=Coalesce("latency_ms", 0)),
            numeric=True,
        ),
        Orders("When", BY_AGE),
        Orders("Actions"),
    ),
    menu=(Field("status", "Status", choices=choices_of(DeliveryStatus.values)),),
)
_STATES = {
    DeliveryStatus.DELIVERING: "running",
    DeliveryStatus.DELIVERED: "done",
    DeliveryStatus.FAILED: "waiting",
    DeliveryStatus.DEAD: "failed",
}


_REPEATABLE = (DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.FAILED)


def rows_for(request: Request, hook: Webhook) -> dict[str, Any]:
    """The context of the list."""
    args = [hook.public_id]
    file = reverse("web:webhook-deliveries-json", args=args)
    filters, rows, table = _TABLE.load(request, partial(_find, hook), args=args, file=file)
    return {
        **table,
        "chips": (),  # the page has a field for the status
        "rows": [_row(request, row) for row in rows],
        "bulk": DELIVERIES.bar(request, table["current_url"], webhook_id=hook.public_id),
        "statuses": DeliveryStatus.values,
        "status": filters["status"],
    }


def _find(
    hook: Webhook, request: Request, filters: dict[str, str], name: str
) -> tuple[Sequence[WebhookDelivery], str]:
    rows = matching(hook.deliveries.all(), filters, status="status")
    return _TABLE.page(request, rows, PAGE, reverse(name, args=[hook.public_id]), filters)


def _row(request: Request, row: WebhookDelivery) -> tuple[WebhookDelivery, str, Any, bool]:
    """The delivery, its colour, its event, and whether it can be replayed."""
    can = request.actor.may(Role.ADMIN) and not row.test and row.status in _REPEATABLE
    return row, _STATES.get(DeliveryStatus(row.status), ""), values.load(row.body), can


def _items(request: Request, name: str, webhook_id: str) -> tuple[list[contract.Delivery], str]:
    hook = find_webhook(request.actor, webhook_id)
    rows, next_url = _find(hook, request, _TABLE.read(request), name)
    return list(map(contract.Delivery.of, rows)), next_url


@page(methods=POST, role=Role.ADMIN)
def replay(request: Request, delivery_id: str) -> HttpResponse:
    row = webhook_flow.replay_delivery(actor=request.actor, delivery_id=delivery_id)
    toast(request, "Delivery requeued")
    home = reverse("web:webhook-detail", args=[row.webhook.public_id])
    return see_other(request, list_url_of_page(request, home), part="webhook")


def _look(actor: Actor, ids: Sequence[str]) -> Outlook:
    hooks = Webhook.objects.visible_to(actor)
    rows = WebhookDelivery.objects.filter(webhook__in=hooks, public_id__in=ids, test=False)
    # The order of the feed: receivers should get the events in it.
    rows = rows.filter(status__in=_REPEATABLE).order_by("pk")
    return Outlook(
        {row.public_id: f"{row.kind} {row.subject}" for row in rows},
        [
            "Delivered and dead ones are sent again with the same event, before all waiting ones. "
            "Failed ones are retried now."
        ],
    )


def _replay_selected(actor: Actor, delivery_id: str, reason: str, _: str) -> int:
    webhook_flow.replay_delivery(actor=actor, delivery_id=delivery_id, reason=reason)
    return 1


DELIVERIES = BulkList(
    name="webhook-detail",
    part="delivery-table",
    nouns="delivery,deliveries",
    actions={
        "redeliver": BulkAction(
            verb="Redeliver",
            past="Requeued",
            only="Only delivered, dead and failed deliveries can be redelivered, and no test deliveries",
            look=_look,
            do=_replay_selected,
            kind="primary",
        )
    },
    url=lambda _: "",  # a delivery has no page
    role=Role.ADMIN,
)

urlpatterns = [
    bulk_path("webhooks/<str:webhook_id>/deliveries/bulk", DELIVERIES),
    *list_paths("webhooks/<str:webhook_id>/deliveries", "webhook-deliveries", _items),
    path("deliveries/<str:delivery_id>/replay", replay, name="delivery-replay"),
]
