"""The atomic step of a run: updates, messages and run fields in one revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from state_admin.domain import merging, patches, reducers, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.documents import MAX_FAULTS
from state_admin.domain.json_pointers import Budget
from state_admin.domain.merging import Batch, Update
from state_admin.domain.values import Fault, Raw
from state_admin.models import RevisionKind, Run, RunStatus, Thread, erasures_sql

from . import commit_conflicts, compactions, journal, knowledge, messages, runs, snapshots
from .actors import require
from .errors import Conflict, Invalid, NotRegistered, RevisionConflict, check_storable
from .pointers import prefix_pointers
from .runs import UNCHANGED, RunChange
from .snapshots import NewValue, Read
from .state_keys import Slot, SlotValue, check_value, find_slots, hold_registry

MAX_UPDATES = 10_000
_NOTHING_APPLIED = "No part of the commit was applied."
_RETRY = "Read the state again and retry."
_RETRY_OR_REBASE = "Read the state again and retry, or send on_conflict: rebase."


@dataclass(frozen=True)
class Step:
    """The content of a commit. `batches` has one batch per parallel branch, in order."""

    batches: tuple[Batch, ...] = ()
    base_revision: int | None = None
    rebase: bool = False
    messages: Sequence[Raw] = ()
    expected_message_count: int | None = None
    run: RunChange = UNCHANGED
    label: str = ""
    reads: Sequence[Read] = ()
    fencing_token: int | None = None

    @property
    def empty(self) -> bool:
        updates = any(batch.updates for batch in self.batches)
        return not (updates or self.messages or self.label or self.reads) and self.run.empty


@dataclass(frozen=True)
class Committed:
    """The result: the new revision of the thread, the changed keys, and the number of messages."""

    revision: int
    touched: tuple[str, ...]
    message_count: int
    run: Run


def commit(*, actor: Actor, run_id: str, step: Step, reason: str = "") -> Committed:
    """Apply one step: all of it, as exactly one revision, or nothing.

    An empty step returns the current revision, even with a stale base. Otherwise the checks run
    in the order of docs/reference/semantics.md, "Commits", and raise Conflict, RevisionConflict,
    Invalid or VersionConflict. An old fencing token raises Superseded before all of them.
    """
    require(actor, Role.EDITOR)
    check_count(sum(len(batch.updates) for batch in step.batches), "/batches")
    parsed = messages.parse_messages(step.messages) if step.messages else []
    names = {update.key for batch in step.batches for update in batch.updates}
    reads = sorted(set(step.reads))
    if hidden := [read.namespace for read in reads if not actor.sees_namespace(read.namespace)]:
        raise NotRegistered(hidden[0])
    with transaction.atomic():
        if reads:  # they have keys of entries
            erasures_sql.lock_erasure(actor.workspace_id, shared=True)
        if names:
            hold_registry(actor)
        run, thread = runs.lock_run(actor, run_id)
        runs.check_fencing(run, step.fencing_token)
        if step.empty:
            return Committed(thread.revision, (), thread.message_count, run)
        slots = find_slots(actor, thread, names)
        writes = apply_step(run, thread, step, slots)
        with prefix_pointers(step.run.pointer):
            writes |= runs.apply_change(actor, run, thread, step.run, writes)
        messages.guard(thread, step.expected_message_count)
        ended = step.run.status == RunStatus.DONE
        if ended:  # values that live until the run ends are cleared with its last step
            writes = {
                key: value if value.persistent else replace(value, text=None)
                for key, value in writes.items()
            }
        advanced = snapshots.advance(
            actor,
            thread,
            RevisionKind.END if ended else RevisionKind.COMMIT,
            writes,
            action=f"run.{run.status}" if step.run.status else "run.commit",
            run=run,
            log=parsed,
            reads=reads,
            label=step.label,
            reason=reason,
        )
        if advanced.reads < len(reads):
            knowledge.explain_reads(actor, step.reads)
        requested = bool(parsed) and compactions.request_when_due(
            actor, thread, advanced.context_tokens
        )
        if requested or step.run.waiting is not None:  # jobs and tickets have rows in the feed
            journal.align_feed_clock(actor)
    return Committed(advanced.revision, tuple(sorted(writes)), advanced.message_count, run)


def apply_step(run: Run, thread: Thread, step: Step, slots: dict[str, Slot]) -> dict[str, NewValue]:
    """Return the new values that the updates of a step produce. Raises what `commit` raises for
    updates."""
    merged = _merge(step, slots)
    _check_base(thread, merged, slots, rebase=step.rebase)
    if unknown := [u for u in merged.updates if u.key not in slots]:
        raise Invalid(
            f"unknown key: {unknown[0].key}",
            [Fault(f"{each.pointer}/key", "is not registered") for each in unknown[:MAX_FAULTS]],
            hint="Register the state key with PUT /api/v1/state-keys/{key}.",
        )
    writes = _apply(merged.updates, slots)
    if run.status == RunStatus.DONE and step.run.status in (None, RunStatus.DONE):
        raise Conflict(f"run is done: {run.public_id}", hint="Start a new run on the thread.")
    return writes


def check_count(updates: int, pointer: str) -> None:
    """Raise Invalid if all batches of a commit together, or the one at `pointer`, have too many
    updates."""
    if updates > MAX_UPDATES:
        raise Invalid(
            f"a commit takes at most {MAX_UPDATES:,} updates, not {updates:,}",
            [Fault(pointer, f"must have at most {MAX_UPDATES:,} updates")],
        )


def _merge(step: Step, slots: dict[str, Slot]) -> Batch:
    def is_commutative(key: str) -> bool:
        return key in slots and slots[key].commutative

    # The step's own base must agree with those of its batches.
    whole = (Batch((), step.base_revision), *step.batches)
    try:
        return merging.merge_batches(whole, is_commutative)
    except merging.BaseRevisionMismatch as clash:
        raise Conflict(str(clash), hint=_NOTHING_APPLIED) from clash
    except merging.ParallelMergeConflict as clash:
        clashing = merging.clashes(step.batches, is_commutative)
        members = commit_conflicts.explain_branches(step.batches, clashing, slots)
        raise Conflict(str(clash), hint=_NOTHING_APPLIED, **members) from clash


def _check_base(thread: Thread, merged: Batch, slots: dict[str, Slot], *, rebase: bool) -> None:
    base = merged.base_revision
    if base is None or base == thread.revision:
        return
    if base > thread.revision:
        raise RevisionConflict(base, thread.revision, hint=_RETRY)
    members = commit_conflicts.explain_moves(thread, merged.updates, slots, base)
    if members["keys"] or not rebase:
        hint = _RETRY if rebase or members["keys"] else _RETRY_OR_REBASE
        raise RevisionConflict(base, thread.revision, hint=hint, **members)


def _apply(updates: Sequence[Update], slots: dict[str, Slot]) -> dict[str, NewValue]:
    """Return the new value of each changed key. The cost depends on the number of changed keys, not
    on the size of the state."""
    budget = Budget()
    changed: dict[str, SlotValue] = {}
    for update in updates:
        slot = slots[update.key]
        if not update.clear:
            check_storable(update.update, "an update", f"{update.pointer}/update")
        if update.key not in changed:
            changed[update.key] = SlotValue(slot, slot.held, budget)
        try:
            changed[update.key].apply(update)
        except patches.PatchTestFailed as failed:
            raise Conflict(f"test failed at {failed.pointer or '/'}", key=update.key) from failed
        except reducers.UpdateRefused as refused:
            faults = [Fault(f"{update.pointer}/update", str(refused))]
            raise Invalid(f"the update of {update.key} cannot be applied", faults) from refused
    texts: dict[str, str | None] = {}
    for key, value in changed.items():
        try:
            texts[key] = text = value.text
        except values.RefusedJSON as deep:
            raise Invalid(f"the value of {key} cannot be stored", deep.faults, key=key) from deep
        if text is not None:
            check_value(slots[key], text)
    return {key: snapshots.new_value(slots[key], text) for key, text in texts.items()}
