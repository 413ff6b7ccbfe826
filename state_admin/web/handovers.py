"""Runs that were released or resumed, and that no worker has taken since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from state_admin.domain.access import Actor
from state_admin.models import AuditRow, Revision, Run, RunStatus
from state_admin.models.creation_times import OPEN
from state_admin.models.stamps import ActorKind

# How long a worker may take to find the run before a person should act: so many lease periods, but no
# less than a minute.
_PERIODS = 5
_LEAST = timedelta(minutes=1)


@dataclass(frozen=True)
class Handover:
    """The release or the resume of a run that no worker has taken since. `by` is the name of its actor,
    or "" if it is unknown. `recent`: a worker may still take it. `kind`: of the change."""

    kind: str
    at: datetime
    by: str
    recent: bool


def handover_of(actor: Actor, run: Run) -> Handover | None:
    """The handover that a running run waits for. Of resumes, those by people only: a program that
    resumes a run usually continues it."""
    limited = run.times_out_at is not None and run.times_out_at <= run.read_at
    if run.status != RunStatus.RUNNING or limited or 0 < run.max_rounds <= run.step_count:
        return None
    if run.lease_expires_at is None:
        if run.lease_released_at is None:
            return None
        kind, at = "run.release", run.lease_released_at
        row = _audit_row(actor, run, kind, at, at + OPEN)
        return Handover(kind, at, row.actor_name if row else "", _is_recent(run, at))
    last = Revision.objects.filter(thread=run.thread, number=run.last_revision).first()
    renewed = run.lease_expires_at - timedelta(seconds=run.lease_seconds)
    # A heartbeat or a new lease is later than the revision, which gives the run a lease, too.
    if last is None or last.actor_kind != ActorKind.USER or renewed > last.at:
        return None
    kind = "run.resume"
    if _audit_row(actor, run, kind, last.at, last.at) is None:
        return None
    return Handover(kind, last.at, last.actor_name, _is_recent(run, last.at))


def _is_recent(run: Run, at: datetime) -> bool:
    return run.read_at < at + max(_PERIODS * timedelta(seconds=run.lease_seconds), _LEAST)


def _audit_row(
    actor: Actor, run: Run, action: str, since: datetime, until: datetime
) -> AuditRow | None:
    owner = {"workspace_id": run.workspace_id}
    rows = AuditRow.objects.visible_to(actor).since(since, owner).until(until, owner)
    return rows.filter(run=run.public_id, action=action).order_by("-pk").first()
