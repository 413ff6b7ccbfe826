"""Reads, compares, restores and labels the state of a thread, and writes its next revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Required, TypedDict, Unpack

from django.db import transaction

from state_admin.domain import values
from state_admin.domain.access import Actor, Role
from state_admin.domain.messages import ParsedMessage
from state_admin.domain.values import JSON
from state_admin.models import Revision, RevisionKind, Run, StateValue, Thread, snapshots_sql
from state_admin.models.snapshots_sql import AdvancedThread, Move, StateRow

from . import journal
from .actors import require
from .errors import Conflict, Gone, NotFound, TooLarge
from .messages import check_inserted, new_messages
from .state_keys import Slot, hold_registry, runtime_slot
from .threads import find_thread, guard

# Of the values of one state that a call reads. Their number is not limited.
MAX_STATE_BYTES: Final = 32 << 20
LIFECYCLE = "__runtime.run_lifecycle"


@dataclass(frozen=True)
class Snapshot:
    """The state of a thread at a revision. Values are JSON text."""

    thread_id: str
    revision: int
    rows: tuple[StateRow, ...]

    @property
    def extensions(self) -> dict[str, str]:
        return {row.key: row.value for row in self.rows}

    def parsed(self) -> dict[str, JSON]:
        return {row.key: values.load(row.value) for row in self.rows}


@dataclass(frozen=True)
class NewValue:
    """A value to write in a revision. `text` None clears the key."""

    text: str | None
    scope: str
    persistent: bool


@dataclass(frozen=True, order=True)
class Read:
    """A read that a run reports: the version of an entry; 0 if it did not exist."""

    namespace: str
    key: str
    version: int


def new_value(slot: Slot, text: str | None) -> NewValue:
    return NewValue(text, slot.scope, slot.persistent)


def read_snapshot(
    *, actor: Actor, thread_id: str, revision: int | None = None, scope: str = ""
) -> Snapshot:
    """Return the current state, or the one at `revision`. Raises NotFound if the revision never
    existed, Gone if snapshot compaction removed it, and TooLarge."""
    thread = find_thread(actor, thread_id)
    if revision is None or revision == thread.revision:
        # Read by number, because a commit may have followed since the thread was read.
        revision = thread.revision
        rows = read_values(thread, revision)
        if not rows and revision:
            find_thread(actor, thread_id)  # it may have been deleted since it was read
    else:
        rows = read_kept(thread, revision)
    return Snapshot(
        thread_id=thread_id,
        revision=revision,
        rows=tuple(row for row in rows if not scope or row.scope == scope),
    )


def read_values(thread: Thread, revision: int | None = None) -> list[StateRow]:
    """Return the values at a revision that is retained; None: the current ones. Raises TooLarge if they
    have more than MAX_STATE_BYTES."""
    try:
        return snapshots_sql.read_state(
            thread_id=thread.pk, revision=revision, most=MAX_STATE_BYTES
        )
    except snapshots_sql.StateTooLarge:
        raise TooLarge(
            f"the state of thread {thread.public_id} has more than {MAX_STATE_BYTES:,} bytes",
            hint=(
                "Clear the state keys that are not needed with a commit, and store large values as "
                "entries."
            ),
            limit=MAX_STATE_BYTES,
        ) from None


def read_kept(thread: Thread, revision: int) -> list[StateRow]:
    """Return the values at a revision. Raises what read_values and check_kept raise."""
    rows = read_values(thread, revision)
    # Checked after the read: compaction marks a revision before it deletes any of its values, so
    # the values of an unmarked revision are complete.
    check_kept(thread, revision)
    return rows


def check_kept(thread: Thread, revision: int) -> None:
    """Raise NotFound if the revision never existed, and Gone if snapshot compaction removed it.
    Revision 0, the empty state, always exists."""
    if revision == 0 and thread.revision >= 0:
        return
    row = Revision.objects.filter(thread=thread, number=revision).values_list("dropped").first()
    if row is None:
        raise NotFound(f"no revision {revision} of thread {thread.public_id}")
    if row[0]:
        raise Gone(
            (
                f"revision {revision} of thread {thread.public_id} was removed by snapshot "
                "compaction"
            ),
            hint=(
                "Labelled, pinned and recent revisions are retained; GET …/snapshots lists them."
            ),
        )


def diff_snapshots(
    *, actor: Actor, thread_id: str, old: int, new: int
) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Return the parsed values by key at two revisions, for a diff."""
    before = read_snapshot(actor=actor, thread_id=thread_id, revision=old)
    after = read_snapshot(actor=actor, thread_id=thread_id, revision=new)
    return before.parsed(), after.parsed()


