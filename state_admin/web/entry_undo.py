"""Undo: back to what stood there before, unless someone wrote since."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Raw
from state_admin.models import Entry, Operation
from state_admin.services.entries import (
    Precondition,
    Put,
    delete_entry,
    put_entry,
    read_past,
    restore_entry,
)
from state_admin.services.errors import BadRequest, NotFound, VersionConflict

from .addresses import entry_action_url, entry_url
from .entry_address import entry_page, entry_paths
from .htmx import Request, Undo, see_other, toast

_REFUSED = "Someone wrote here since, so nothing was undone"


def undo_of(namespace: str, key: str, *, made: int, before: int) -> Undo:
    """The Undo of a write that made version `made` of an entry that was at `before` (0: missing)."""
    return Undo(entry_action_url("undo", namespace, key), {"made": made, "before": before})


def undo_of_delete(namespace: str, key: str, *, made: int) -> Undo:
    """The Undo of a deletion that made version `made`."""
    return Undo(entry_action_url("undo", namespace, key), {"deleted": made})


@require_POST
@entry_page(role=Role.EDITOR)
def entry_undo(request: Request, namespace: str, key: str) -> HttpResponse:
    made, before, deleted = (_number(request, name) for name in ("made", "before", "deleted"))
    address: Any = {"actor": request.actor, "namespace": namespace, "key": key}
    try:
        if deleted:
            undelete(request.actor, namespace, key, deleted)
        elif made and before:
            when = Precondition(made)
            reason = f"undo of version {made}"
            restore_entry(**address, version=before, when=when, reason=reason)
        elif made:
            delete_entry(**address, when=Precondition(made), reason=f"undo of version {made}")
        else:
            raise BadRequest("an undo names the version that it takes back")
    except VersionConflict:
        toast(request, _REFUSED, kind="failed")
    else:
        toast(request, "Undone")
    return see_other(request, entry_url(namespace, key), part="entry")


def undelete(actor: Actor, namespace: str, key: str, made: int) -> Put:
    """Write again what the deletion that made version `made` removed, with its tags, pin and the
    rest of its lifetime. VersionConflict when someone wrote since."""
    row = (
        Entry.objects.visible_to(actor)
        .filter(namespace__name=namespace, key=key)
        .only("version", "deleted", "tags", "pinned")
        .first()
    )
    if row is None:
        raise NotFound(f"no entry {namespace}/{key}")
    if row.version != made or not row.deleted:
        raise VersionConflict(made, row.version)
    old = read_past(actor=actor, namespace=namespace, key=key, at_version=made - 1)
    if not old.exists:
        raise NotFound(f"version {made - 1} of {namespace}/{key} holds no value")
    return put_entry(
        actor=actor,
        namespace=namespace,
        key=key,
        value=Raw(old.value, values.load(old.value)),
        when=Precondition(0),
        ttl_seconds=seconds_left(old.expires_at),
        tags=row.tags,
        pinned=row.pinned,
        reason=f"undo of the deletion (version {made})",
        operation=Operation.RESTORE,
    )


def seconds_left(expires_at: datetime | None) -> int | None:
    """The rest of a lifetime in whole seconds, at least one; None for no expiry."""
    if expires_at is None:
        return None
    return max(1, int((expires_at - datetime.now(UTC)).total_seconds()))


def _number(request: Request, name: str) -> int:
    text = request.POST.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest(f"{name} is not a version")
    return int(text)


urlpatterns = entry_paths("entry/undo", entry_undo, "entry-undo")
