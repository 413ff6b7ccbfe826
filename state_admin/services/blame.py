"""Who set each path of an entry: in which version, when, why, by which request and run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from state_admin.domain import blame, values
from state_admin.domain.access import Actor
from state_admin.domain.values import JSON
from state_admin.models import EntryRevision

from .namespaces import find_definition


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


def blame_entry(*, actor: Actor, namespace: str, key: str) -> list[Attribution]:
    """Attribute the current value; [] if there is none. Reads the history, newest first, only as
    far back as the oldest path that is still part of the value. Parts that were set in removed
    versions are attributed to the oldest kept version."""
    find_definition(actor, namespace, fresh=True)
    rows = EntryRevision.objects.of_entry(actor, namespace, key).order_by("-version")

    def history() -> Iterator[tuple[EntryRevision, JSON, bool]]:
        for row in rows.iterator(chunk_size=50):
            exists = row.value is not None
            yield row, values.load(row.value) if row.value is not None else None, exists

    with transaction.atomic():  # outside of one, a cursor would copy the whole history first
        return [_show(line) for line in blame.attribute(history())]


def _show(line: blame.BlamedPointer[EntryRevision]) -> Attribution:
    row = line.version
    return Attribution(
        pointer=line.pointer,
        version=row.version,
        operation=row.operation,
        actor=row.actor_name,
        actor_kind=row.actor_kind,
        reason=row.reason,
        request_id=row.request_id,
        run_id=row.run,
        at=row.at,
    )
