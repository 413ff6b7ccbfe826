"""Webhooks: their filters, their position in the feed, and every delivery."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now

from state_admin.domain import access
from state_admin.domain.access import Actor
from state_admin.domain.webhooks import Choice

from .feed_sql import FeedFilter, Position
from .leases import LeasedQuerySet, LeasedRow
from .workspaces import Workspace


class WebhookStatus(models.TextChoices):
    ACTIVE = "active"
    PAUSED = "paused"
    # By the server; status_reason says why.
    DISABLED = "disabled"


class DeliveryStatus(models.TextChoices):
    QUEUED = "queued"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    # The last attempt failed; another one follows.
    FAILED = "failed"
    # All attempts failed; kept for a replay.
    DEAD = "dead"


UNFINISHED = (DeliveryStatus.QUEUED, DeliveryStatus.DELIVERING, DeliveryStatus.FAILED)


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, actor: Actor) -> Self:
        """The webhooks of the actor's workspace whose permissions do not exceed the actor's."""
        rows = self.filter(workspace_id=actor.workspace_id)
        if not actor.restricted:
            return rows
        # A workspace has few, and whether permissions include others is a rule of the domain.
        within = [
            hook.pk
            for hook in rows
            if not access.narrower(
                actor.role, hook.grant_namespaces, hook.grant_thread_prefixes, creator=actor
            )
        ]
        return rows.filter(pk__in=within)

    def active(self) -> Self:
        return self.filter(status=WebhookStatus.ACTIVE)

    def failing(self) -> Self:
        """Active ones whose last attempt failed, and those that the server disabled."""
        failing = Q(status=WebhookStatus.ACTIVE, failing_since__isnull=False)
        return self.filter(failing | Q(status=WebhookStatus.DISABLED))

    def with_counts(self) -> Self:
        """With `waiting` and `dead`: the number of unfinished deliveries, and of dead letters."""
        return self.annotate(
            waiting=_count_of(Q(status__in=UNFINISHED)),
            dead=_count_of(Q(status=DeliveryStatus.DEAD)),
        )


def _count_of(which: Q) -> Coalesce:
    rows = WebhookDelivery.objects.filter(which, webhook=OuterRef("pk"), test=False)
    counted = rows.order_by().values("webhook").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=models.IntegerField()), 0)


class Webhook(models.Model):
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="webhooks", db_index=False
    )
    public_id = models.CharField(max_length=36, db_collation="C")
    name = models.CharField(max_length=128)
    url = models.TextField()
    status = models.CharField(
        max_length=8, choices=WebhookStatus.choices, default=WebhookStatus.ACTIVE
    )
    status_reason = models.TextField(default="", blank=True)
    # The filter: globs of kinds and namespaces, and the fields of a FeedFilter. Empty: all.
    kinds = ArrayField(models.CharField(max_length=128), default=list, db_default=[])
    namespaces = ArrayField(models.CharField(max_length=128), default=list, db_default=[])
    key = models.TextField(default="", blank=True, db_collation="C")
    prefix = models.TextField(default="", blank=True, db_collation="C")
    thread = models.CharField(max_length=128, default="", blank=True, db_collation="C")
    run = models.CharField(max_length=128, default="", blank=True, db_collation="C")
    # The permissions: those of its creator at the time of its creation.
    grant_namespaces = ArrayField(models.CharField(max_length=128), default=list, db_default=[])
    grant_thread_prefixes = ArrayField(
        models.CharField(max_length=128), default=list, db_default=[]
    )
    created_by = models.CharField(max_length=150)
    # The position in the feed: every change up to here has a delivery or did not match. `place_at`
    # as in a cursor (streams/cursors.py): no change after the position is older.
    place_xid = models.BigIntegerField()
    place_id = models.BigIntegerField()
    place_at = models.DateTimeField()
    # Since when all attempts have failed; NULL without failures.
    failing_since = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(default="", blank=True)
    last_delivered_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    # Of rows that are read with_counts.
    waiting: int
    dead: int

    objects = WebhookQuerySet.as_manager()

    class Meta:
        db_table = "webhooks"
        constraints = [models.UniqueConstraint(fields=["public_id"], name="webhooks_id_unique")]
        indexes = [
            # The list of a workspace.
            models.Index(fields=["workspace", "-id"], name="webhooks_newest"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def next_delivery(self) -> WebhookDelivery | None:
        """The oldest unfinished delivery. Deliveries are sent in order, so all later ones wait for it."""
        rows = self.deliveries.filter(status__in=UNFINISHED, test=False)
        return rows.order_by("pk").first()

    @property
    def place(self) -> Position:
        return Position(self.place_xid, self.place_id)

    @property
    def choice(self) -> Choice:
        """The part of its filter that the query of the feed does not support: globs."""
        return Choice(tuple(self.namespaces), tuple(self.kinds))

    @property
    def feed_filter(self) -> FeedFilter:
        """The rest of its filter."""
        return FeedFilter(key=self.key, prefix=self.prefix, thread=self.thread, run=self.run)

    @property
    def reader(self) -> Actor:
        """The actor with which the feed is read for it."""
        return Actor(
            kind="system",
            id=self.public_id,
            name="webhooks",
            workspace_id=self.workspace_id,
            role=access.Role.VIEWER,
            namespaces=tuple(self.grant_namespaces),
            thread_prefixes=tuple(self.grant_thread_prefixes),
        )


class WebhookSecretQuerySet(models.QuerySet["WebhookSecret"]):
    def live(self) -> Self:
        """Those that are still used for signing, newest first."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now())).order_by("-pk")


