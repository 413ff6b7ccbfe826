"""Deletes entries in bulk: by key, namespace, prefix or scope kind."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from operator import itemgetter

from django.db import transaction

from state_admin.contract.entries import MOST_CLEARED as MOST
from state_admin.domain.access import Actor, Role
from state_admin.domain.scopes import ScopeKind
from state_admin.models import Entry, Namespace, Operation, clearing_sql
from state_admin.models.entries import EntryQuerySet

from . import journal
from .actors import require, require_open
from .errors import BadRequest, Invalid, NotRegistered

_CHUNK = 1000


def clear_key(*, actor: Actor, key: str, dry_run: bool = False, reason: str = "") -> int:
    """Delete every entry under a key, in all namespaces that the actor may see, including
    unregistered ones but not the config registry. Returns the number of entries."""
    require(actor, Role.EDITOR)
    rows = Entry.objects.visible_to(actor).open().live().filter(key=key)
    return _clear(actor, rows, dry_run, reason)


def clear_matching(
    *,
    actor: Actor,
    namespace: str = "",
    prefix: str = "",
    scope_kind: ScopeKind | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    reason: str = "",
) -> int:
    """Delete the live entries that match all filters, or `limit` of them. Returns the number of
    entries.

    All of these or none. Without a namespace: in all that the actor may see, including unregistered
    ones. Raises BadRequest without any filter, NotRegistered, and Invalid for more than MOST
    entries.
    """
    require(actor, Role.EDITOR)
    if not (namespace or prefix or scope_kind):
        raise BadRequest("a namespace, a prefix or a scope_kind is required")
    rows = Entry.objects.visible_to(actor).open().live()
    if namespace:
        require_open(namespace)
        row = Namespace.objects.visible_to(actor).registered().filter(name=namespace).first()
        if row is None:
            raise NotRegistered(namespace)
        rows = rows.filter(namespace=row)
    return _clear(actor, rows.under(prefix, scope_kind)[:limit], dry_run, reason)


def _clear(actor: Actor, rows: EntryQuerySet, dry_run: bool, reason: str) -> int:
    with transaction.atomic():
        addresses = addresses_of(rows)
        if dry_run:
            return len(addresses)
        cleared = clear_entries(actor, addresses, reason)
        journal.align_feed_clock(actor)
    return cleared


def addresses_of(rows: EntryQuerySet) -> list[tuple[int, str, str]]:
    """The addresses of entries that clear_entries shall delete. Raises Invalid for more than MOST."""
    addresses = list(rows.values_list("namespace_id", "namespace__name", "key")[: MOST + 1])
    if len(addresses) > MOST:
        raise Invalid(
            f"more than {MOST:,} entries would be deleted at once",
            hint=f"Delete in several requests: repeat DELETE /state/{{namespace}}?limit={MOST} "
            "until deleted is 0; or filter by prefix or scope_kind.",
            limit=MOST,
        )
    return addresses


def clear_entries(
    actor: Actor,
    addresses: Iterable[tuple[int, str, str]],
    reason: str,
    operation: Operation = Operation.DELETE,
) -> int:
    """Delete entries by (namespace id, name, key), a thousand per statement. Returns how many were
    live, or for EXPIRE how many had expired.

    The namespace may be unregistered. The caller owns the transaction, checks the role, and aligns
    the feed clock (services/journal.py).
    """
    cleared = 0
    in_order = iter(sorted(addresses, key=itemgetter(1, 2)))
    while chunk := list(islice(in_order, _CHUNK)):
        cleared += clearing_sql.clear_entries(
            {
                **journal.parameters(actor, reason),
                "operation": operation.value,
                "expired": operation is Operation.EXPIRE,
            },
            [(namespace_id, key) for namespace_id, _, key in chunk],
        )
    return cleared
