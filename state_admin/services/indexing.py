"""Updates the search index from the change feed (ADR 6). search.py uses it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from state_admin.domain import search, values
from state_admin.domain.access import Actor
from state_admin.models import Entry, Namespace, SearchDocument, SearchPosition, Workspace, feed_sql
from state_admin.models import search as search_models
from state_admin.models.feed_sql import FeedFilter, Position

from .actors import system_actor
from .batching import Report, split_by_size

_CHUNK = 1000
# The maximum number of steps per workspace in one sweep, so that a busy one does not delay others.
_MOST_STEPS = 20


def index_entries() -> Report:
    """Follow the feed of every workspace to its end, or as far as one sweep gets."""
    report = {"indexed": 0, "removed": 0}
    present = Workspace.objects.filter(frozen_at=None).order_by("pk")
    for workspace_id in present.values_list("pk", flat=True):
        actor = system_actor(workspace_id, "search index")
        for _ in range(_MOST_STEPS):
            with transaction.atomic():
                indexed, removed, more = _advance(actor)
            report["indexed"] += indexed
            report["removed"] += removed
            if not more:
                break
    return report


def _advance(actor: Actor) -> tuple[int, int, bool]:
    """One step. Returns how many entries were indexed, how many were removed, and whether there is
    more to do."""
    search_models.lock_documents(actor.workspace_id)
    end = feed_sql.read_end(actor.workspace_id)
    position = SearchPosition.objects.filter(pk=actor.workspace_id).first()
    if (
        position is None
        or position.at < end.at - search_models.STALE
        or position.format < search_models.FORMAT  # a worker of a newer version may index, too
    ):
        # Start at the end of the feed and index all existing entries. Later changes are after the
        # position, whatever the ids of their entries.
        position, _ = SearchPosition.objects.update_or_create(
            pk=actor.workspace_id,
            defaults={
                "xid": end.position.xid,
                "change_id": end.position.id,
                "at": end.at,
                "filled_to": 0,
                "format": search_models.FORMAT,
            },
        )
    if position.filled_to is not None:
        return _fill(actor, position)
    return _follow(actor, position, end)


def _fill(actor: Actor, position: SearchPosition) -> tuple[int, int, bool]:
    rows = Entry.objects.visible_to(actor).filter(
        id__gt=position.filled_to, namespace__tracked=True
    )
    ids = list(rows.order_by("id").values_list("id", flat=True)[:_CHUNK])
    indexed, removed = _index(ids)
    position.filled_to = ids[-1] if len(ids) == _CHUNK else None
    position.save(update_fields=["filled_to"])
    return indexed, removed, position.filled_to is not None


def _follow(actor: Actor, position: SearchPosition, end: feed_sql.FeedEnd) -> tuple[int, int, bool]:
    rows = feed_sql.read_page(
        actor,
        after=Position(position.xid, position.change_id),
        until=end.position,
        filters=FeedFilter(),
        limit=_CHUNK,
    )
    addresses = {(row.namespace, row.key) for row in rows if row.kind.startswith("entry.")}
    outdated = search_models.find_outdated(actor.workspace_id, _CHUNK)
    indexed, removed = _index([*_find_ids(actor, addresses), *outdated])
    more = len(rows) == _CHUNK
    if rows:
        position.xid, position.change_id = rows[-1].position
    position.at = rows[-1].at if more else end.at
    position.save(update_fields=["xid", "change_id", "at"])
    return indexed, removed, more or len(outdated) == _CHUNK


def _find_ids(actor: Actor, addresses: set[tuple[str, str]]) -> list[int]:
    by_namespace: dict[str, list[str]] = {}
    for namespace, key in addresses:
        by_namespace.setdefault(namespace, []).append(key)
    # A redaction is in the feed also if the namespace is untracked.
    namespaces = Namespace.objects.visible_to(actor).filter(name__in=by_namespace, tracked=True)
    ids: list[int] = []
    for identity, name in namespaces.values_list("id", "name"):
        rows = Entry.objects.filter(namespace_id=identity, key__in=by_namespace[name])
        ids += rows.values_list("id", flat=True)
    return ids


def _index(ids: Sequence[int]) -> tuple[int, int]:
    live = Entry.objects.filter(id__in=ids).live()
    sized = list(live.values_list("id", "size_bytes"))
    gone = set(ids) - {identity for identity, _ in sized}
    removed, _ = SearchDocument.objects.filter(entry_id__in=gone).delete()
    indexed = 0
    for part in split_by_size(sized):
        rows = live.filter(id__in=part).values_list(
            "id", "version", "key", "value", "namespace_id", "namespace__workspace_id"
        )
        documents = [
            {
                "id": identity,
                "version": version,
                "terms": search.lexemes(
                    values.load(value or "null"),
                    [
                        search_models.FORMAT_LEXEME,
                        search.home_of("n", namespace_id),
                        search.home_of("w", workspace_id),
                    ],
                    key,
                ),
            }
            for identity, version, key, value, namespace_id, workspace_id in rows
        ]
        indexed += search_models.store_documents(values.dump(documents))
    return indexed, removed