def restore_snapshot(
    *,
    actor: Actor,
    thread_id: str,
    revision: int,
    expected_revision: int | None = None,
    reason: str = "",
) -> Snapshot:
    """Create a new revision with the state of an old one.

    The run lifecycle is not restored, so no run restarts or ends. Values that live only until their
    run ends are restored only if that run is active. Raises RevisionConflict if the thread is not
    at `expected_revision`, NotFound and Gone.
    """
    require(actor, Role.EDITOR)
    with transaction.atomic():
        hold_registry(actor)
        thread = find_thread(actor, thread_id, lock=True)
        guard(thread, expected_revision)
        writes = back_to(thread, revision)
        advance(
            actor,
            thread,
            RevisionKind.RESTORE,
            writes,
            action="thread.restore",
            reason=reason or f"restored revision {revision}",
        )
        return read_snapshot(actor=actor, thread_id=thread_id)


def changes_to(
    thread: Thread, target: Mapping[str, NewValue], *, merge: bool = False
) -> dict[str, NewValue]:
    """Return the writes that change the thread's state to `target`. `merge`: keys that are not in
    `target` do not change."""
    now = {row.key: row for row in snapshots_sql.read_state(thread_id=thread.pk)}
    writes = {
        key: value
        for key, value in target.items()
        if key not in now or now[key].value != value.text
    }
    if not merge:
        writes |= {
            key: NewValue(None, row.scope, row.persistent)
            for key, row in now.items()
            if key not in target
        }
    return writes


def back_to(thread: Thread, revision: int) -> dict[str, NewValue]:
    """Return the writes that restore a revision of a locked thread, as restore_snapshot does.
    Raises what check_kept raises."""
    rows = read_kept(thread, revision)
    run = thread.active_run
    if run is None or revision < run.start_revision:
        rows = [row for row in rows if row.persistent]
    target = {row.key: NewValue(row.value, row.scope, row.persistent) for row in rows}
    writes = changes_to(thread, target)
    writes.pop(LIFECYCLE, None)
    return writes


def find_mark(actor: Actor, thread_id: str, revision: int) -> tuple[str, bool]:
    """Return the label and the pin of a revision. Raises what check_kept raises."""
    thread = find_thread(actor, thread_id)
    rows = Revision.objects.filter(thread=thread, number=revision, dropped=False)
    found = rows.values_list("label", "pinned").first()
    if found is None:
        check_kept(thread, revision)
        raise NotFound(f"no revision {revision} of thread {thread_id}")
    return found


