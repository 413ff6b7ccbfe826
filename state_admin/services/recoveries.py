"""Recovers stuck runs: fails them, or resumes them, optionally from a snapshot.

runs.py cancels a run; leases.py releases its lease.
"""

from __future__ import annotations

from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.models import RevisionKind, Run, RunStatus

from . import leases, runs, snapshots, tool_calls
from .actors import require
from .errors import Conflict
from .runs import UNCHANGED, RunChange
from .state_keys import hold_registry
from .threads import guard


def fail_run(
    *,
    actor: Actor,
    run_id: str,
    message: str = "",
    expected_revision: int | None = None,
    fencing_token: int | None = None,
    reason: str = "",
) -> Run:
    """End an active run with the termination reason `error`. Its value is `message`, else `reason`,
    else a text with the actor's name. Raises what change_run raises."""
    ended = {"type": "error", "value": message or reason or f"failed by {actor.name}"}
    change = RunChange(status=RunStatus.DONE, termination_reason=ended)
    return runs.change_run(
        actor=actor,
        run_id=run_id,
        change=change,
        fencing_token=fencing_token,
        expected_revision=expected_revision,
        reason=reason,
    )


def resume_run(
    *,
    actor: Actor,
    run_id: str,
    revision: int | None = None,
    expected_revision: int | None = None,
    fencing_token: int | None = None,
    reason: str = "",
) -> Run:
    """Resume an active run with a new fencing token and lease, as one new revision.

    With `revision`, the state of that revision is restored. Later revisions are kept, and messages
    do not change. Pending tickets become void.

    Raises Conflict `invalid run transition: done -> running` for a finished run, RevisionConflict
    if the thread is not at `expected_revision`, NotFound and Gone for `revision`, and Superseded
    for an old fencing token.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        hold_registry(actor)
        run, thread = runs.lock_run(actor, run_id)
        runs.check_fencing(run, fencing_token)
        if run.status == RunStatus.DONE:
            raise Conflict(
                f"invalid run transition: {run.status} -> {RunStatus.RUNNING}",
                hint="Restore the revision and start a new run on the thread.",
            )
        guard(thread, expected_revision)
        now = run.read_at
        writes = snapshots.back_to(thread, revision) if revision is not None else {}
        calls = [tool_calls.call_of(ticket, "cancelled", now) for ticket in runs.void_tickets(run)]
        writes |= tool_calls.mirror_calls(actor, thread, calls, writes) if revision is None else {}
        move = UNCHANGED if run.status == RunStatus.RUNNING else RunChange(status=RunStatus.RUNNING)
        writes |= runs.apply_change(actor, run, thread, move, writes)
        leases.begin_lease(run)
        run.flagged_at = None
        run.save(
            update_fields=[
                "fencing_token",
                "lease_expires_at",
                "lease_released_at",
                "ticket_due_at",
                "flagged_at",
            ]
        )
        kind = RevisionKind.COMMIT if revision is None else RevisionKind.RESTORE
        snapshots.advance(actor, thread, kind, writes, action="run.resume", run=run, reason=reason)
    return run
