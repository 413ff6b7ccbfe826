"""Which state of an entry an address asks for: now, a version, a moment."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from state_admin.domain import moments
from state_admin.domain.access import Actor
from state_admin.models import Entry
from state_admin.services.entry_views import EntryView, read_past
from state_admin.services.errors import BadRequest, NotFound, NotRegistered

from .htmx import Request
from .paging import read_required_number


def read_requested_entry(
    request: Request, now: EntryView, *, registered: bool
) -> tuple[EntryView, int]:
    """What the address asks for: now, a version, or a moment; and the past version it is, or 0."""
    address: Any = {"actor": request.actor, "namespace": now.namespace, "key": now.key}
    if not registered:
        return now, 0
    if text := request.GET.get("version", ""):
        version = read_required_number("version", text)
        if version == now.version:
            return now, 0
        return read_past(**address, at_version=version), version
    if text := request.GET.get("at", ""):
        entry = read_past(**address, at=moment_of(text))
        if not entry.version:
            raise NotFound(f"{now.namespace}/{now.key} did not exist at {text}")
        return (now, 0) if entry.version == now.version else (entry, entry.version)
    return now, 0


def moment_of(text: str) -> datetime:
    """A time of the address or of a datetime-local field; without a zone it is UTC."""
    moment = moments.read(text, assume_utc=True)
    if moment is None:
        raise BadRequest("at must be a time such as 2026-01-31T12:00:00Z")
    return moment


def orphan_entry(actor: Actor, namespace: str, key: str) -> EntryView:
    """An entry of an unregistered namespace, which typed reads refuse: people may look at it."""
    row = Entry.objects.visible_to(actor).live().filter(namespace__name=namespace, key=key).first()
    if row is None:
        raise NotRegistered(namespace)
    return EntryView(
        namespace=namespace,
        key=key,
        exists=True,
        value=row.value or "null",
        version=row.version,
        schema_version=row.schema_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        tags=row.tags,
        pinned=row.pinned,
        size_bytes=row.size_bytes,
        estimated_tokens=row.estimated_tokens,
        actor=row.actor_name,
    )
