"""The versions of an entry that changed the value at one path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state_admin.models import EntryRevision
from state_admin.services import blame

from . import paging
from .addresses import entry_action_url, entry_url
from .htmx import Request
from .state_changes import StateLine, lines_between


@dataclass(frozen=True)
class PathRow:
    """A version with its changes at the path. `moved`: the path in this version, if it is another
    one than the requested. `restore_url`: "" if it is not to be restored."""

    revision: EntryRevision
    lines: Sequence[StateLine]
    is_oldest: bool
    moved: str
    url: str
    restore_url: str


def read_page(
    request: Request, namespace: str, key: str, pointer: str, *, current: int, can_restore: bool
) -> dict[str, Any]:
    """A page of the history of `pointer` in the version `since` of the query string. `current` is
    the version that a restore would not change."""
    found = blame.read_path_history(
        actor=request.actor,
        namespace=namespace,
        key=key,
        pointer=pointer,
        since=paging.whole_number(request, "since"),
    )

    def url(path: str, since: int | None = None) -> str:
        return entry_url(namespace, key, tab="history", path=path, since=since)

    rows = []
    for change in found.changes:
        version = change.revision.version
        restorable = can_restore and change.revision.value is not None and version != current
        rows.append(
            PathRow(
                revision=change.revision,
                # Below the path, which the page names: "" is the path itself.
                lines=list(lines_between("", change.before, change.after, change.is_oldest)),
                is_oldest=change.is_oldest,
                moved=change.pointer if change.pointer != pointer else "",
                url=entry_url(namespace, key, version=version),
                restore_url=entry_action_url("restore", namespace, key, version=version)
                if restorable
                else "",
            )
        )
    return {
        "path": pointer,
        "path_history": found,
        "path_rows": rows,
        "further_url": url(found.next[1], found.next[0]) if found.next else "",
    }
