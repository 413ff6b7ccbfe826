"""The state of threads as one row per changed key and revision, valid until the next change."""

from __future__ import annotations

from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast, Now

from .fields import FeedSnapshot, PgSnapshot, RawJSON
from .stamps import ActorStamp
from .threads import Thread


class RevisionKind(models.TextChoices):
    START = "start"
    COMMIT = "commit"
    END = "end"
    RESTORE = "restore"
    IMPORT = "import"
    FORK = "fork"
    UNINSTALL = "uninstall"


class Revision(ActorStamp):
    """One atomic change of a thread's state."""

    pk = models.CompositePrimaryKey("thread_id", "number")
    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    number = models.BigIntegerField()
    kind = models.CharField(max_length=12, choices=RevisionKind.choices)
    run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    # The number of this revision within its run, from 1.
    step = models.IntegerField(null=True)
    touched = ArrayField(models.TextField(), default=list)
    # The number of messages: "the thread at revision n" includes its messages.
    message_count = models.IntegerField()
    label = models.CharField(max_length=128, default="", db_default="")
    pinned = models.BooleanField(default=False, db_default=False)
    # Set by snapshot compaction: the state at this revision is no longer available.
    dropped = models.BooleanField(default=False, db_default=False)
    at = models.DateTimeField(db_default=Now(), editable=False)
    # The shared state that its transaction could see (docs/adr/0009-context-at-a-step.md).
    seen = PgSnapshot(null=True, db_default=FeedSnapshot(), editable=False)

    class Meta:
        db_table = "revisions"


class StateValueQuerySet(models.QuerySet["StateValue"]):
    def current(self) -> Self:
        return self.filter(valid_to=None)

    def at_revision(self, revision: int) -> Self:
        return self.filter(Q(valid_to=None) | Q(valid_to__gt=revision), valid_from__lte=revision)

    def holding(self, part: Any) -> Self:
        """Values that equal `part` or, if they are objects or lists, contain it."""
        # As a Value, None is the JSON null; Django refuses to filter by None.
        document = models.Value(part, models.JSONField())
        return self.annotate(held=Cast("value", models.JSONField())).filter(held__contains=document)


class StateValue(models.Model):
    """The value of one state key over the revisions [valid_from, valid_to)."""

    pk = models.CompositePrimaryKey("thread_id", "key", "valid_from")
    thread = models.ForeignKey(
        Thread, on_delete=models.CASCADE, related_name="values", db_index=False
    )
    key = models.CharField(max_length=128, db_collation="C")
    valid_from = models.BigIntegerField()
    valid_to = models.BigIntegerField(null=True)
    value = RawJSON()
    scope = models.CharField(max_length=8)
    persistent = models.BooleanField(default=True)

    objects = StateValueQuerySet.as_manager()

    class Meta:
        db_table = "state_values"
        constraints = [
            # At most one value of a key is current; used to read the current state and by every
            # commit.
            models.UniqueConstraint(
                fields=["thread", "key"],
                name="state_values_current",
                condition=Q(valid_to__isnull=True),
            ),
        ]
