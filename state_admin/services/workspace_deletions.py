"""Deletes workspaces, for operators.

A deletion is one short transaction. Afterwards nobody can reach the workspace: it has no live token, no
member, and no name, which is free at once. A sweep deletes the rows in batches, and continues after
a crash. Background jobs leave the workspace out, as they do with a frozen one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from state_admin.contract.workspaces import WorkspaceContents
from state_admin.domain.access import Actor
from state_admin.models import (
    ApiToken,
    Membership,
    MoveSide,
    MoveState,
    Webhook,
    Workspace,
    WorkspaceMove,
    audit_stream,
)
from state_admin.models.counts import bounded_counts

from . import journal
from .actors import require_operator, system_actor
from .batching import PATIENCE, Report
from .cells import is_elsewhere
from .errors import Conflict
from .finding import find_row
from .token_cache import announce_change
from .workspace_transfers import delete_rows

log = structlog.get_logger()

# The rows remain this long, so that requests in progress can end, and no process has a token of the
# workspace in its cache any more. What they write is deleted with the other rows.
_GRACE: Final = timedelta(seconds=10)


def delete_workspace(
    *, slug: str, actor: Actor | None = None, contents: str = "", reason: str = ""
) -> WorkspaceContents:
    """Delete a workspace, for an operator or (None) at the shell. Returns what it contained.

    `contents="delete"` is required if it has entries or threads. Raises Conflict without it, if the
    workspace has an operator token, which may be the last one, and if it is being moved, or another cell
    still has rows of it. Raises NotFound.
    """
    if actor is not None:
        require_operator(actor)
    with transaction.atomic():
        rows = Workspace.objects.present().select_for_update()
        workspace = find_row(rows, "workspace", slug=slug)
        _check(workspace)
        deleter = replace(
            actor or system_actor(workspace.pk, "operator"), workspace_id=workspace.pk
        )
        found = _read_contents(deleter)
        if (found.entries or found.threads) and contents != "delete":
            raise Conflict(
                f"the workspace is not empty (entries: {found.entries:,}, threads: {found.threads:,})",
                hint="Repeat it with contents=delete to delete the entries and threads, too. They cannot be restored.",
            )
        _record(deleter, slug, found, reason)
        ApiToken.objects.filter(workspace=workspace).live().update(revoked_at=Now())
        Membership.objects.filter(workspace=workspace).delete()
        # Last: the triggers that refuse writes to frozen workspaces may exist for another workspace.
        Workspace.objects.filter(pk=workspace.pk).update(
            slug=f"deleted {workspace.pk}", deleted_slug=slug, frozen_at=Now()
        )
        announce_change()
        transaction.on_commit(
            lambda: log.info("workspace.deleted", workspace=slug, by=deleter.name)
        )
    return found


def _check(workspace: Workspace) -> None:
    arrived = WorkspaceMove.objects.filter(
        side=MoveSide.TARGET, state=MoveState.OPEN, workspace_pk=workspace.pk
    )
    if workspace.frozen_at or is_elsewhere(workspace.moved_to) or arrived.exists():
        raise Conflict(
            "the move of the workspace has not ended: both cells have its rows",
            hint="First end the move: manage.py move_workspace with --forget or --undo.",
        )
    if ApiToken.objects.filter(workspace=workspace, operator=True).live().exists():
        raise Conflict(
            "the workspace has an operator token, which manages all workspaces",
            hint="Revoke the token. To keep an operator token, first create one in another workspace.",
        )


def _read_contents(deleter: Actor) -> WorkspaceContents:
    counts = bounded_counts(deleter)
    return WorkspaceContents(
        entries=counts.entries,
        threads=counts.threads,
        tokens=counts.tokens,
        members=Membership.objects.filter(workspace_id=deleter.workspace_id).count(),
        webhooks=Webhook.objects.filter(workspace_id=deleter.workspace_id).count(),
    )


def _record(deleter: Actor, slug: str, found: WorkspaceContents, reason: str) -> None:
    """Record the deletion in the workspace, for the audit stream and open event streams, and in those
    that have an operator token, where it remains."""
    detail = {"entries": found.entries, "threads": found.threads}
    trace = journal.Trace("workspace.delete", key=slug, detail=detail)
    operators = ApiToken.objects.filter(operator=True).live().order_by("workspace_id")
    remaining = operators.values_list("workspace_id", flat=True).distinct()
    for workspace_id in (deleter.workspace_id, *remaining):
        journal.record(replace(deleter, workspace_id=workspace_id), [trace], reason=reason)


# The rows --------------------------------------------------------------------------------------


def _removable() -> QuerySet[Workspace]:
    return Workspace.objects.deleted().filter(frozen_at__lt=Now() - _GRACE)


def any_to_remove() -> bool:
    """Whether `remove_deleted` would find work."""
    return _removable().exists()


def remove_deleted() -> Report:
    """Delete the rows of deleted workspaces until PATIENCE has passed. Those whose audit the audit stream
    has not sent yet wait."""
    until = monotonic() + PATIENCE
    rows = removed = 0
    destination = settings.AUDIT_STREAM
    for workspace_id in _removable().values_list("pk", flat=True):
        if destination and audit_stream.has_unsent(destination.url, workspace_id):
            continue
        for count in delete_rows(workspace_id):
            rows += count
            if monotonic() >= until:
                return {"rows": rows, "workspaces": removed}
        removed += 1
    return {"rows": rows, "workspaces": removed}
