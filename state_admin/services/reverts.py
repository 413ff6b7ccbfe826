"""Reverts the writes of one request in up to MOST entries: each gets the value and expiry it had before,
as a new version, unless it was written since then. Not here: requests of any size (revert_jobs.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.redaction import is_tombstone
from state_admin.models import AuditRow, Operation, clearing_sql, reverts_sql
from state_admin.models.entries_sql import JoinedEntry
from state_admin.models.reverts_sql import RevertibleEntry, WrittenEntry

from . import journal, quotas
from .actors import require
from .bulk import MOST, BulkResult, ChangedEntry, SkippedEntry, store_together
from .entries import check_value, new_entry
from .errors import Conflict, Invalid, Problem
from .namespaces import Definition, definitions_for

# How many audit rows others may have inserted since the request of the actor wrote.
_SPAN: Final = 50_000


def newest_audit_row(actor: Actor) -> int:
    """The id of the newest audit row of the actor's current request; 0 without one."""
    newest = AuditRow.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = AuditRow.objects.visible_to(actor).filter(pk__gt=newest - _SPAN)
    own = rows.filter(request_id=actor.request_id).order_by("-pk")
    return own.values_list("pk", flat=True).first() or 0


def revert_entries(
    *, actor: Actor, written: Sequence[WrittenEntry], reason: str = "", deleted: bool = False
) -> BulkResult:
    """Give up to MOST entries the value and expiry of the version before `first`; delete an entry that
    had no value before. One transaction.

    An entry is skipped and reported if its current version is not `last`, if its previous version was
    removed, was redacted or has expired, if its schema refuses the value, or if nothing differs. Entries
    of the config registry are always skipped and, with `deleted`, so are entries that are not deleted.
    Tags and pins do not change, because the history does not contain them; an entry restored from
    deletion gets back its tags and pin.

    Raises Invalid for more than MOST entries, QuotaExceeded, and Conflict if a namespace changes at
    the same time.
    """
    require(actor, Role.EDITOR)
    if len(written) > MOST:
        raise Invalid(f"at most {MOST:,} entries at once, not {len(written):,}")
    skipped = [_skip(each, "its namespace is reserved") for each in written if _is_config(each)]
    pending = {(e.namespace, e.key): e for e in written if not _is_config(e)}
    stamp = journal.parameters(actor, reason or "reverted")
    planned: list[tuple[RevertibleEntry, JoinedEntry | None]] = []
    define = definitions_for(actor)
    with quotas.undo_additions(), transaction.atomic():
        for row in reverts_sql.lock_entries(actor.workspace_id, list(pending.values())):
            each = pending.pop((row.namespace, row.key))
            try:
                if deleted and not row.deleted:
                    raise Conflict("it is not deleted")
                planned.append((row, _plan(define, each, row)))
            except Problem as refused:
                skipped.append(_skip(each, refused.detail))
        _apply(actor, planned, stamp)
        journal.align_feed_clock(actor)
    why = "it was written since then, or its namespace is not registered"
    skipped += [_skip(each, why) for each in pending.values()]
    done = [
        ChangedEntry(row.namespace, row.key, row.version + 1, row.expires_at) for row, _ in planned
    ]
    return BulkResult(sorted(done), sorted(skipped))


def _plan(
    define: Callable[[str], Definition],
    each: WrittenEntry,
    row: RevertibleEntry,
) -> JoinedEntry | None:
    """The write that reverts an entry; None: its deletion. Raises Conflict and
    Invalid with the reason why it cannot be reverted."""
    if row.then_version is None and each.first > 1:
        raise Conflict("its previous version was removed by history compaction")
    if row.redacted and row.then_value is not None and is_tombstone(row.then_value):
        raise Conflict("its previous value was redacted")
    if row.then_expired:
        raise Conflict("its previous value has expired")
    if row.then_value is None and row.value is None:
        raise Conflict("it does not exist any more")
    if row.then_value is None:
        return None
    if row.then_value == row.value and row.then_expires_at == row.expires_at:
        raise Conflict("its value did not change")
    definition = define(row.namespace)
    check_value(definition, values.stored(row.then_value))
    entry = new_entry(definition, row.key, row.then_value)._replace(ttl=None)
    return JoinedEntry(entry, expires_at=row.then_expires_at)


def _apply(
    actor: Actor,
    planned: Sequence[tuple[RevertibleEntry, JoinedEntry | None]],
    stamp: Mapping[str, Any],
) -> None:
    puts = [(row, put) for row, put in planned if put is not None]
    if puts:
        store_together(actor, [(row.value, put) for row, put in puts], Operation.RESTORE, stamp)
        marked = [row for row, _ in puts if row.value is None and (row.tags or row.pinned)]
        if marked:
            reverts_sql.restore_marks(marked)
    doomed = [row for row, put in planned if put is None]
    if doomed:
        cleared = clearing_sql.clear_entries(
            {**stamp, "operation": Operation.RESTORE.value, "expired": False},
            [(row.namespace_id, row.key) for row in doomed],
        )
        if cleared < len(doomed):
            raise Conflict("an entry expired in the meantime; retry")


def _is_config(each: WrittenEntry) -> bool:
    return config.kind_of(each.namespace) is not None


def _skip(each: WrittenEntry, why: str) -> SkippedEntry:
    return SkippedEntry(each.namespace, each.key, why)
