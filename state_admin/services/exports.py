"""Exports and imports the state of threads, in the wire format of the reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from django.db import transaction

from state_admin.domain import reducers, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.values import MAX_VALUE_BYTES, Fault, Raw
from state_admin.models import RevisionKind, StateKey

from . import snapshots
from .actors import require
from .errors import check_storable
from .finding import refuse
from .snapshots import LIFECYCLE, Snapshot
from .state_keys import Slot, find_slots, hold_registry
from .threads import find_thread, guard

UnknownKeys = Literal["error", "skip"]
Mode = Literal["replace", "merge"]


@dataclass(frozen=True)
class Imported:
    """The state after an import, and the state keys that were skipped."""

    snapshot: Snapshot
    skipped: tuple[str, ...]


def export_snapshot(
    *, actor: Actor, thread_id: str, revision: int | None = None, scope: str = ""
) -> Snapshot:
    """The exportable part of the state: the values of registered and persistent state keys.

    Raises NotFound and Gone as read_snapshot does.
    """
    snapshot = snapshots.read_snapshot(
        actor=actor, thread_id=thread_id, revision=revision, scope=scope
    )
    registered = StateKey.objects.filter(
        workspace_id=actor.workspace_id, name__in=list(snapshot.extensions), persistent=True
    )
    able = {*registered.values_list("name", flat=True), *reducers.RUNTIME_KEYS}
    rows = (row for row in snapshot.rows if row.persistent and row.key in able)
    return replace(snapshot, rows=tuple(rows))


def import_snapshot(
    *,
    actor: Actor,
    thread_id: str,
    revision: int,
    extensions: Mapping[str, Raw],
    unknown_keys: UnknownKeys = "error",
    mode: Mode = "replace",
    expected_revision: int | None = None,
    pointer: str = "/snapshot/extensions",
    reason: str = "",
) -> Imported:
    """Import an exported snapshot as the next revision of the thread: all of it, or nothing.

    `replace`: the state becomes that of the snapshot. `merge`: state keys that the snapshot does
    not name do not change. `revision` is that of the source; the thread continues its own
    numbering. The run lifecycle mirrors the runs of this thread, so a thread that has had a run
    keeps it. Raises Invalid (`unknown key: …` unless skipped, or a value that exceeds a limit or
    does not satisfy its schema, with its pointer) and RevisionConflict (the thread has changed).
    `pointer`: the JSON pointer of `extensions` in the body.
    """
    require(actor, Role.EDITOR)
    names = dict.fromkeys(extensions)
    # Names, registered or not, may contain NUL or lone surrogates, or be too many.
    check_storable(Raw(values.dump(names), names), "the snapshot", pointer)
    with transaction.atomic():
        hold_registry(actor)
        thread = find_thread(actor, thread_id, lock=True)
        guard(thread, expected_revision)
        slots = find_slots(actor, thread, extensions)
        unknown = sorted(extensions.keys() - slots.keys())
        if unknown and unknown_keys == "error":
            faults = [
                Fault(pointer + values.pointer_of(name), "no such state key is registered")
                for name in unknown
            ]
            refuse(faults, f"unknown key: {unknown[0]}")
        accepted = {name: (slots[name], raw) for name, raw in extensions.items() if name in slots}
        faults = [
            fault
            for name, (slot, raw) in accepted.items()
            for fault in _value_faults(slot, raw, pointer + values.pointer_of(name))
        ]
        refuse(faults, "the snapshot does not satisfy the schemas of its state keys")
        target = {
            name: snapshots.new_value(slot, raw.text) for name, (slot, raw) in accepted.items()
        }
        writes = snapshots.changes_to(thread, target, merge=mode == "merge")
        if thread.latest_run_id is not None:
            writes.pop(LIFECYCLE, None)
        snapshots.advance(
            actor,
            thread,
            RevisionKind.IMPORT,
            writes,
            action="thread.import",
            reason=reason or f"imported a snapshot of revision {revision}",
        )
        now = snapshots.read_snapshot(actor=actor, thread_id=thread_id)
    return Imported(now, tuple(unknown))


def _value_faults(slot: Slot, raw: Raw, pointer: str) -> list[Fault]:
    if (size := len(raw.text.encode())) > MAX_VALUE_BYTES:
        return [Fault(pointer, f"has {size} bytes; the limit is {MAX_VALUE_BYTES} bytes")]
    try:
        values.check(raw, pointer)
    except values.RefusedJSON as refused:
        return list(refused.faults)
    faults = slot.validator.faults(raw.value)
    return [fault.inside(pointer) for fault in faults]