class WebhookSecret(models.Model):
    """A signing secret. Only its salt is stored: it is derived from the server's SECRET_KEY
    (docs/adr/0007-webhook-secrets-are-derived.md), so that the database alone is not enough to
    sign."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="secrets")
    salt = models.CharField(max_length=64)
    # The fingerprint of the SECRET_KEY it is derived from: keys are rotated too.
    key_id = models.CharField(max_length=16)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # NULL: the newest one, used until it is rotated.
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = WebhookSecretQuerySet.as_manager()

    class Meta:
        db_table = "webhook_secrets"


class DeliveryQuerySet(LeasedQuerySet["WebhookDelivery"]):
    waiting = (DeliveryStatus.QUEUED, DeliveryStatus.FAILED)
    working = DeliveryStatus.DELIVERING
    due = "next_attempt_at"

    def visible_to(self, actor: Actor) -> Self:
        return self.filter(webhook__in=Webhook.objects.visible_to(actor))


class WebhookDelivery(LeasedRow):
    """One change to be delivered to one webhook. Order is by id: a webhook's rows are inserted in
    the feed's order, by one process at a time."""

    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    public_id = models.CharField(max_length=36, db_collation="C")
    # The change: its position in the feed, and the fields that a list shows.
    change_xid = models.BigIntegerField()
    change_id = models.BigIntegerField()
    event_id = models.CharField(max_length=64, db_collation="C")
    kind = models.CharField(max_length=48)
    subject = models.TextField(default="", blank=True)
    # The CloudEvent, byte for byte, so that a replay sends the original event.
    body = models.TextField()
    # Requested by a user: sent out of order, once, whatever the webhook's status.
    test = models.BooleanField(default=False)
    status = models.CharField(
        max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.QUEUED
    )
    response_status = models.IntegerField(null=True, blank=True)
    latency_ms = models.IntegerField(null=True, blank=True)
    # Why the last attempt failed.
    error = models.TextField(default="", blank=True)
    next_attempt_at = models.DateTimeField(db_default=Now())
    replays = models.IntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    attempted_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        db_table = "webhook_deliveries"
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="webhook_deliveries_id_unique"),
            # At most one in progress per webhook, which preserves the order.
            models.UniqueConstraint(
                fields=["webhook"],
                name="webhook_deliveries_in_flight",
                condition=Q(status="delivering", test=False),
            ),
        ]
        indexes = [
            # The next one of a webhook, and how many are queued.
            models.Index(
                fields=["webhook", "id"],
                name="webhook_deliveries_unfinished",
                condition=Q(status__in=["queued", "delivering", "failed"]),
            ),
            # The sweep: tests that no worker has begun, and deliveries of workers that died.
            models.Index(
                fields=["id"],
                name="webhook_deliveries_tests",
                condition=Q(test=True, status__in=["queued", "delivering", "failed"]),
            ),
            models.Index(
                fields=["lease_expires_at"],
                name="webhook_deliveries_leases",
                condition=Q(status="delivering"),
            ),
            # The list of a webhook's deliveries, newest first, with and without a status.
            models.Index(fields=["webhook", "-id"], name="webhook_deliveries_newest"),
            models.Index(fields=["webhook", "status", "-id"], name="webhook_deliveries_by_status"),
            # Retention deletes finished ones, by age.
            models.Index(
                fields=["status", "finished_at"],
                name="webhook_deliveries_finished",
                condition=Q(status__in=["delivered", "dead"]),
            ),
        ]
