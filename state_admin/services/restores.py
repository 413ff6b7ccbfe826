"""Restores many entries to a time in the past, as new versions.

restore_entry in entries.py restores one entry to one version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal

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

from . import journal, quotas
from .actors import require, require_open
from .batching import split_by_size
from .entries import check_value, new_entry
from .errors import BadRequest, Conflict, Invalid, Problem
from .namespaces import Definition, definitions_for, find_definition, require_history

# The maximum number of entries written since the given time, because a restore is one transaction.
MOST = 10_000
SHOWN = 100

Action = Literal["change", "create", "delete", "refuse"]


def restore_entries(
    *,
    actor: Actor,
    at: datetime,
    namespace: str = "",
    key: str = "",
    prefix: str = "",
    scope_kind: ScopeKind | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> Restoration:
    """Give every entry that matches the filters the value it had at `at`, or delete it if it had
    none.

    Entries that differ get a new version; the others are not changed. All are restored or none. An
    entry whose old value the schema refuses, or history compaction removed, is reported and
    skipped, and so are unregistered namespaces and the config registry. Raises BadRequest without a
    filter, and Invalid for a time in the future or more than MOST entries.
    """
    require(actor, Role.EDITOR)
    rows = _choose(actor, namespace, key, prefix, scope_kind)
    if at > read_time():
        raise Invalid(
            "at must not be in the future", [values.Fault("/at", "must not be in the future")]
        )
    sized = moments_sql.touched_since(rows, at, MOST + 1)
    if len(sized) > MOST:
        raise Invalid(
            f"more than {MOST:,} entries were written since that time",
            hint=(
                "Restore fewer entries at a time: filter by namespace, key, prefix or scope_kind."
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


_Planned = tuple[RestoredEntry, EntryAtMoment]


def _choose(
    actor: Actor, namespace: str, key: str, prefix: str, scope_kind: ScopeKind | None
) -> EntryQuerySet:
    if not (namespace or key or prefix or scope_kind):
        raise BadRequest("a namespace, a key, a prefix or a scope_kind is required")
    rows = Entry.objects.visible_to(actor).open().with_history()
    if namespace:
        require_open(namespace)
        definition = find_definition(actor, namespace, fresh=True)
        require_history(definition)
        rows = rows.filter(namespace_id=definition.id)
    if key:
        rows = rows.filter(key=key)
    return rows.under(prefix, scope_kind)


def _plan(
    define: Callable[[str], Definition], moments: Sequence[EntryAtMoment]
) -> Iterator[_Planned]:
    for each in moments:
        action: Action | None = None
        problem: Problem | None = None
        if each.lost:
            action = "refuse"
            problem = Conflict("the value at that time was removed by history compaction")
        elif each.redacted and is_tombstone(each.then_value):
            action = "refuse"
            problem = Conflict("the value at that time was redacted")
        elif each.then_value is None:
            action = "delete" if each.value is not None else None
        elif each.value is None or not values.same_text(each.then_value, each.value):
            action = "create" if each.value is None else "change"
            try:
                value = values.stored(each.then_value)
                check_value(define(each.namespace), value)
            except Problem as refused:
                action, problem = "refuse", refused
        if action is not None:
            step = RestoredEntry.from_attributes(each, action=action)
            if problem is not None:
                step.reason = problem.detail
                step.errors = [Fault(**fault) for fault in problem.data.get("errors", [])]
            yield step, each


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
    replaced = sum(len((each.value or "").encode()) for _, each in plan)
    created = sum(step.action == "create" for step, _ in plan)
    quotas.take(actor, entries=created, size=size - replaced)
