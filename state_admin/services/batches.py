"""Runs many entry operations in one call: all or nothing, or each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON, Raw
from state_admin.models import entries_sql, hot
from state_admin.models.entries_sql import Address, ValuesTooLarge

from . import entries, entry_views, journal, quotas
from .actors import require
from .entries import Precondition
from .entry_views import EntryView
from .errors import Invalid, NotRegistered, Problem, TooLarge

MAX_OPERATIONS = 1000
# A limit, because every patch parses and stores a whole value while the batch holds its locks.
MAX_PATCHED_BYTES = 32 << 20


class BatchOperation(NamedTuple):
    """One operation. `value` for put; `patch_kind` and `operations` for patch."""

    op: Literal["get", "put", "patch", "delete"]
    namespace: str
    key: str
    value: Raw | None = None
    patch_kind: PatchKind = "merge"
    operations: JSON = None
    if_version: int | None = None
    ttl_seconds: int | None = None
    tags: Sequence[str] | None = None
    pinned: bool | None = None
    reason: str = ""


class OperationResult(NamedTuple):
    """The result of one operation: an entry (get, put, patch), a version (delete), or a problem."""

    op: str
    entry: EntryView | None = None
    created: bool = False
    version: int = 0
    problem: Problem | None = None


def run_batch(
    *, actor: Actor, operations: Sequence[BatchOperation], atomic: bool = True
) -> list[OperationResult]:
    """Run 1 to 1,000 operations. The results have the order of the operations.

    `atomic`: all succeed, or none is stored and the first problem is raised with its `index`. The
    operations run in key order, so that batches never deadlock; those on one key keep their order.
    All gets read one snapshot of the database, plus earlier writes of this batch. The change feed
    shows all writes at one position.

    Raises Invalid, TooLarge when the values that its gets return exceed MOST_READ bytes or those
    that its patches wrote MAX_PATCHED_BYTES, and what the verbs of entries raise.
    """
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        raise Invalid(f"a batch takes 1 to {MAX_OPERATIONS} operations, not {len(operations)}")
    if any(operation.op != "get" for operation in operations):
        require(actor, Role.EDITOR)
    if all(operation.op == "get" for operation in operations):
        return _read_all(actor, operations, atomic=atomic)
    if not atomic:
        return _run_each(actor, operations)
    if _all_plain(operations):
        puts = [(o.namespace, o.key, o.value) for o in operations if o.value is not None]
        results = entries.put_entries(actor=actor, puts=puts, reason=operations[0].reason)
        if results is not None:
            return [
                OperationResult("put", put.entry, put.created, put.entry.version) for put in results
            ]
    return _run_together(actor, operations)


def _read_all(
    actor: Actor, operations: Sequence[BatchOperation], *, atomic: bool
) -> list[OperationResult]:
    """One statement, which reads one snapshot without a transaction."""
    try:
        found = _read_together(actor, operations)
    except TooLarge:
        if atomic:
            raise
        return _run_each(actor, operations)
    budget = _Budget()
    results = []
    for index, operation in enumerate(operations):
        try:
            results.append(_run_next(actor, operation, found, budget))
        except Problem as problem:
            if atomic:
                problem.data["index"] = index
                raise
            results.append(OperationResult("get", problem=problem))
    return results


def _key_order(operations: Sequence[BatchOperation]) -> list[int]:
    """The indexes of the operations, by key."""
    return sorted(
        range(len(operations)), key=lambda i: (operations[i].namespace, operations[i].key)
    )


def _run_each(actor: Actor, operations: Sequence[BatchOperation]) -> list[OperationResult]:
    outcomes: dict[int, OperationResult] = {}
    budget = _Budget()
    for index in _key_order(operations):  # with an Idempotency-Key all are in one transaction
        try:
            outcomes[index] = _run(actor, operations[index], budget)
        except Problem as problem:
            outcomes[index] = OperationResult(operations[index].op, problem=problem)
    return [outcomes[index] for index in range(len(operations))]


def _run_together(actor: Actor, operations: Sequence[BatchOperation]) -> list[OperationResult]:
    outcomes: dict[int, OperationResult] = {}
    failed: dict[int, Problem] = {}
    grouped: set[int] = set()
    budget = _Budget()
    with quotas.undo_additions(), transaction.atomic():
        seen = _read_together(actor, operations)
        order = _key_order(operations)
        for position, index in enumerate(order):
            if failed and index > min(failed):
                continue  # nothing will be stored; only an earlier operation can change the error
            if index in outcomes:
                continue
            try:
                if index not in grouped:
                    group = _next_deletions(operations, order[position:], seen)
                    grouped |= set(group)
                    outcomes |= _delete_together(actor, operations, group)
                    if index in outcomes:
                        continue
                outcomes[index] = _run_next(actor, operations[index], seen, budget)
            except Problem as problem:
                failed[index] = problem
        if failed:
            first = min(failed)
            failed[first].data["index"] = first
            raise failed[first]
        if any(operation.op != "get" for operation in operations):
            journal.align_feed_clock(actor)
    return [outcomes[index] for index in range(len(operations))]


def _next_deletions(
    operations: Sequence[BatchOperation],
    order: Sequence[int],
    seen: dict[tuple[str, str], EntryView],
) -> list[int]:
    """Return the indexes of the next deletions that one statement can perform: they name a version
    and are in one namespace, with distinct keys. Empty if there is only one."""
    first = operations[order[0]]
    keys: dict[str, int] = {}
    for index in order:
        o = operations[index]
        if (o.op, o.namespace, o.reason) != ("delete", first.namespace, first.reason):
            break
        if not o.if_version or o.key in keys or (o.namespace, o.key) in seen:
            break
        keys[o.key] = index
    return list(keys.values()) if len(keys) > 1 else []


def _delete_together(
    actor: Actor, operations: Sequence[BatchOperation], group: Sequence[int]
) -> dict[int, OperationResult]:
    """Run these deletions in one statement. The result lacks those that are refused."""
    if not group:
        return {}
    first = operations[group[0]]
    indexes = {operations[index].key: index for index in group}
    versions = {key: operations[index].if_version or 0 for key, index in indexes.items()}
    deleted = entries.delete_entries(
        actor=actor, namespace=first.namespace, versions=versions, reason=first.reason
    )
    return {
        indexes[key]: OperationResult("delete", version=version) for key, version in deleted.items()
    }


def _run_next(
    actor: Actor,
    operation: BatchOperation,
    seen: dict[tuple[str, str], EntryView],
    budget: _Budget,
) -> OperationResult:
    """Run one operation of an atomic batch. `seen`: the entries that its gets return, which its
    writes change."""
    address = (operation.namespace, operation.key)
    if operation.op == "get":
        if address not in seen:
            raise NotRegistered(operation.namespace)
        budget.add_read(seen[address])
        return OperationResult("get", seen[address])
    outcome = _run(actor, operation, budget)
    if address in seen:
        seen[address] = outcome.entry or entry_views.read_entry(
            actor=actor, namespace=operation.namespace, key=operation.key
        )
    return outcome


def _all_plain(operations: Sequence[BatchOperation]) -> bool:
    """Whether one statement can perform all operations: unconditional puts with distinct keys."""
    return len({(o.namespace, o.key) for o in operations}) == len(operations) and all(
        o.op == "put"
        and o.value is not None
        and o.if_version is None
        and o.ttl_seconds is None
        and o.tags is None
        and o.pinned is None
        for o in operations
    )


def _read_together(
    actor: Actor, operations: Sequence[BatchOperation]
) -> dict[tuple[str, str], EntryView]:
    addresses = {
        Address(actor.workspace_id, o.namespace, o.key)
        for o in operations
        if o.op == "get" and actor.sees_namespace(o.namespace)
    }
    rows = hot.fetch_all(*entries_sql.reading_entries(sorted(addresses))) if addresses else []
    try:
        found = entries_sql.entries_of(rows)
    except ValuesTooLarge:
        raise _too_much_read() from None
    return {
        (namespace, key): entry_views.view(actor, namespace, key, row)
        for (_, namespace, key), row in found.items()
    }


class _Budget:
    """The bytes of the values that a batch has read and that its patches have written. Raises TooLarge."""

    def __init__(self) -> None:
        self._read = 0
        self._patched = 0

    def add_read(self, entry: EntryView) -> None:
        self._read += len(entry.value)
        if self._read > entries_sql.MOST_READ:
            raise _too_much_read()

    def check_patches(self) -> None:
        """Whether another patch may run."""
        if self._patched > MAX_PATCHED_BYTES:
            raise TooLarge(
                f"the patches of a batch may write at most {MAX_PATCHED_BYTES:,} bytes of values",
                hint="Combine the patches of one key, or send several batches.",
                limit=MAX_PATCHED_BYTES,
            )

    def add_patch(self, size: int) -> None:
        self._patched += size


def _too_much_read() -> TooLarge:
    return TooLarge(
        f"the gets of a batch may return at most {entries_sql.MOST_READ:,} bytes of values",
        hint="Read the entries in several batches.",
        limit=entries_sql.MOST_READ,
    )


def _run(actor: Actor, operation: BatchOperation, budget: _Budget) -> OperationResult:
    address: dict[str, Any] = {
        "actor": actor,
        "namespace": operation.namespace,
        "key": operation.key,
    }
    precondition = Precondition(operation.if_version)
    if operation.op == "get":
        entry = entry_views.read_entry(**address)
        budget.add_read(entry)
        return OperationResult("get", entry)
    if operation.op == "delete":
        version = entries.delete_entry(
            **address, precondition=precondition, reason=operation.reason
        )
        return OperationResult("delete", version=version)
    if operation.op == "patch":
        budget.check_patches()
        put = entries.patch_entry(
            **address,
            kind=operation.patch_kind,
            operations=operation.operations,
            precondition=precondition,
            reason=operation.reason,
        )
        budget.add_patch(put.entry.size_bytes)
    else:
        if operation.value is None:
            raise Invalid("put requires a value")
        put = entries.put_entry(
            **address,
            value=operation.value,
            precondition=precondition,
            ttl_seconds=operation.ttl_seconds,
            tags=operation.tags,
            pinned=operation.pinned,
            reason=operation.reason,
        )
    return OperationResult(operation.op, put.entry, put.created, put.entry.version)
