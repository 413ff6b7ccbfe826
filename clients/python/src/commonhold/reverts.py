"""Calls on reverts: jobs that undo the writes of one request, or all writes since a moment."""

from __future__ import annotations

from datetime import datetime
from typing import Unpack

from commonhold import arguments
from commonhold.answers import Revert, SkippedEntry
from commonhold.calls import Call, Listing, given, segment
from commonhold.entries import selection
from commonhold.keys import Key, Where
from commonhold.reading import Page, page_of
from commonhold.verbs import Group, S, Verb


def _revert(revert_id: str, verb: str = "") -> str:
    return f"/reverts/{segment('revert_id', revert_id)}{verb}"


def request_revert(
    request_id: str | None = None,
    *,
    at: datetime | None = None,
    namespace: Where | None = None,
    key: Key | None = None,
    prefix: str | None = None,
    scope_kind: str | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Call[Revert]:
    """Give each entry that the request wrote the value and expiry that it had before, as a new version, and
    delete entries that it created. `request_id` is that of a version or of an audit row, or the id of a
    revert. Entries that were written since are skipped.

    With `at` and one or more filters instead: give each entry that all filters select, and that was written
    since that time, the value that it had then, as `restore_entries` does, but for any number of entries.

    A worker does it: read `get(id)` until `finished_at` is set. With `dry_run` only count, for about one
    second: the counts are complete if the status is "done"."""
    target = given(
        request_id=None if request_id is None else arguments.name("request_id", request_id),
        at=None if at is None else arguments.parameter("at", at),
    )
    return Call(
        "POST",
        "/reverts",
        Revert.read,
        given(dry_run=dry_run or None),
        body=target | selection(namespace, key, prefix, scope_kind),
        headers={"Change-Reason": reason},
    )


def list_reverts(
    *, request_id: str | None = None, status: str | None = None, **page: Unpack[Listing]
) -> Call[Page[Revert]]:
    """Reverts, the newest first. They are kept for 30 days after their end."""
    query = given(request_id=request_id, status=status, **page)
    return Call("GET", "/reverts", page_of(Revert.read), query)


def get_revert(revert_id: str) -> Call[Revert]:
    """One revert, with its status and counts. It has ended once `finished_at` is set."""
    return Call("GET", _revert(revert_id), Revert.read)


def cancel_revert(revert_id: str, *, reason: str = "") -> Call[Revert]:
    """Stop a revert before its next batch. Entries that it has reverted keep their reverted values. Raises
    Conflict if it has ended."""
    return Call(
        "POST", _revert(revert_id, "/cancel"), Revert.read, headers={"Change-Reason": reason}
    )


def list_skipped_entries(revert_id: str, **page: Unpack[Listing]) -> Call[Page[SkippedEntry]]:
    """The entries that the revert left as they are, with the reasons, in the order in which they were
    examined."""
    query = given(**page)
    return Call("GET", _revert(revert_id, "/skipped"), page_of(SkippedEntry.read), query)


class Reverts(Group[S]):
    """Reverts, which undo the writes of one request or all writes since a moment: request, list and cancel
    them."""

    request = Verb(request_revert)
    list = Verb(list_reverts)
    get = Verb(get_revert)
    cancel = Verb(cancel_revert)
    skipped = Verb(list_skipped_entries)
