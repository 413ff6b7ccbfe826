"""Records a write: one audit row and one change row, in the transaction of the caller.

The hot path of entries writes the same two rows in its own statement (models/entries_sql.py).
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
    """One event: `action` is noun.verb; the other fields are its subject."""

    action: str
    namespace: str = ""
    key: str = ""
    thread: str = ""
    run: str = ""
    version: int = 0
    detail: dict[str, Any] = field(default_factory=dict)

    def subject(self) -> dict[str, Any]:
        """The columns of the subject that audit and feed share."""
        return {
            "namespace": self.namespace,
            "key": self.key,
            "thread": self.thread,
            "run": self.run,
            "version": self.version,
        }


def record(actor: Actor, traces: Sequence[Trace], *, reason: str = "") -> None:
    """Insert the rows. Must be called in the transaction of the write, so that no write lacks its
    audit row."""
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
        Change(
            workspace_id=actor.workspace_id,
            kind=t.action,
            actor_name=actor.name,
            traceparent=actor.traceparent,
            **t.subject(),
        )
        for t in traces
    )


def check_kind(action: str) -> None:
    """Raise ValueError for a kind that no filter of the feed could name (domain/changes.py)."""
    if action not in changes.KINDS:
        raise ValueError(f"undeclared kind of change: {action}")


def align_feed_clock(actor: Actor) -> None:
    """Make all changes of this transaction visible in the feed together.

    Must be the last step of a transaction that records changes with several statements. Each
    statement has its own clock, so a reader could otherwise see the first changes alone while
    another transaction between them is open (models/changes.py).
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
    """The parameters of the hand-written statements for entries (models/entries_sql.py) that
    describe the call: actor, run, reason, request id and trace."""
    return {
        **stamp(actor, reason),
        "workspace": actor.workspace_id,
        "run": actor.run_id,
        "traceparent": actor.traceparent,
    }