def mark_revision(
    *,
    actor: Actor,
    thread_id: str,
    revision: int,
    label: str | None = None,
    pinned: bool | None = None,
    expected: tuple[str, bool] | None = None,
    reason: str = "",
) -> Revision:
    """Label or pin a revision, which excludes it from compaction. Raises Conflict if its label and
    pin are not `expected`, and what check_kept raises."""
    require(actor, Role.EDITOR)
    with transaction.atomic():
        thread = find_thread(actor, thread_id, lock=True)
        changes = {k: v for k, v in (("label", label), ("pinned", pinned)) if v is not None}
        rows = Revision.objects.filter(thread=thread, number=revision)
        # One statement, so that a concurrent compaction either sees the mark or has won.
        kept = rows.filter(dropped=False)
        if expected is not None:
            kept = kept.filter(label=expected[0], pinned=expected[1])
        if not (kept.update(**changes) if changes else kept.exists()):
            check_kept(thread, revision)
            if rows.exists():
                raise Conflict(
                    f"the label or pin of revision {revision} was changed in the meantime"
                )
            raise NotFound(f"no revision {revision} of thread {thread_id}")
        trace = journal.Trace("thread.mark", thread=thread_id, version=revision, detail=changes)
        journal.record(actor, [trace], reason=reason)
        return rows.select_related("run").get()


class MoveDetails(TypedDict, total=False):
    """The other parts of a revision: its audit action, the run, the messages to append (`log`), the
    entries that the run read (`reads`), a label, and the reason of the caller."""

    action: Required[str]
    run: Run | None
    log: Sequence[ParsedMessage]
    reads: Sequence[Read]
    label: str
    reason: str


def advance(
    actor: Actor,
    thread: Thread,
    kind: RevisionKind,
    writes: Mapping[str, NewValue],
    **details: Unpack[MoveDetails],
) -> AdvancedThread:
    """Write the next revision of `thread`, whose row the caller has locked, in one statement.

    Keys with a text get it as their new value; keys with None are cleared. The lease of the run is
    renewed, and `run` is updated to its stored fields. AdvancedThread.reads counts the reads of
    versions that exist; the caller handles the others. Raises Conflict for a repeated message id.
    """
    move = plan_move(actor, thread, kind, writes, **details)
    moved = snapshots_sql.advance(move)
    check_inserted(thread, details.get("log", ()), moved)
    run = details.get("run")
    if run is not None and moved.run_updated_at is not None:
        run.last_revision, run.flagged_at = moved.revision, None
        run.lease_expires_at, run.updated_at = moved.lease_expires_at, moved.run_updated_at
    return moved


def plan_move(
    actor: Actor,
    thread: Thread,
    kind: RevisionKind,
    writes: Mapping[str, NewValue],
    **details: Unpack[MoveDetails],
) -> Move:
    """Return the Move that `advance` would write."""
    action, run = details["action"], details.get("run")
    journal.check_kind(action)
    return Move(
        thread=thread.pk,
        thread_id=thread.public_id,
        action=action,
        stamp=journal.parameters(actor, details.get("reason", "")),
        run=run.pk if run else None,
        run_id=run.public_id if run else "",
        kind=kind.value,
        label=details.get("label", ""),
        messages=new_messages(details.get("log", ())),
        values=[(key, each.text, each.scope, each.persistent) for key, each in writes.items()],
        reads=[(read.namespace, read.key, read.version) for read in details.get("reads", ())],
    )


def clears(
    thread: Thread, *, scope: str | None = None, persistent: bool | None = None
) -> dict[str, NewValue]:
    """Return the writes that clear the thread's current keys that match the filters."""
    rows = StateValue.objects.filter(thread=thread).current()
    if scope is not None:
        rows = rows.filter(scope=scope)
    if persistent is not None:
        rows = rows.filter(persistent=persistent)
    columns = rows.order_by("key").values_list("key", "scope", "persistent")
    return {key: NewValue(None, kind, lasting) for key, kind, lasting in columns}


def lifecycle_value(run: Run, status_reason: str | None, at_ms: int) -> NewValue:
    """Return the state value that mirrors a run's status, in the format of the reference
    implementation."""
    mirror: dict[str, JSON] = {"run_id": run.public_id, "status": str(run.status)}
    if status_reason is not None:
        mirror["status_reason"] = status_reason
    mirror |= {"updated_at": at_ms, "step_count": run.step_count}
    return new_value(runtime_slot(LIFECYCLE), values.dump(mirror))
