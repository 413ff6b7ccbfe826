"""Stops and resumes the writes to a workspace, for its move to another cell.

Triggers refuse the writes (models/freezing_sql.py), so no code that writes has to check for it.
Background jobs skip frozen workspaces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.db import OperationalError, transaction
from django.db.models.functions import Now

from state_admin.models import Workspace, freezing_sql

from . import journal
from .actors import system_actor
from .errors import Conflict, Unavailable
from .token_cache import announce_change

_ATTEMPTS: Final = 10
_LOCKED: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


def freeze(workspace_id: int, detail: dict[str, Any], work: Callable[[], None]) -> None:
    """Refuse writes from the commit of this function on. `work` runs in its transaction. Afterwards,
    every write that succeeded is visible, and no further write can succeed.

    Raises Conflict if the workspace is frozen, and Unavailable if a transaction that writes does not
    end in time; then nothing has changed.
    """
    for _ in range(_ATTEMPTS):
        try:
            freezing_sql.switch_on()
            with transaction.atomic():
                if not freezing_sql.lock_workspace(workspace_id):
                    continue
                rows = Workspace.objects.filter(pk=workspace_id, frozen_at=None)
                if not rows.update(frozen_at=Now()):
                    raise Conflict("the workspace is already frozen")
                record(workspace_id, "workspace.freeze", detail)
                work()
                announce_change()
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, _LOCKED):
                raise
    raise Unavailable(
        "a transaction that writes did not end in time",
        hint="Nothing was changed. manage.py doctor lists long transactions.",
    )


def unfreeze(workspace_id: int, moved_to: str, action: str, detail: dict[str, Any]) -> None:
    """Permit writes from the commit of the caller's transaction on. `moved_to`: the new value of the
    column."""
    freezing_sql.exempt()
    rows = Workspace.objects.filter(pk=workspace_id)
    rows.update(frozen_at=None, moved_to=moved_to)
    record(workspace_id, action, detail)
    announce_change()


def record(workspace_id: int, action: str, detail: dict[str, Any]) -> None:
    """Write the audit row of a step, in the transaction of the caller."""
    slug = Workspace.objects.values_list("slug", flat=True).get(pk=workspace_id)
    trace = journal.Trace(action, key=slug, detail=detail)
    journal.record(system_actor(workspace_id, "operator"), [trace])
