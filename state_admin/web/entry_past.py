"""Which state of an entry a URL requests: the current one, a version, or a point in time."""

from __future__ import annotations

from typing import Any

from state_admin.services.entry_views import EntryView, read_past
from state_admin.services.errors import NotFound

from .htmx import Request
from .paging import read_moment, read_required_number


def read_requested_entry(request: Request, now: EntryView) -> tuple[EntryView, int]:
    """The requested state of the entry, and its version if it is a past one, else 0."""
    address: Any = {"actor": request.actor, "namespace": now.namespace, "key": now.key}
    if text := request.GET.get("version", ""):
        version = read_required_number("version", text)
        if version == now.version:
            return now, 0
        return read_past(**address, at_version=version), version
    if text := request.GET.get("at", ""):
        entry = read_past(**address, at=read_moment("at", text))
        if not entry.version:
            raise NotFound(f"{now.namespace}/{now.key} did not exist at {text}")
        return (now, 0) if entry.version == now.version else (entry, entry.version)
    return now, 0
