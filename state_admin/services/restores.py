"""Restores many entries to a time in the past, as new versions, in one transaction.

restore_entry in entries.py restores one entry to one version. A revert to a moment (revert_jobs.py) restores
any number of entries, in batches by restore_found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack

from django.db import transaction

from state_admin.contract.restores import Restoration, RestoredEntry
from state_admin.contract.types import Fault, time_of
from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.redaction import is_tombstone
from state_admin.domain.scopes import ScopeKind
from state_admin.models import Entry, Operation, clearing_sql, entries_sql, moments_sql
from state_admin.models.database import read_time
from state_admin.models.entries import EntryQuerySet
from state_admin.models.moments_sql import EntryAtMoment
from state_admin.models.reverts_sql import NextEntry

from . import journal, quotas
from .actors import require, require_open
from .batching import split_by_size
from .bulk import SkippedEntry
from .entries import check_value, new_entry
from .errors import BadRequest, Conflict, Invalid, Problem
from .namespaces import Definition, definitions_for, find_definition, require_history

# The maximum number of entries written since the given time, because a restore is one transaction.
MOST = 10_000
SHOWN = 100

Action = Literal["change", "create", "delete"]


class Filters(TypedDict, total=False):
    """The entries to restore: those that all given filters select."""

    namespace: str
    key: str
    prefix: str
    scope_kind: ScopeKind | None


def restore_entries(
    *,
    actor: Actor,
    at: datetime,
    dry_run: bool = False,
    reason: str = "",
    **filters: Unpack[Filters],
) -> Restoration:
    """Give every entry that matches the filters the value it had at `at`, or delete it if it had
    none.

    Entries that differ get a new version; the others are not changed. All are restored or none. An
    entry whose old value the schema refuses, or history compaction removed, is reported and
    skipped, and so are unregistered namespaces and the config registry. Raises BadRequest without a
    filter, and Invalid for a time in the future or more than MOST entries.
    """
    require(actor, Role.EDITOR)
    check_selection(actor, at, **filters)
    sized = moments_sql.touched_since(_choose(actor, **filters), at, MOST + 1)
    if len(sized) > MOST:
        raise Invalid(
            f"more than {MOST:,} entries were written since that time",
            hint=(
                "Use POST /reverts with the same time and filters, a job for any number of entries,"
                " or restore fewer: filter by namespace, key, prefix or scope_kind."
            ),
            limit=MOST,
        )
    counts = Counter[str]()
    first: list[RestoredEntry] = []
    define = definitions_for(actor)
    with quotas.undo_additions(), transaction.atomic():
        for ids in split_by_size(sized):
            if not dry_run:
                moments_sql.lock_entries(ids)
            plan = list(_plan(define, moments_sql.compare(ids, at)))
            counts.update(step.action for step, _ in plan)
            first += [step for step, _ in plan][: SHOWN - len(first)]
            if not dry_run:
                _apply_plan(actor, define, plan, reason or f"restored to {at.isoformat()}")
        if not dry_run:
            journal.align_feed_clock(actor)
    return Restoration(
        at=time_of(at),
        changed=counts["change"],
        created=counts["create"],
        deleted=counts["delete"],
        refused=counts["refuse"],
        first=first,
    )


def check_selection(actor: Actor, at: datetime, **filters: Unpack[Filters]) -> None:
    """Raise a Problem if there is no filter, if `at` is in the future, or if the namespace is reserved, not
    registered or has no history."""
    if not any(filters.values()):
        raise BadRequest("a namespace, a key, a prefix or a scope_kind is required")
    if namespace := filters.get("namespace"):
        require_open(namespace)
        require_history(find_definition(actor, namespace, fresh=True))
    if at > read_time():
        raise Invalid(
            "at must not be in the future", [values.Fault("/at", "must not be in the future")]
        )


def restore_found(
    *, actor: Actor, at: datetime, found: Sequence[NextEntry], reason: str
) -> list[SkippedEntry]:
    """Give a batch of entries the values they had at `at`, or delete those that had none, in one
    transaction. Returns those that it skipped. The caller has checked the role of the actor.

    An entry is skipped if its version is not `last` any more, if its value does not differ, and where
    restore_entries refuses it. Raises QuotaExceeded, and Conflict if a namespace changes at the same
    time.
    """
    last = {each.entry_id: each.last for each in found if each.entry_id is not None}
    define = definitions_for(actor)
    with quotas.undo_additions(), transaction.atomic():
        moments_sql.lock_entries(list(last))
        current = moments_sql.compare(list(last), at)
        rows = [row for row in current if row.version == last[row.entry_id]]
        plan = list(_plan(define, rows))
        _apply_plan(actor, define, plan, reason)
        journal.align_feed_clock(actor)
    # The reason why each entry was skipped; "" if it was restored.
    why = {row.entry_id: "its value did not change" for row in rows}
    why |= {row.entry_id: step.reason or "" for step, row in plan}
    outcome = ((each, why.get(each.entry_id or 0, "it was written since then")) for each in found)
    return [SkippedEntry(each.namespace, each.key, reason) for each, reason in outcome if reason]


_Planned = tuple[RestoredEntry, EntryAtMoment]


def _choose(
    actor: Actor,
    namespace: str = "",
    key: str = "",
    prefix: str = "",
    scope_kind: ScopeKind | None = None,
) -> EntryQuerySet:
    rows = Entry.objects.visible_to(actor).open().with_history()
    if namespace:
        rows = rows.filter(namespace_id=find_definition(actor, namespace).id)
    if key:
        rows = rows.filter(key=key)
    return rows.under(prefix, scope_kind)


def _plan(
    define: Callable[[str], Definition], moments: Sequence[EntryAtMoment]
) -> Iterator[_Planned]:
    for each in moments:
        try:
            action = _choose_action(define, each)
        except Problem as refused:
            step = RestoredEntry.from_attributes(each, action="refuse")
            step.reason = refused.detail
            step.errors = [Fault(**fault) for fault in refused.data.get("errors", [])]
            yield step, each
        else:
            if action is not None:
                yield RestoredEntry.from_attributes(each, action=action), each


def _choose_action(define: Callable[[str], Definition], each: EntryAtMoment) -> Action | None:
    """None: nothing has to change. Raises a Problem if the entry cannot be restored."""
    if each.lost:
        raise Conflict("the value at that time was removed by history compaction")
    if each.redacted and is_tombstone(each.then_value):
        raise Conflict("the value at that time was redacted")
    if each.then_value is None:
        if each.value is None:
            return None
        require_history(define(each.namespace))
        return "delete"
    if each.value is not None and values.same_text(each.then_value, each.value):
        return None
    definition = define(each.namespace)
    require_history(definition)
    check_value(definition, values.stored(each.then_value))
    return "create" if each.value is None else "change"


def _apply_plan(
    actor: Actor, define: Callable[[str], Definition], plan: Sequence[_Planned], reason: str
) -> None:
    parameters = {
        **journal.parameters(actor, reason),
        "operation": Operation.RESTORE.value,
        "expired": False,
    }
    rows = [
        new_entry(define(each.namespace), each.key, each.then_value)
        for step, each in plan
        if step.action in ("change", "create") and each.then_value is not None
    ]
    if rows:
        _take_quota(actor, plan, sum(row.size for row in rows))
        written = entries_sql.put_entries(parameters, rows)
        if not written:
            raise Conflict("a namespace changed in the meantime; retry")
    doomed = [each for step, each in plan if step.action == "delete"]
    if doomed:
        clearing_sql.clear_entries(parameters, [(each.namespace_id, each.key) for each in doomed])


def _take_quota(actor: Actor, plan: Sequence[_Planned], size: int) -> None:
    replaced = sum(
        len((each.value or "").encode()) for step, each in plan if step.action != "refuse"
    )
    created = sum(step.action == "create" for step, _ in plan)
    quotas.take(actor, entries=created, size=size - replaced)
