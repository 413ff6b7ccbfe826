"""Namespaces: registered names with their schemas, schema versions and limits."""

from __future__ import annotations

from typing import Self

from django.db import DEFAULT_DB_ALIAS, models
from django.db.models.functions import Now

from state_admin.domain import config

from . import hot
from .fields import RawJSON
from .stamps import ActorStamp
from .visibility import VisibleQuerySet
from .workspaces import Workspace


class NamespaceQuerySet(VisibleQuerySet["Namespace"]):
    namespace_lookup = "name"

    def registered(self) -> Self:
        return self.filter(unregistered_at=None)

    def open(self) -> Self:
        """Namespaces outside the config registry, which users register and change."""
        return self.exclude(name__in=config.NAMESPACES)


class Namespace(models.Model):
    """A name with a JSON Schema and a default.

    Unregistering keeps the row: its entries may be retained as orphans, and its schema version
    continues to count when the name is registered again.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="namespaces")
    name = models.CharField(max_length=128, db_collation="C")
    schema = RawJSON(default="{}")
    schema_version = models.PositiveIntegerField(default=1)
    default = RawJSON(default="null")
    description = models.TextField(default="", blank=True)
    plugin = models.CharField(max_length=128, default="", blank=True)
    max_value_bytes = models.PositiveIntegerField(null=True, blank=True)
    ttl_seconds = models.PositiveIntegerField(null=True, blank=True)
    history_keep_last = models.PositiveIntegerField(null=True, blank=True)
    history_keep_seconds = models.PositiveIntegerField(null=True, blank=True)
    # False: writes leave no version, change, audit row or search document (ADR 20). Never changed.
    tracked = models.BooleanField(default=True, db_default=True)
    unregistered_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    objects = NamespaceQuerySet.as_manager()

    class Meta:
        db_table = "namespaces"
        constraints = [
            # Every request resolves (workspace, name); lists page by name.
            models.UniqueConstraint(fields=["workspace", "name"], name="namespaces_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def find_registered(cls, workspace_id: int, name: str) -> Self | None:
        """The registered namespace with this name. Almost every request needs it, so the statement is
        prepared: it takes a quarter of the time of a queryset."""
        row = hot.fetch_one(_FIND_REGISTERED, {"workspace": workspace_id, "name": name})
        return cls.from_db(DEFAULT_DB_ALIAS, _COLUMNS, row) if row else None


# In the order of the fields, as from_db takes them.
_FIELDS = Namespace._meta.concrete_fields
_COLUMNS = [field.attname for field in _FIELDS]
_SELECTED = (f'"{f.column}"' + ("::text" if isinstance(f, RawJSON) else "") for f in _FIELDS)
_FIND_REGISTERED = f"""
SELECT {", ".join(_SELECTED)}
FROM namespaces
WHERE workspace_id = %(workspace)s AND name = %(name)s AND unregistered_at IS NULL
"""


class NamespaceVersion(ActorStamp):
    """The schema and default of a namespace at a schema version."""

    pk = models.CompositePrimaryKey("namespace_id", "schema_version")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="versions")
    schema_version = models.PositiveIntegerField()
    schema = RawJSON()
    default = RawJSON()
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "namespace_versions"
