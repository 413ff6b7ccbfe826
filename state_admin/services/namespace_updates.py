"""Changes some settings of a namespace and keeps the others."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import Namespace

from .actors import require
from .namespaces import LIMITS, NamespaceRegistration, register_namespace


def update_namespace(
    *,
    actor: Actor,
    name: str,
    schema: Raw | None,
    default: Raw | None,
    expected_version: int | None = None,
    dry_run: bool = False,
    **settings: Any,
) -> NamespaceRegistration:
    """Like register_namespace, but a registered namespace keeps the settings that are not given
    (schema and default: None). The plugin that owns it must be given.

    Raises VersionConflict if another transaction registers `name` at the same time.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        rows = Namespace.objects.visible_to(actor).registered().filter(name=name)
        row = (rows if dry_run else rows.select_for_update(no_key=True)).first()
        if row is not None:
            kept = {column: getattr(row, column) for column in ("description", *LIMITS)}
            settings = {**kept, **settings}
        elif expected_version is None:
            expected_version = 0
        return register_namespace(
            actor=actor,
            name=name,
            schema=schema or values.stored((row and row.schema) or "{}"),
            default=default or values.stored((row and row.default) or "null"),
            expected_version=expected_version,
            dry_run=dry_run,
            **settings,
        )
