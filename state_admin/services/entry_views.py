"""Reads entries: the current one, and past ones by version or time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from state_admin.domain import scopes, tokens, values
from state_admin.domain.access import Actor
from state_admin.domain.redaction import holds_tombstone
from state_admin.domain.values import JSON
from state_admin.models import Entry, EntryRevision, entries_sql
from state_admin.models.entries_sql import Address, ValuesTooLarge
from state_admin.models.hot_async import Session

from .errors import Gone, NotFound, NotRegistered
from .namespaces import (
    Definition,
    cached_definition,
    define,
    find_definition,
    require_history,
)


class EntryView(NamedTuple):
    """An entry as a reader sees it. `value` is JSON text. An absent entry has the default of its
    namespace and version 0."""

    namespace: str
    key: str
    exists: bool
    value: str
    version: int
    valid: bool = True
    schema_version: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    tags: Sequence[str] = ()
    pinned: bool = False
    size_bytes: int = 0
    estimated_tokens: int = 0
    actor: str = ""
    # Set if a part of the value was redacted.
    redacted_at: datetime | None = None
    redacted_by: str = ""

    @property
    def scope_kind(self) -> str:
        return scopes.scope_kind(self.key).value


def read_entry(*, actor: Actor, namespace: str, key: str) -> EntryView:
    """The current entry. An absent key is not an error. Raises NotRegistered for an absent
    namespace."""
    if not actor.sees_namespace(namespace):
        raise NotRegistered(namespace)
    row = entries_sql.read_entry(Address(actor.workspace_id, namespace, key))
    if row is None:
        raise NotRegistered(namespace)
    return view(actor, namespace, key, row)


async def read_joined(
    requests: Sequence[tuple[Actor, str, str]], session: Session
) -> list[EntryView | None]:
    """Many entries (actor, namespace, key), read in one statement, each as its actor sees it. None
    where read_entry would raise, query more, or take long, and everywhere if the values are large."""
    addresses = {
        Address(actor.workspace_id, namespace, key)
        for actor, namespace, key in requests
        if actor.sees_namespace(namespace)
    }
    if not addresses:
        return [None] * len(requests)
    (found,) = await session.fetch_each([entries_sql.reading_entries(list(addresses))])
    try:
        rows = entries_sql.entries_of(found)
    except ValuesTooLarge:
        return [None] * len(requests)
    views: list[EntryView | None] = []
    for actor, namespace, key in requests:
        row = rows.get(Address(actor.workspace_id, namespace, key))
        visible = row is not None and actor.sees_namespace(namespace)
        views.append(_joined_view(actor, namespace, key, row) if row and visible else None)
    return views


def _joined_view(
    actor: Actor, namespace: str, key: str, row: entries_sql.EntryRow
) -> EntryView | None:
    valid = True
    if row.exists and row.schema_version != row.namespace_schema_version:
        definition = cached_definition(actor, namespace)
        if (
            definition is None
            or definition.schema_version != row.namespace_schema_version
            or not definition.validator.always_light
        ):
            return None
        valid = _valid(definition, row.schema_version, row.value)
    if row.exists and holds_tombstone(row.value):
        return None
    return _view_of(namespace, key, row, exists=row.exists, value=row.value, valid=valid)


def read_past(
    *,
    actor: Actor,
    namespace: str,
    key: str,
    at_version: int | None = None,
    at: datetime | None = None,
) -> EntryView:
    """The entry at a version, or at a time. Raises NotFound if the version never existed, and Gone if
    history compaction removed it."""
    definition = find_definition(actor, namespace, fresh=True)
    require_history(definition)
    history = EntryRevision.objects.visible_to(actor).of_key(namespace, key)
    last = last_version(actor, namespace, key)
    if at_version is not None:
        revision = history.filter(version=at_version).first()
        if revision is None and at_version > last:
            raise NotFound(f"no version {at_version} of {namespace}/{key}")
        lost = revision is None
    else:
        revision = history.as_of(at).order_by("-version").first() if at else None
        following = revision.version + 1 if revision else 1
        lost = following <= last and not history.filter(version=following).exists()
    if lost:
        raise Gone(
            f"the requested version of {namespace}/{key} was removed by history compaction",
            hint="The history policy of the namespace sets how many versions are retained.",
        )
    if revision is None:
        return EntryView(namespace, key, False, definition.default, 0)
    text = revision.value
    if text is None or (at and revision.expires_at and revision.expires_at <= at):
        return EntryView(namespace, key, False, definition.default, revision.version)
    return EntryView(
        namespace=namespace,
        key=key,
        exists=True,
        value=text,
        version=revision.version,
        valid=_valid(definition, revision.schema_version, text),
        schema_version=revision.schema_version,
        updated_at=revision.at,
        expires_at=revision.expires_at,
        size_bytes=revision.size_bytes,
        estimated_tokens=tokens.estimate_text(text),
        actor=revision.actor_name,
        redacted_at=revision.redacted_at,
        redacted_by=revision.redacted_by,
    )


def last_version(actor: Actor, namespace: str, key: str) -> int:
    """The newest version of an entry, which may be its deletion; 0 if there is none."""
    rows = Entry.objects.visible_to(actor).filter(namespace__name=namespace, key=key)
    return rows.values_list("version", flat=True).first() or 0


def diff_entry(*, actor: Actor, namespace: str, key: str, old: int, new: int) -> tuple[JSON, JSON]:
    """The values at two versions, parsed for a diff. A deleted version counts as the default."""
    before, after = (
        values.load(read_past(actor=actor, namespace=namespace, key=key, at_version=v).value)
        for v in (old, new)
    )
    return before, after


def view(actor: Actor, namespace: str, key: str, row: entries_sql.EntryRow) -> EntryView:
    valid = True
    if row.exists and row.schema_version != row.namespace_schema_version:
        definition = find_definition(actor, namespace)
        if definition.schema_version != row.namespace_schema_version:
            definition = find_definition(actor, namespace, fresh=True)
        valid = _valid(definition, row.schema_version, row.value)
    redaction = _redaction(row, key)
    return _view_of(
        namespace, key, row, exists=row.exists, value=row.value, valid=valid, **redaction
    )


def read_unregistered(*, actor: Actor, namespace: str, key: str) -> EntryView:
    """An entry of a namespace that was unregistered, which read_entry refuses. Raises NotRegistered."""
    row = Entry.objects.visible_to(actor).live().filter(namespace__name=namespace, key=key).first()
    if row is None:
        raise NotRegistered(namespace)
    return _view_of(namespace, key, row, exists=True, value=row.value or "null")


def _view_of(
    namespace: str,
    key: str,
    row: entries_sql.EntryRow | Entry,
    *,
    exists: bool,
    value: str,
    valid: bool = True,
    **redaction: Any,
) -> EntryView:
    return EntryView(
        namespace=namespace,
        key=key,
        exists=exists,
        value=value,
        version=row.version,
        valid=valid,
        schema_version=row.schema_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        tags=row.tags,
        pinned=row.pinned,
        size_bytes=row.size_bytes,
        estimated_tokens=row.estimated_tokens,
        actor=row.actor_name,
        **redaction,
    )


def is_valid(row: Entry) -> bool:
    """Whether the current schema accepts the value of a row. Reads the schema only for a value that was
    written under another version of it."""
    if row.schema_version == row.namespace.schema_version:
        return True
    return define(row.namespace).validator.accepts(values.load(row.value or "null"))


def _valid(definition: Definition, schema_version: int, text: str) -> bool:
    """Whether the current schema accepts a stored value, which was valid under `schema_version`."""
    return schema_version == definition.schema_version or definition.validator.accepts(
        values.load(text)
    )


def _redaction(row: entries_sql.EntryRow, key: str) -> dict[str, Any]:
    """When the value was redacted, and by whom. Queries only if it contains a tombstone."""
    if not (row.exists and holds_tombstone(row.value)):
        return {}
    history = EntryRevision.objects.filter(entry__namespace_id=row.namespace_id, entry__key=key)
    newest = history.filter(redacted_at__isnull=False).order_by("-version").first()
    if newest is None:
        return {}
    return {"redacted_at": newest.redacted_at, "redacted_by": newest.redacted_by}
