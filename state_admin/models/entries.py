"""Entries: the value at (namespace, key), with a version and a history.

The reads of pages and lists are QuerySet methods here. The two hot statements, reading and writing
one entry, are hand-written in entries_sql.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from state_admin.domain import config
from state_admin.domain.access import Actor
from state_admin.domain.scopes import PREFIXED, WHOLE, ScopeKind

from .fields import FeedXid, RawJSON, Xid8
from .namespaces import Namespace
from .stamps import ActorStamp
from .visibility import VisibleQuerySet

# The form of a key determines its scope kind; each form is a range of keys, so filters use the
# index on the key.
SCOPE_PREFIXES = {kind: f"{name}::" for name, kind in PREFIXED.items()}
SCOPE_KEYS = {kind: name for name, kind in WHOLE.items()}


def in_scope(kind: ScopeKind) -> Q:
    """The condition on `key` for the scope kind `kind`."""
    if kind in SCOPE_KEYS:
        return Q(key=SCOPE_KEYS[kind])
    if kind in SCOPE_PREFIXES:
        prefix = SCOPE_PREFIXES[kind]
        return Q(key__startswith=prefix) & ~Q(key=prefix)
    custom = Q()
    for other in (*SCOPE_KEYS, *SCOPE_PREFIXES):
        custom &= ~in_scope(other)
    return custom


class EntryQuerySet(VisibleQuerySet["Entry"]):
    workspace_lookup = "namespace__workspace_id"
    namespace_lookup = "namespace__name"

    def live(self) -> Self:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), deleted=False)

    def open(self) -> Self:
        """Entries outside the config registry, which any editor may write."""
        return self.exclude(namespace__name__in=config.NAMESPACES)

    def expired(self) -> Self:
        return self.filter(deleted=False, expires_at__lte=Now())

    def touched_since(self, moment: datetime) -> Self:
        """Entries whose value may differ from the one at `moment`: written or expired since
        then."""
        ran_out = Q(deleted=False, expires_at__gt=moment, expires_at__lte=Now())
        return self.filter(Q(updated_at__gt=moment) | ran_out)

    def in_scope(self, kind: ScopeKind) -> Self:
        return self.filter(in_scope(kind))

    def under(self, prefix: str, scope_kind: ScopeKind | None) -> Self:
        """Entries whose key has the prefix and the scope kind, where they are given."""
        rows = self.filter(key__startswith=prefix) if prefix else self
        return rows.in_scope(scope_kind) if scope_kind else rows

    def with_history(self) -> Self:
        """Entries of registered namespaces whose changes are recorded."""
        return self.filter(namespace__unregistered_at=None, namespace__tracked=True)


class Operation(models.TextChoices):
    PUT = "put"
    PATCH = "patch"
    DELETE = "delete"
    RESTORE = "restore"
    EXPIRE = "expire"
    IMPORT = "import"
    REDACT = "redact"


class Entry(models.Model):
    """The current state of one (namespace, key). A deleted entry remains as a row, so that its
    version continues to count and an old ETag can never match a new value."""

    namespace = models.ForeignKey(
        Namespace, on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    key = models.TextField(db_collation="C")
    value = RawJSON(null=True)
    version = models.BigIntegerField(default=1)
    # The version that created the entry, or re-created it after a deletion; 201 Created is `version
    # == born_version`.
    born_version = models.BigIntegerField(default=1)
    schema_version = models.PositiveIntegerField()
    deleted = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True)
    tags = ArrayField(models.CharField(max_length=64), default=list, db_default=[])
    pinned = models.BooleanField(default=False, db_default=False)
    size_bytes = models.PositiveIntegerField(default=0)
    estimated_tokens = models.PositiveIntegerField(default=0)
    actor_kind = models.CharField(max_length=8)
    actor_name = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = EntryQuerySet.as_manager()

    class Meta:
        db_table = "entries"
        constraints = [
            # Every read and write of one entry; lists page by key within a namespace.
            models.UniqueConstraint(fields=["namespace", "key"], name="entries_key_unique"),
        ]
        indexes = [
            # The expiry sweep. Partial, so that entries without TTL are not in it.
            models.Index(
                fields=["expires_at"],
                name="entries_expiring",
                condition=Q(expires_at__isnull=False, deleted=False),
            ),
            # `updated_since`. BRIN, because a B-tree here would prevent HOT updates.
            BrinIndex(fields=["updated_at"], name="entries_updated_brin"),
        ]

    def __str__(self) -> str:
        return f"{self.key}@{self.version}"

    @property
    def namespace_name(self) -> str:
        return self.namespace.name

    @property
    def registered(self) -> bool:
        """Whether the namespace of the entry is registered."""
        return self.namespace.unregistered_at is None


class EntryRevisionQuerySet(VisibleQuerySet["EntryRevision"]):
    workspace_lookup = "entry__namespace__workspace_id"
    namespace_lookup = "entry__namespace__name"

    def of_key(self, namespace: str, key: str) -> Self:
        return self.filter(entry__namespace__name=namespace, entry__key=key)

    def of_entry(self, actor: Actor, namespace: str, key: str) -> Self:
        """The history of one entry if the actor may see it. By a subquery, because PostgreSQL then
        reads the newest versions first; with a join it sorts all of them."""
        entries = Entry.objects.visible_to(actor).filter(namespace__name=namespace, key=key)
        return self.filter(entry_id=models.Subquery(entries.values("pk")))

    def as_of(self, moment: datetime) -> Self:
        return self.filter(at__lte=moment)


class EntryRevision(ActorStamp):
    """One row of an entry's history; `value` is NULL for `delete` and `expire`."""

    pk = models.CompositePrimaryKey("entry_id", "version")
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    version = models.BigIntegerField()
    operation = models.CharField(max_length=8, choices=Operation.choices)
    value = RawJSON(null=True)
    schema_version = models.PositiveIntegerField()
    size_bytes = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField(null=True)
    pinned = models.BooleanField(default=False, db_default=False)
    # The run on whose behalf it was written, as the client stated it (the Run-Id header).
    run = models.CharField(max_length=128, default="", db_default="", db_collation="C")
    # When data was permanently removed from this version, and by whom; else NULL and "".
    redacted_at = models.DateTimeField(null=True, blank=True)
    redacted_by = models.CharField(max_length=150, default="", db_default="", blank=True)
    at = models.DateTimeField(db_default=Now())
    # The transaction that wrote it, which decides whether a run could see it
    # (docs/adr/0009-context-at-a-step.md).
    xid = Xid8(null=True, db_default=FeedXid(), editable=False)

    objects = EntryRevisionQuerySet.as_manager()

    class Meta:
        db_table = "entry_revisions"
