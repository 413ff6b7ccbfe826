"""Leaves the trail of a write: one audit row and one change row, in the caller's transaction.

The hot path of entries writes the same two rows inside its own statement (models/entries_sql.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from state_admin.domain import changes
from state_admin.domain.access import Actor
from state_admin.models import AuditRow, Change, changes_sql


@dataclass(frozen=True)
class Trace:
    """One thing that happened: `action` is noun.verb; the rest says to what."""

    action: str
    namespace: str = ""
    key: str = ""
    thread: str = ""
    run: str = ""
    version: int = 0
    detail: dict[str, Any] = field(default_factory=dict)

    def subject(self) -> dict[str, Any]:
        """The columns that say to what, which the audit and the feed share."""
        return {
            "namespace": self.namespace,
            "key": self.key,
            "thread": self.thread,
            "run": self.run,
            "version": self.version,
        }


def record(actor: Actor, traces: Sequence[Trace], *, reason: str = "") -> None:
    """Insert the rows. Call it inside the transaction of the write: no audit, no write."""
    for trace in traces:
        check_kind(trace.action)
    who = stamp(actor, reason)
    AuditRow.objects.bulk_create(
        AuditRow(
            workspace_id=actor.workspace_id, action=t.action, detail=t.detail, **t.subject(), **who
        )
        for t in traces
    )
    Change.objects.bulk_create(
        Change(workspace_id=actor.workspace_id, kind=t.action, actor_name=actor.name, **t.subject())
        for t in traces
    )


def check_kind(action: str) -> None:
    """Raise ValueError for a kind that no filter of the feed could name (domain/changes.py)."""
    if action not in changes.KINDS:
        raise ValueError(f"undeclared kind of change: {action}")


def align_feed_clock(actor: Actor) -> None:
    """Let all that this transaction wrote come into the feed at one moment.

    For a transaction that leaves changes by more than one statement, as its last step: each
    statement has its own clock, and a reader would see the first ones alone as long as another
    transaction is open between them (models/changes.py).
    """
    changes_sql.align_feed_clock(actor.workspace_id)


def stamp(actor: Actor, reason: str = "") -> dict[str, str]:
    """The columns of models.stamps.ActorStamp for a row written by `actor`."""
    return {
        "actor_kind": actor.kind,
        "actor_id": actor.id,
        "actor_name": actor.name,
        "reason": reason,
        "request_id": actor.request_id,
    }


def parameters(actor: Actor, reason: str = "") -> dict[str, Any]:
    """What the hand-written trail of entries (models/entries_sql.py) needs to know of `actor`."""
    return {**stamp(actor, reason), "workspace": actor.workspace_id, "run": actor.run_id}
