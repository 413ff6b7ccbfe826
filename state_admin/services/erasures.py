"""Erases all data of a resource or a key permanently: the right to be forgotten.

Deleting entries or threads keeps their history; redaction removes a part of a value. Backups and
PostgreSQL's dead rows are not reached (docs/security/threat-model.md).
"""

from __future__ import annotations

import hashlib

from django.db import transaction

from state_admin.contract.erasures import Erasure
from state_admin.domain import scopes
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Fault
from state_admin.models import Entry, Run, Thread, erasures_sql
from state_admin.models import search as search_models
from state_admin.models.erasures_sql import Scope

from . import idempotency, journal, replicas
from .actors import require, require_unrestricted
from .errors import BadRequest, Invalid
from .threads import lock_for_deletion, lock_hierarchy


def erase(
    *,
    actor: Actor,
    reason: str,
    resource_id: str = "",
    key: str = "",
    dry_run: bool = False,
) -> Erasure:
    """Erase everything of a resource, or under a key, including history.

    A resource: its threads with messages, runs, tickets, state and compactions, and the entries
    under `thread::{id}` and `parent_thread::{id}` of each. A key: its entries in every namespace.
    Rows of the feed and of webhooks about them are deleted too. Audit rows keep time and actor,
    with a hash in place of names. Writes of its runs to other entries only lose the id of the run.
    One row in audit and feed records the erasure. Version counters are deleted too: new entries
    begin with version 1.
    """
    require(actor, Role.ADMIN)
    require_unrestricted(actor, "An erasure must reach all data of its subject.")
    if bool(resource_id) == bool(key):
        raise BadRequest("exactly one of resource_id and key is required")
    if not reason.strip():
        raise Invalid(
            "an erasure requires a reason",
            [Fault("/reason", "is required")],
            hint="The reason is stored in the audit log.",
        )
    mark = mark_of(resource_id or key)
    with transaction.atomic():
        if not dry_run:
            search_models.lock_documents(actor.workspace_id)
            erasures_sql.lock_erasure(actor.workspace_id)
            lock_hierarchy(actor.workspace_id)
        scope = _find(actor, resource_id, key, lock=not dry_run)
        if dry_run:
            return Erasure(erased=mark, counts=erasures_sql.count(scope))
        counts = erasures_sql.erase(scope, mark)
        if any(counts.values()):
            counts["stored_answers"] = idempotency.expire_responses(actor.workspace_id)
        trace = journal.Trace("erase", key=mark, detail=counts)
        journal.record(actor, [trace], reason=reason)
        replicas.expire_older_states()
    return Erasure(erased=mark, counts=counts)


def mark_of(name: str) -> str:
    """The hash that replaces an erased id. A person who knows the id can verify that it was
    erased."""
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def _find(actor: Actor, resource_id: str, key: str, *, lock: bool) -> Scope:
    """What to erase, locked in the order of all other work: threads, then entries by name and
    key."""
    threads = Thread.objects.none()
    if resource_id:
        threads = Thread.objects.visible_to(actor).filter(resource_id=resource_id).order_by("id")
    found = dict(threads.values_list("id", "public_id"))
    locked = set[int]()
    # Meanwhile the resource of some threads may have changed, and others may have been forked. A thread
    # that is locked cannot be forked.
    while lock and not found.keys() <= locked:
        locked |= found.keys()
        lock_for_deletion(list(found))
        found = dict(threads.values_list("id", "public_id"))
    keys = [key] if key else []
    for public_id in found.values():
        keys += [scopes.thread_key(public_id), scopes.parent_thread_key(public_id)]
    entries = Entry.objects.visible_to(actor).filter(key__in=keys)
    entries = entries.order_by("namespace__name", "key")
    runs = Run.objects.filter(thread_id__in=found)
    return Scope(
        workspace=actor.workspace_id,
        threads=list(found),
        entries=list(
            (entries.select_for_update(of=("self",)) if lock else entries).values_list(
                "id", flat=True
            )
        ),
        thread_names=list(found.values()),
        run_names=list(runs.values_list("public_id", flat=True)),
        keys=keys,
    )
