"""Who set each path of an entry, in which version, when, why, by which request and run; and the
versions that changed one path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Max, TextField
from django.db.models.functions import Cast

from state_admin.domain import blame, json_pointers, values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON, MISSING, pointer_of
from state_admin.models import EntryRevision, database

from .errors import BadRequest
from .namespaces import find_definition

# Limits of one page of the history of a path: versions read, changes found, and characters of the
# values read.
MOST_VERSIONS = 200
MOST_CHANGES = 50
MOST_CHARACTERS = 4_000_000


@dataclass(frozen=True)
class Attribution:
    """A path, and the version that set it and everything below it that has no attribution of its
    own."""

    pointer: str
    version: int
    operation: str
    actor: str
    actor_kind: str
    reason: str
    request_id: str
    run_id: str
    at: datetime


# The size of the values that are read together, in bytes. At least ten versions are read together.
_BYTES_AT_ONCE: Final = 8_000_000
# The columns of a version, in the order of the fields of Attribution between `pointer` and `at`.
_COLUMNS: Final = (
    "version",
    "operation",
    "actor_name",
    "actor_kind",
    "reason",
    "request_id",
    "run",
)


def blame_entry(*, actor: Actor, namespace: str, key: str) -> list[Attribution]:
    """Attribute the current value; [] if there is none. Reads the history, newest first, only as
    far back as the oldest path that is still part of the value. Parts that were set in removed
    versions are attributed to the oldest kept version."""
    find_definition(actor, namespace, fresh=True)
    stored = EntryRevision.objects.of_entry(actor, namespace, key)
    largest = stored.aggregate(largest=Max("size_bytes"))["largest"] or 1
    at_once = min(max(_BYTES_AT_ONCE // largest, 10), 1_000)
    # Creating model instances and datetimes for a long history takes longer than comparing its values.
    # So rows are tuples with the time as text, and _show parses only the times that are returned.
    rows = stored.order_by("-version").values_list(
        "value", "expires_at", *_COLUMNS, Cast("at", TextField())
    )

    def history() -> Iterator[tuple[tuple[Any, ...], JSON, bool]]:
        later = ""
        for value, expires_at, *version in rows.iterator(chunk_size=at_once):
            exists = value is not None and not _has_expired(expires_at, later)
            yield tuple(version), values.load_plain(value) if exists else None, exists
            later = version[-1]

    with transaction.atomic():  # outside of one, a cursor would copy the whole history first
        return [_show(line) for line in blame.attribute(history())]


def _has_expired(expires_at: datetime | None, later: str) -> bool:
    """Whether a version had expired when the next one was written, at `later`. For the newest version,
    whose `later` is "": whether it has expired now. The sweep may not have recorded the expiry."""
    if expires_at is None:
        return False
    return expires_at <= (datetime.fromisoformat(later) if later else database.read_time())


def _show(line: blame.BlamedPointer[tuple[Any, ...]]) -> Attribution:
    *columns, at = line.version
    fields = (line.pointer, *columns, datetime.fromisoformat(at))
    return Attribution(*fields)


@dataclass(frozen=True)
class PathChange:
    """A version that changed the value at a path: from `before` to `after`, MISSING where there is
    none. `pointer`: the path in this version; in the one before it if this one removed the value.
    `is_oldest`: the version is the oldest one that is kept, so the value may be older."""

    revision: EntryRevision
    pointer: str
    before: JSON
    after: JSON
    is_oldest: bool


@dataclass
class PathHistory:
    """The changes at a path in the versions `newest` to `oldest` that were read, newest first.

    `next`: the version and the pointer in it with which to continue, if older versions are stored
    and may have the path. `has_gaps`: history compaction removed versions, so that a change is
    listed at the next version that is kept.
    """

    changes: list[PathChange]
    found: bool = False  # a version that was read has a value at the path
    newest: int = 0
    oldest: int = 0
    next: tuple[int, str] | None = None
    has_gaps: bool = False


def read_path_history(
    *, actor: Actor, namespace: str, key: str, pointer: str, since: int | None = None
) -> PathHistory:
    """The versions that changed the value at `pointer`, a place in the version `since`, by default
    in the newest version that has a value there. Raises BadRequest if it is not a JSON Pointer.
    Reads back to MOST_VERSIONS, MOST_CHANGES or MOST_CHARACTERS; see `blame.follow` for what it
    follows.
    """
    find_definition(actor, namespace, fresh=True)
    try:
        path = json_pointers.parts_of(pointer)
    except json_pointers.Mismatch as fault:
        raise BadRequest(f"path must be a JSON Pointer such as /a/b: {fault}") from fault
    rows = EntryRevision.objects.of_entry(actor, namespace, key).order_by("-version")
    if since is not None:
        rows = rows.filter(version__lte=since)
    found = PathHistory([])
    left = MOST_CHARACTERS

    def history() -> Iterator[tuple[EntryRevision | None, JSON, bool]]:
        nonlocal left
        later: EntryRevision | None = None
        for row in rows.iterator(chunk_size=20):
            left -= len(row.value or "")
            found.newest = found.newest or row.version
            found.has_gaps |= bool(found.oldest) and found.oldest != row.version + 1
            found.oldest = row.version
            # The next version was created over an expired value, which no version removed.
            if later and later.value and row.expires_at and row.expires_at <= later.at:
                yield row, None, False
            yield row, values.load(row.value or "null"), row.value is not None
            later = row
        found.has_gaps |= found.oldest > 1
        yield None, None, False  # what was before the oldest version

    with transaction.atomic():  # see blame_entry
        for count, step in enumerate(blame.follow(history(), path), 1):
            found.found |= step.after is not MISSING or step.before is not MISSING
            if step.is_change and step.version is not None and step.version is not step.older:
                place = step.path_before if step.after is MISSING else step.path
                is_oldest = step.older is None and step.version.version > 1
                found.changes.append(
                    PathChange(step.version, pointer_of(*place), step.before, step.after, is_oldest)
                )
            full = count >= MOST_VERSIONS or len(found.changes) >= MOST_CHANGES or left < 0
            if full and step.older is not None and not step.begins:
                found.next = (step.older.version, pointer_of(*step.path_before))
                break
    return found
