"""Sends the audit to the destination of the setting AUDIT_STREAM: each row at least once, in the order
of ids.

The position is stored after the destination has confirmed a batch. A worker that dies between the two
sends the batch again: receivers recognize a row by its id. Why no row is skipped: models/audit_stream.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import msgspec
import structlog
from django.conf import settings
from django.db.models import F, Max
from django.db.models.functions import Coalesce, Now

from project import tracing
from state_admin import audit_sinks
from state_admin.audit_sinks import Line
from state_admin.contract import audit as contract
from state_admin.domain import retries
from state_admin.models import AuditRow, AuditStream, Workspace, audit_stream

from .batching import MOST_ROWS, split_by_size

# The maximum number of seconds that a worker spends on it at a time.
_TURN: Final = 20.0
# The pauses after failures, in seconds.
_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 300.0
# Rows that are read at a time.
_CHUNK: Final = 100

log = structlog.get_logger()


class StreamedRow(contract.AuditRow, kw_only=True):
    """An audit row as GET /audit returns it, with its id, unique on the server, and the name of its
    workspace."""

    id: int
    workspace: str


def has_work() -> bool:
    """Whether `stream_audit` would find something to send."""
    destination = settings.AUDIT_STREAM
    return destination is not None and audit_stream.has_work(destination.url)


def stream_audit() -> dict[str, int]:
    """Send the rows that are settled, in batches, until none is left, one fails, or the time is over.

    To be called by one worker at a time (maintenance.run_sweep). A second one would send rows twice,
    and could not move the position backwards.
    """
    if settings.AUDIT_STREAM is None or not has_work():
        return {"sent": 0, "failed": 0}
    ends = time.monotonic() + _TURN
    stream, _ = AuditStream.objects.get_or_create(destination=settings.AUDIT_STREAM.url)
    _settle(stream)
    sent = 0
    while time.monotonic() < ends:
        batch = _read_batch(stream)
        if not batch:
            break
        try:
            with tracing.span("audit stream", {"messaging.batch.message_count": len(batch)}):
                audit_sinks.send(settings.AUDIT_STREAM, batch)
        except audit_sinks.Failed as failed:
            _note_failure(stream, failed)
            return {"sent": sent, "failed": 1}
        if not _advance(stream, batch[-1].id):
            break
        sent += len(batch)
    return {"sent": sent, "failed": 0}


def _settle(stream: AuditStream) -> None:
    """Raise `settled` to the barrier if its writers have ended, and set the next barrier.

    The newest id is read before the writers, and the writers before the rows: what was assigned a lower
    id holds its lock in between, or has ended.
    """
    if stream.writers:
        stream.writers = sorted(audit_stream.find_writers().intersection(stream.writers))
    if not stream.writers:
        stream.settled = stream.barrier
        newest = AuditRow.objects.aggregate(newest=Max("pk"))["newest"] or 0
        stream.barrier = max(newest, stream.settled)
        stream.writers = sorted(audit_stream.find_writers())
    if not stream.writers:
        stream.settled = stream.barrier
    stream.save(update_fields=["settled", "barrier", "writers"])


def _read_batch(stream: AuditStream) -> list[Line]:
    """The next settled rows, as many as fit into memory."""
    rows = AuditRow.objects.filter(pk__gt=stream.position, pk__lte=stream.settled)
    lines = _encode(rows.order_by("pk")[:MOST_ROWS].iterator(chunk_size=_CHUNK))
    return next(split_by_size((line, len(line.json)) for line in lines), [])


def _encode(rows: Iterator[AuditRow]) -> Iterator[Line]:
    names: dict[int, str] = {}
    for row in rows:
        if row.workspace_id not in names:
            # Without a foreign key, a row may outlive its workspace.
            found = Workspace.objects.filter(pk=row.workspace_id).values_list(
                "deleted_slug", "slug"
            )
            names[row.workspace_id] = next(filter(None, found.first() or ()), "")
        document = msgspec.structs.asdict(contract.AuditRow.of(row))
        record = StreamedRow(id=row.pk, workspace=names[row.workspace_id], **document)
        yield Line(row.pk, row.at, row.action, msgspec.json.encode(record))


def _advance(stream: AuditStream, position: int) -> bool:
    """Store the position. False: another worker has stored a later one."""
    rows = AuditStream.objects.filter(pk=stream.pk, position=stream.position)
    stream.position = position
    return bool(
        rows.update(position=position, sent_at=Now(), attempts=0, failing_since=None, last_error="")
    )


def _note_failure(stream: AuditStream, failed: audit_sinks.Failed) -> None:
    stream.refresh_from_db(fields=["attempts"])
    pause = retries.exponential_pause(
        stream.attempts + 1, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE
    )
    AuditStream.objects.filter(pk=stream.pk).update(
        attempts=F("attempts") + 1,
        failures=F("failures") + 1,
        failing_since=Coalesce("failing_since", Now()),
        last_error=str(failed)[:500],
        next_attempt_at=Now() + timedelta(seconds=pause),
    )
    log.warning("audit_stream.failed", error=str(failed), pause=pause)
