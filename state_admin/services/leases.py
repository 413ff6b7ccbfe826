"""Takes over and releases the lease of a run; each creates a new fencing token."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from state_admin.domain import moments
from state_admin.domain.access import Actor, Role
from state_admin.models import Run, RunStatus

from . import journal, runs
from .actors import require
from .errors import Conflict


def take_lease(
    *,
    actor: Actor,
    run_id: str,
    fencing_token: int | None = None,
    only_if_free: bool = False,
    reason: str = "",
) -> Run:
    """Make the caller the worker of the run, with a new fencing token and a new lease.

    The previous worker is refused from now on. Raises Superseded if `fencing_token` is not the
    newest, so only the first of several callers with the same token succeeds; Conflict `lease is
    held until …` for an active lease with `only_if_free`, and `run is done: …`.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        run = _lock(actor, run_id, fencing_token)
        now = run.read_at
        lease_end = run.lease_expires_at
        if only_if_free and lease_end is not None and lease_end > now:
            raise Conflict(f"lease is held until {moments.timestamp(lease_end)}", until=lease_end)
        begin_lease(run)
        _save(actor, run, "run.lease", reason)
    return run


def release_lease(
    *, actor: Actor, run_id: str, fencing_token: int | None = None, reason: str = ""
) -> Run:
    """Release the lease, by the worker or for it. The run does not change, and is stuck until a
    worker takes the lease. Requests of the previous worker are refused. Raises what take_lease
    raises."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        run = _lock(actor, run_id, fencing_token)
        run.fencing_token += 1
        run.lease_expires_at = None
        run.lease_released_at = run.read_at
        _save(actor, run, "run.release", reason)
    return run


def begin_lease(run: Run) -> None:
    """A new worker for a locked run: the next fencing token and, unless the run waits, a lease."""
    now = run.read_at
    run.fencing_token += 1
    run.lease_released_at = None
    if run.status != RunStatus.WAITING:
        run.lease_expires_at = now + timedelta(seconds=run.lease_seconds)


def _lock(actor: Actor, run_id: str, fencing_token: int | None) -> Run:
    run, _ = runs.lock_run(actor, run_id)
    if run.status == RunStatus.DONE:
        raise Conflict(f"run is done: {run_id}", hint="A finished run has no lease.")
    runs.check_fencing(run, fencing_token)
    return run


def _save(actor: Actor, run: Run, action: str, reason: str) -> None:
    run.flagged_at = None
    run.save(update_fields=["fencing_token", "lease_expires_at", "lease_released_at", "flagged_at"])
    trace = journal.Trace(
        action,
        thread=run.thread.public_id,
        run=run.public_id,
        detail={"fencing_token": run.fencing_token},
    )
    journal.record(actor, [trace], reason=reason)
