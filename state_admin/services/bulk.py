"""Changes many entries that a person selected. An entry that was changed since is skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from state_admin.domain import config
from state_admin.domain.access import Actor, Role
from state_admin.models import Entry, Namespace, Operation, bulk_sql, entries_sql, hot
from state_admin.models.bulk_sql import Action
from state_admin.models.entries_sql import JoinedEntry, JoinedPut

from . import journal, quotas
from .actors import require
from .errors import Conflict, Invalid

MOST: Final = 1000
MOST_TAGS: Final = 32
_DEFAULT_REASON: Final = {"tag": "tagged {}", "untag": "untagged {}"}


class SelectedEntry(NamedTuple):
    """An entry as it was when it was selected. `expires_at` is what `expire` sets; None: never."""

    namespace: str
    key: str
    version: int
    expires_at: datetime | None = None


class ChangedEntry(NamedTuple):
    """A changed entry: its new version, and its previous expiry."""

    namespace: str
    key: str
    version: int
    expired_at: datetime | None


class SkippedEntry(NamedTuple):
    """An entry that was not changed, and the reason."""

    namespace: str
    key: str
    why: str


@dataclass(frozen=True)
class BulkResult:
    done: Sequence[ChangedEntry]
    skipped: Sequence[SkippedEntry]


def change_entries(
    *, actor: Actor, action: Action, seen: Sequence[SelectedEntry], tag: str = "", reason: str = ""
) -> BulkResult:
    """Delete, tag, untag or set the expiry of up to MOST entries, in one transaction.

    An entry that was written since, or needs no change, is skipped and reported. Only `delete`
    applies to unregistered namespaces; the config registry is never changed. Values are not
    checked, so an entry that its schema refuses can be tagged. Raises Invalid (the tag, or too many
    entries).
    """
    require(actor, Role.EDITOR)
    if len(seen) > MOST:
        raise Invalid(f"at most {MOST:,} entries at once, not {len(seen):,}")
    if action in ("tag", "untag") and not (0 < len(tag) <= 64 and "\0" not in tag):
        raise Invalid("a tag must have 1 to 64 characters")
    names = {each.namespace for each in seen}
    namespaces = {
        row.name: row for row in Namespace.objects.visible_to(actor).filter(name__in=names)
    }
    skipped: list[SkippedEntry] = []
    pending: dict[tuple[int, str], SelectedEntry] = {}
    for each in seen:
        namespace = namespaces.get(each.namespace)
        if namespace is None:
            why = "the entry no longer exists"
        elif config.kind_of(each.namespace):
            why = "its namespace is reserved"
        elif namespace.unregistered_at and action != "delete":
            why = "its namespace is not registered"
        else:
            pending[namespace.pk, each.key] = each
            continue
        skipped.append(SkippedEntry(each.namespace, each.key, why))
    operation = Operation.DELETE if action == "delete" else Operation.PATCH
    reason = reason or _DEFAULT_REASON.get(action, "").format(tag)
    rows = [(*address, each.version, each.expires_at) for address, each in pending.items()]
    changed = bulk_sql.change_entries(
        action,
        {
            **journal.parameters(actor, reason),
            "operation": operation.value,
            **hot.unzip(("namespaces", "keys", "versions", "moments"), rows),
            "tag": tag,
            "most_tags": MOST_TAGS,
        },
    )
    done = []
    for row in changed:
        each = pending.pop((row.namespace_id, row.key))
        done.append(ChangedEntry(each.namespace, each.key, row.version, row.expired_at))
    return BulkResult(sorted(done), skipped + _explain(actor, action, pending))


def _explain(
    actor: Actor, action: Action, pending: dict[tuple[int, str], SelectedEntry]
) -> list[SkippedEntry]:
    """Why these entries were not changed, from their current state."""
    if not pending:
        return []
    rows = (
        Entry.objects.visible_to(actor)
        .live()
        .filter(
            namespace_id__in={namespace_id for namespace_id, _ in pending},
            key__in=[key for _, key in pending],
        )
    )
    current = {
        (row[0], row[1]): row[2:]
        for row in rows.values_list("namespace_id", "key", "version", "actor_name", "tags")
    }
    skipped = []
    for address, each in pending.items():
        version, writer, tags = current.get(address, (0, "", []))
        if not version:
            why = "the entry no longer exists"
        elif version != each.version:
            why = f"{writer} wrote version {version} in the meantime"
        elif action == "tag" and len(tags) >= MOST_TAGS:
            why = f"the entry already has the maximum of {MOST_TAGS} tags"
        else:
            why = "no change needed"
        skipped.append(SkippedEntry(each.namespace, each.key, why))
    return skipped


def store_together(
    actor: Actor,
    puts: Sequence[tuple[str | None, JoinedEntry]],
    operation: Operation,
    stamp: Mapping[str, Any],
) -> None:
    """Write entries whose rows the caller has locked, in one statement, each with its previous value
    (None: it had none). Raises QuotaExceeded, and Conflict if a namespace changed in the meantime."""
    quotas.take(
        actor,
        entries=sum(before is None for before, _ in puts),
        size=sum(put.entry.size - len((before or "").encode()) for before, put in puts),
    )
    call = JoinedPut([put for _, put in puts], operation.value, stamp)
    if not hot.fetch_all(*entries_sql.putting_existing([call])):
        raise Conflict("a namespace changed in the meantime; retry")
