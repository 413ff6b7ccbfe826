"""Webhooks: URLs to which changes are sent, and the deliveries to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

from msgspec import UNSET, UnsetType

from state_admin.domain.access import Role

from .base import JSON_TYPE, Answer, Body, DescendingList, DryRun, Operation, Page, doc
from .changes import Cursor, KindGlob
from .types import MAX_ID, Actor, JsonOut, Time, json_of, time_of

if TYPE_CHECKING:
    from state_admin import models

WebhookName = Annotated[
    str, doc("Name, for people.", "billing", schema={"minLength": 1, "maxLength": 128})
]
WebhookUrl = Annotated[
    str,
    doc(
        "http:// or https:// URL to which events are sent.",
        "https://example.com/hooks/commonhold",
        schema={"minLength": 1},
    ),
]
WebhookStatus = Annotated[
    str,
    doc(
        "`disabled`: the server stopped it, see `status_reason`.",
        "active",
        choices=("active", "paused", "disabled"),
    ),
]
DeliveryStatus = Annotated[
    str,
    doc(
        "`failed`: the last attempt failed and another one follows. `dead`: no attempts are left; a"
        " dead letter, which can be replayed.",
        "delivered",
        choices=("queued", "delivering", "delivered", "failed", "dead"),
    ),
]


class WebhookFilter(Body):
    """Which changes are sent: those that meet all conditions. An empty condition is always met."""

    kinds: Annotated[
        list[KindGlob],
        doc(
            "Kinds of changes, or globs of kinds; one of them must match. At most 50.",
            ["run.*"],
            schema={"maxItems": 50},
        ),
    ] = []
    namespaces: Annotated[
        list[str],
        doc(
            "Globs of namespaces; one of them must match. Changes without a namespace, such as those "
            "of threads and runs, then do not match. At most 50.",
            ["team_*"],
        ),
    ] = []
    key: Annotated[str, doc("Key of the change.", "", schema={"maxLength": 512})] = ""
    prefix: Annotated[str, doc("Prefix of the key.", "", schema={"maxLength": 512})] = ""
    thread_id: Annotated[str, doc("Id of the thread.", "", schema={"maxLength": MAX_ID})] = ""
    run_id: Annotated[str, doc("Id of the run.", "", schema={"maxLength": MAX_ID})] = ""


class WebhookGrant(Answer):
    """What the webhook can see: the limits of its creator at the time of its creation."""

    namespaces: Annotated[list[str], doc("Globs of namespaces; empty: all.", ["team_*"])]
    thread_prefixes: Annotated[list[str], doc("Prefixes of thread ids; empty: all.", [])]


class Webhook(Answer):
    """A URL to which changes are sent."""

    id: Annotated[str, doc("Id of the webhook.", "0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21")]
    name: WebhookName
    url: Annotated[
        WebhookUrl,
        doc("URL to which events are sent. Without the role admin only scheme, host and port."),
    ]
    status: WebhookStatus
    status_reason: Annotated[str | None, doc("Why the server disabled it; null otherwise.", None)]
    filter: Annotated[WebhookFilter, doc("Which changes are sent.")]
    sees: WebhookGrant
    created_by: Annotated[Actor, doc("Who created it.")]
    waiting: Annotated[int, doc("Deliveries that have not ended.", 0, ge=0)]
    dead_letters: Annotated[int, doc("Deliveries with the status `dead`.", 0, ge=0)]
    failing_since: Annotated[
        Time | None, doc("Since when every attempt has failed; null: the last one did not.", None)
    ]
    last_error: Annotated[str | None, doc("Why the last attempt failed; null: it did not.", None)]
    last_delivered_at: Annotated[Time | None, doc("Time of the last delivery; null: none yet.")]
    created_at: Annotated[Time, doc("When it was created.")]
    updated_at: Annotated[Time, doc("When it was last changed.")]

    @classmethod
    def of(cls, row: models.Webhook, url: str, **more: Any) -> Self:
        """`row` has its counts. `url`: as much of it as the reader may see."""
        return cls.from_attributes(
            row,
            id=row.public_id,
            url=url,
            status_reason=row.status_reason or None,
            filter=WebhookFilter(
                kinds=row.kinds,
                namespaces=row.namespaces,
                key=row.key,
                prefix=row.prefix,
                thread_id=row.thread,
                run_id=row.run,
            ),
            sees=WebhookGrant(
                namespaces=row.grant_namespaces, thread_prefixes=row.grant_thread_prefixes
            ),
            dead_letters=row.dead,
            last_error=row.last_error or None,
            **more,
        )


class WebhookWithSecret(Webhook):
    """A webhook with a new signing secret."""

    secret: Annotated[
        str | None,
        doc(
            "The signing secret. It is returned once: null in the repetition of a request with the"
            " same Idempotency-Key.",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ),
    ]


class WebhookReplayed(Webhook):
    """A webhook that sends events again."""

    replayed: Annotated[
        int | None, doc("Number of dead letters that are sent again; null with `cursor`.", 2)
    ]


class Delivery(Answer):
    """An event on its way to a webhook."""

    id: Annotated[str, doc("Id of the delivery.", "0199f3c2-b6d2-7f10-8a55-1f0c92d1e3aa")]
    webhook_id: Annotated[str, doc("Id of the webhook.", "0199f3c2-a41c-7d3e-9b1f-6f0f4a5e8c21")]
    status: DeliveryStatus
    test: Annotated[bool, doc("Whether it is a test event.", False)]
    event: Annotated[
        JsonOut,
        doc("The CloudEvent that is sent.", {"specversion": "1.0", "type": "commonhold.entry.put"}),
    ]
    attempts: Annotated[int, doc("Attempts since it was last queued.", 1, ge=0)]
    replays: Annotated[int, doc("How many times it was replayed.", 0, ge=0)]
    response_status: Annotated[
        int | None, doc("HTTP status of the last response; null: there was none.", 200)
    ]
    latency_ms: Annotated[
        int | None, doc("Duration of the last attempt in milliseconds; null: none.", 85)
    ]
    error: Annotated[str | None, doc("Why the last attempt failed; null: it did not.", None)]
    next_attempt_at: Annotated[
        Time | None, doc("When the next attempt is due; null: none is planned.", None)
    ]
    created_at: Annotated[Time, doc("When it was queued first.")]
    attempted_at: Annotated[Time | None, doc("When the last attempt began; null: none yet.")]
    finished_at: Annotated[
        Time | None, doc("When it was delivered, or the last attempt failed; null: not yet.")
    ]

    @classmethod
    def of(cls, row: models.WebhookDelivery) -> Self:
        planned = row.next_attempt_at if row.status in ("queued", "failed") else None
        return cls.from_attributes(
            row,
            id=row.public_id,
            webhook_id=row.webhook.public_id,
            event=json_of(row.body),
            error=row.error or None,
            next_attempt_at=time_of(planned),
        )


class NewWebhook(Body):
    """The address of a new webhook, and the changes that are sent to it."""

    name: WebhookName
    url: WebhookUrl
    filter: Annotated[WebhookFilter | UnsetType, doc("Which changes are sent. Default: all.")] = (
        UNSET
    )
    cursor: Annotated[
        Cursor | UnsetType, doc("Send the changes behind this position. Default: from now on.")
    ] = UNSET


class WebhookChanges(Body):
    """The fields of a webhook to change; all others stay."""

    name: WebhookName | UnsetType = UNSET
    url: WebhookUrl | UnsetType = UNSET
    filter: Annotated[
        WebhookFilter | UnsetType, doc("Which changes are sent; replaces the whole filter.")
    ] = UNSET


class Resumption(Body):
    """How to resume a paused or disabled webhook."""

    skip: Annotated[
        bool, doc("`true`: discard what is waiting and continue with the next change.", False)
    ] = False


class SecretRotation(Body):
    """How long deliveries are signed with both the previous and the new secret."""

    overlap_seconds: Annotated[
        int | UnsetType,
        doc(
            "How long, in seconds, the previous secret signs too; 0: it ends at once. Default: a"
            " day.",
            86_400,
            schema={"minimum": 0, "maximum": 30 * 86_400},
        ),
    ] = UNSET


class Replay(Body):
    """Either `dead_letters` or `cursor`."""

    dead_letters: Annotated[bool, doc("Send all dead letters again.", True)] = False
    cursor: Annotated[
        Cursor | UnsetType, doc("Send all matching changes behind this position again.")
    ] = UNSET


class WebhookFilters(DescendingList):
    status: Annotated[WebhookStatus | None, doc("Only webhooks with this status.")] = None


class DeliveryFilters(DescendingList):
    status: Annotated[DeliveryStatus | None, doc("Only deliveries with this status.")] = None


_operation = partial(Operation, tag="webhooks")
LIST_WEBHOOKS = _operation(
    id="list_webhooks",
    route="GET /webhooks",
    summary="List webhooks",
    description="Webhooks of the workspace, newest first.",
    query=WebhookFilters,
    answers={200: Page[Webhook]},
)
CREATE_WEBHOOK = _operation(
    id="create_webhook",
    route="POST /webhooks",
    summary="Create a webhook",
    description="The response contains the signing secret, which is not returned again. The webhook"
    " sees what its creator sees now. A workspace has at most 100. 410 if the cursor has expired.",
    role=Role.ADMIN,
    body=NewWebhook,
    # Without a cursor: one from the documentation has expired.
    examples={
        JSON_TYPE: {
            "name": "billing",
            "url": "https://example.com/hooks/commonhold",
            "filter": {"kinds": ["run.*"]},
        }
    },
    answers={201: WebhookWithSecret},
    problems=("gone", "quota-exceeded"),
    location=True,
)
GET_WEBHOOK = _operation(
    id="get_webhook",
    route="GET /webhooks/{webhook_id}",
    summary="Read a webhook",
    answers={200: Webhook},
)
CHANGE_WEBHOOK = _operation(
    id="change_webhook",
    route="PATCH /webhooks/{webhook_id}",
    summary="Change a webhook",
    description="A new filter applies to later changes, not to deliveries that are queued.",
    role=Role.ADMIN,
    body=WebhookChanges,
    answers={200: Webhook},
)
DELETE_WEBHOOK = _operation(
    id="delete_webhook",
    route="DELETE /webhooks/{webhook_id}",
    summary="Delete a webhook",
    description="Deletes its deliveries too. One that is being sent may still arrive.",
    role=Role.ADMIN,
    answers={204: None},
    dry_run=DryRun,
)
PAUSE_WEBHOOK = _operation(
    id="pause_webhook",
    route="POST /webhooks/{webhook_id}/pause",
    summary="Pause a webhook",
    description="Nothing is sent until it is resumed. Its position in the change feed is retained as"
    " long as changes are.",
    role=Role.ADMIN,
    answers={200: Webhook},
)
RESUME_WEBHOOK = _operation(
    id="resume_webhook",
    route="POST /webhooks/{webhook_id}/resume",
    summary="Resume a webhook",
    description="Continues where it stopped, or with `skip` from now on. 410 if the changes since"
    " then are no longer retained: resume with `skip`.",
    role=Role.ADMIN,
    body=Resumption,
    body_required=False,
    answers={200: Webhook},
    problems=("gone",),
)
ROTATE_WEBHOOK_SECRET = _operation(
    id="rotate_webhook_secret",
    route="POST /webhooks/{webhook_id}/rotate",
    summary="Rotate the secret of a webhook",
    description="Returns the new secret, once. The previous one signs beside it for"
    " `overlap_seconds`.",
    role=Role.ADMIN,
    body=SecretRotation,
    body_required=False,
    answers={200: WebhookWithSecret},
)
TEST_WEBHOOK = _operation(
    id="test_webhook",
    route="POST /webhooks/{webhook_id}/test",
    summary="Send a test event",
    description="Sent once, whatever the status of the webhook. A worker sends it: read the"
    " deliveries for the result.",
    role=Role.ADMIN,
    answers={202: Delivery},
)
REPLAY_WEBHOOK = _operation(
    id="replay_webhook",
    route="POST /webhooks/{webhook_id}/replay",
    summary="Replay events",
    description="Sends all dead letters again, or every matching change behind a cursor. 409 if the"
    " cursor is ahead of the webhook, 410 if it has expired.",
    role=Role.ADMIN,
    body=Replay,
    examples={JSON_TYPE: {"dead_letters": True}},
    answers={202: WebhookReplayed},
    dry_run=WebhookReplayed,
    problems=("gone", "conflict"),
)
LIST_DELIVERIES = _operation(
    id="list_deliveries",
    route="GET /webhooks/{webhook_id}/deliveries",
    replica=True,
    summary="List the deliveries of a webhook",
    description="Newest first. Delivered ones and dead letters are deleted after the retention"
    " time.",
    query=DeliveryFilters,
    answers={200: Page[Delivery]},
)
REPLAY_DELIVERY = _operation(
    id="replay_delivery",
    route="POST /deliveries/{delivery_id}/replay",
    summary="Replay a delivery",
    description="Sends a finished delivery again, or retries a failed one now. 409 if it is queued"
    " or being sent, and for a test event.",
    role=Role.ADMIN,
    answers={202: Delivery},
    problems=("conflict",),
)
