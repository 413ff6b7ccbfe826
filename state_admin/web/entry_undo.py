"""Undo: restores the previous value of an entry with its tags, pin and expiry, unless it was
written since then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.config import Kind
from state_admin.models import Operation
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services.config import delete_record, restore_record
from state_admin.services.entries import Precondition, delete_entry, put_entry
from state_admin.services.entry_views import read_past
from state_admin.services.errors import BadRequest, Conflict, Invalid, NotFound, VersionConflict
from state_admin.services.namespaces import find_definition
from state_admin.services.reverts import revert_entries

from .actors import POST
from .addresses import entry_action_url, entry_url
from .entry_address import entry_page, entry_paths
from .htmx import Request, Undo, see_other, toast
from .paging import number_in, read_list
from .reverts import return_url

_MOST_TAGS = 32
# Characters of previous state that an Undo may carry, because it is sent in a header.
MOST_CARRIED = 2_000
REFUSED = "Not undone: the entry was changed in the meantime"


def undo_of(
    actor: Actor,
    namespace: str,
    key: str,
    *,
    written: int,
    before: int,
    tags: Sequence[str] | None = None,
    pinned: bool | None = None,
) -> Undo | None:
    """The Undo of a write that created version `written` of an entry whose previous version was
    `before` (0: it did not exist). None in an untracked namespace, which has no history.

    The history contains the previous value and expiry but not tags and pin, so a write that changes
    those passes the previous ones.
    """
    if before and not find_definition(actor, namespace).tracked:
        return None
    fields: dict[str, str | int] = {"written": written, "before": before}
    if tags is not None:
        fields["tags"] = values.dump(list(tags))
    if pinned is not None:
        fields["pinned"] = int(pinned)
    return Undo(entry_action_url("undo", namespace, key), fields)


def undo_of_delete(actor: Actor, namespace: str, key: str, *, written: int) -> Undo | None:
    """The Undo of the deletion that created version `written`; None in an untracked namespace."""
    if not find_definition(actor, namespace).tracked:
        return None
    return Undo(entry_action_url("undo", namespace, key), {"deleted": written})


@entry_page(methods=POST, role=Role.EDITOR)
def entry_undo(request: Request, namespace: str, key: str) -> HttpResponse:
    written, before, deleted = (
        number_in(request.POST, name, "0") for name in ("written", "before", "deleted")
    )
    undo: Any = {"precondition": Precondition(written), "reason": f"undo of version {written}"}
    kind = config.kind_of(namespace)
    if not written and (kind or not deleted):
        raise BadRequest("an undo requires the version to undo")
    if kind:
        return _undo_record(request, kind, key, before, undo)
    address: Any = {"actor": request.actor, "namespace": namespace, "key": key}
    try:
        if deleted:
            _revert_deletion(request.actor, WrittenEntry(namespace, key, deleted, deleted))
        elif before:
            _write_again(request, address, before, undo)
        else:
            delete_entry(**address, **undo)
    except VersionConflict:
        toast(request, REFUSED, kind="failed")
    except Conflict as problem:
        toast(request, f"Not undone: {problem.detail}", kind="failed")
    else:
        toast(request, "Undone")
    if "back" in request.POST:
        return see_other(request, return_url(request.POST), part="entry-browser")
    return see_other(request, entry_url(namespace, key), part="entry")


def _undo_record(
    request: Request, kind: Kind, identity: str, before: int, undo: dict[str, Any]
) -> HttpResponse:
    """Restore a config record with its current secrets. A write that changes a secret has no
    Undo."""
    address: Any = {"actor": request.actor, "kind": kind, "identity": identity}
    try:
        if before:
            restore_record(**address, version=before, **undo)
        else:
            delete_record(**address, **undo)
    except VersionConflict:
        toast(request, REFUSED, kind="failed")
    # other records now refer to it, or a record that it referred to was deleted
    except (Conflict, Invalid) as problem:
        toast(request, f"Not undone: {problem.detail}", kind="failed")
    else:
        toast(request, "Undone")
        if not before:
            return see_other(request, reverse("web:config-list", args=[kind]))
    return see_other(request, reverse("web:config-detail", args=[kind, identity]), part="record")


def _revert_deletion(actor: Actor, deletion: WrittenEntry) -> None:
    """Restore a deleted entry with its tags, pin and expiry. Raises Conflict if it cannot be."""
    reason = f"undo of the deletion (version {deletion.last})"
    result = revert_entries(actor=actor, written=[deletion], reason=reason, deleted=True)
    for refused in result.skipped:
        raise Conflict(refused.why)


def _write_again(request: Request, address: Any, version: int, undo: dict[str, Any]) -> None:
    old = read_past(**address, at_version=version)
    if not old.exists:
        raise NotFound(f"version {version} of {old.namespace}/{old.key} has no value")
    pinned = request.POST.get("pinned")
    put_entry(
        **address,
        **undo,
        value=values.stored(old.value),
        ttl_seconds=seconds_left(old.expires_at),
        tags=_tags(request),
        pinned=None if pinned is None else pinned == "1",
        operation=Operation.RESTORE,
    )


def seconds_left(expires_at: datetime | None) -> int:
    """The remaining lifetime in whole seconds, at least 1; 0 for no expiry (put_entry)."""
    if expires_at is None:
        return 0
    return max(1, round((expires_at - datetime.now(UTC)).total_seconds()))


def _tags(request: Request) -> list[str] | None:
    if "tags" not in request.POST:
        return None
    return checked_tags(read_list(request.POST["tags"], "tags"))


def checked_tags(tags: Sequence[object]) -> list[str]:
    """The tags if an entry may have them, else Invalid."""
    texts = [tag for tag in tags if isinstance(tag, str) and len(tag) <= 64 and "\0" not in tag]
    if len(tags) > _MOST_TAGS or len(texts) < len(tags):
        raise Invalid(f"tags: at most {_MOST_TAGS}, each at most 64 characters")
    return texts


urlpatterns = entry_paths("entry/undo", entry_undo, "entry-undo")
