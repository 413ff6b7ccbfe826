"""Unregisters state keys, and clears their values in threads.

Separate from state_keys.py, because clearing uses snapshots.py, which imports state_keys.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Count, Exists, OuterRef

from state_admin.contract.state_keys import StateKeyValues
from state_admin.domain.access import Actor, Role
from state_admin.models import RevisionKind, StateKey, StateValue, Thread

from . import journal, snapshots
from .actors import require, require_unrestricted
from .errors import NotFound
from .finding import refuse_installed
from .snapshots import NewValue
from .state_keys import AFFECTS_ALL, close_registry
from .threads import lock_hierarchy

# The number of threads whose rows are in memory at once. All locks are held until the end.
_CHUNK = 500


def unregister_state_key(
    *, actor: Actor, name: str, clear: bool = False, dry_run: bool = False, reason: str = ""
) -> StateKeyValues:
    """Unregister a key. Returns the counts of its values.

    The values remain readable in the state, and can be used again if the name is registered again.
    `clear` clears them, as one revision of each thread that has one. Raises NotFound
    `unknown key: …`, and Conflict for a key of an installed plugin.
    """
    require(actor, Role.ADMIN)
    require_unrestricted(actor, AFFECTS_ALL)
    with transaction.atomic():
        if not dry_run:
            stop_writers(actor)
        key = StateKey.objects.visible_to(actor).filter(name=name).first()
        if key is None:
            raise NotFound(f"unknown key: {name}")
        refuse_installed(actor, f"state key {name}", key.plugin)
        counts = count_held(actor, [name])
        if not dry_run:
            remove_keys(actor, [name], cleared=[name] if clear else [], reason=reason)
            journal.align_feed_clock(actor)
    return counts


def stop_writers(actor: Actor) -> None:
    """Block transactions that write values of registered keys or lock several threads, until this
    transaction ends. Must be called before the first row lock."""
    lock_hierarchy(actor.workspace_id)
    close_registry(actor)


def count_held(actor: Actor, names: Collection[str]) -> StateKeyValues:
    """Count the current values of the keys in the threads of the workspace."""
    rows = StateValue.objects.current().filter(
        thread__workspace_id=actor.workspace_id, key__in=names
    )
    return StateKeyValues(
        **rows.aggregate(threads=Count("thread", distinct=True), values=Count("key"))
    )


def remove_keys(
    actor: Actor, names: Sequence[str], *, cleared: Collection[str], reason: str
) -> None:
    """Unregister `names`, and clear the values of those in `cleared`.

    The caller owns the transaction, checks the role, and has called stop_writers.
    """
    if cleared:
        _clear(actor, cleared, reason)
    rows = StateKey.objects.visible_to(actor).filter(name__in=names).order_by("name")
    names_found = list(rows.select_for_update().values_list("name", flat=True))
    StateKey.objects.visible_to(actor).filter(name__in=names_found).delete()
    traces = [journal.Trace("state_key.unregister", key=name) for name in names_found]
    journal.record(actor, traces, reason=reason)


def _clear(actor: Actor, names: Collection[str], reason: str) -> None:
    """Create one revision of each thread that has a value. Locks the threads in the order of ids.

    No thread can get a value meanwhile, because writers need the lock that stop_writers holds.
    """
    current = StateValue.objects.current().filter(key__in=names)
    holding = (
        Thread.objects.filter(workspace_id=actor.workspace_id)
        .filter(Exists(current.filter(thread=OuterRef("pk"))))
        .order_by("pk")
    )
    last = 0
    while threads := list(holding.filter(pk__gt=last).held()[:_CHUNK]):
        last = threads[-1].pk
        writes: dict[int, dict[str, NewValue]] = defaultdict(dict)
        rows = current.filter(thread__in=threads)
        for thread_id, key, scope, persistent in rows.values_list(
            "thread_id", "key", "scope", "persistent"
        ):
            writes[thread_id][key] = NewValue(None, scope, persistent)
        for thread in threads:
            if thread.pk in writes:  # the start of a run may have cleared the values meanwhile
                snapshots.advance(
                    actor,
                    thread,
                    RevisionKind.UNINSTALL,
                    writes[thread.pk],
                    action="thread.uninstall",
                    reason=reason,
                )
