"""Applies one patch to many entries that a person selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db import transaction

from state_admin.domain import config, values
from state_admin.domain.access import Actor, Role
from state_admin.domain.patches import PatchKind
from state_admin.domain.values import JSON
from state_admin.models import Entry, Operation, reverts_sql
from state_admin.models.entries_sql import JoinedEntry
from state_admin.models.reverts_sql import RevertibleEntry, WrittenEntry

from . import journal, quotas
from .actors import require
from .batching import MOST_BYTES, split_by_size
from .bulk import MOST, BulkResult, ChangedEntry, SelectedEntry, SkippedEntry, store_together
from .dry_runs import discard_writes
from .entries import check_value, new_entry, patch_text
from .errors import Conflict, Invalid, Problem
from .namespaces import Definition, definitions_for

# How many changed values a result shows.
MOST_EXAMPLES: Final = 5
# It is applied to each entry.
MOST_PATCH_CHARACTERS: Final = 65_536


class Patch(NamedTuple):
    kind: PatchKind
    operations: JSON


class PatchedExample(NamedTuple):
    """The value of an entry before and after the patch."""

    namespace: str
    key: str
    before: JSON
    after: JSON


@dataclass(frozen=True)
class PatchResult(BulkResult):
    """`examples`: the first changed entries."""

    examples: Sequence[PatchedExample] = ()


def read_patch(text: str) -> Patch:
    """A patch from its JSON text: an object is a JSON Merge Patch (RFC 7396), an array holds the
    operations of a JSON Patch (RFC 6902). Raises Invalid."""
    if len(text) > MOST_PATCH_CHARACTERS:
        raise Invalid(f"the patch must have at most {MOST_PATCH_CHARACTERS:,} characters")
    try:
        raw = values.read(text)
        values.check(raw)
    except (values.MalformedJSON, values.RefusedJSON) as bad:
        raise Invalid(f"the patch is not valid JSON: {bad}") from bad
    if isinstance(raw.value, dict):
        return Patch("merge", raw.value)
    if isinstance(raw.value, list):
        return Patch("json", raw.value)
    raise Invalid("the patch must be an object or an array")


def patch_entries(
    *,
    actor: Actor,
    seen: Sequence[SelectedEntry],
    patch: Patch,
    reason: str = "",
    dry_run: bool = False,
) -> PatchResult:
    """Patch the values of up to MOST entries. They keep their expiry, tags and pins.

    An entry is skipped and reported if it was written since, if the patch cannot be applied to its
    value or changes nothing, or if the schema refuses the result. The config registry and unregistered
    namespaces are skipped too.

    Each transaction writes up to 500 entries or 16 MB. If one after the first fails, its entries and
    the rest are skipped. `dry_run` writes nothing, and examines only the entries of the first
    transaction; the others are not in the result. Raises Invalid for more than MOST entries and, if
    nothing was written, QuotaExceeded, and Conflict if a namespace changes at the same time.
    """
    require(actor, Role.EDITOR)
    if len(seen) > MOST:
        raise Invalid(f"at most {MOST:,} entries at once, not {len(seen):,}")
    reserved = [each for each in seen if config.kind_of(each.namespace)]
    skipped = [
        SkippedEntry(each.namespace, each.key, "its namespace is reserved") for each in reserved
    ]
    selected = {(e.namespace, e.key): e for e in seen if not config.kind_of(e.namespace)}
    sizes = _sizes(actor, selected)
    gone = selected.keys() - {address for address, _ in sizes}
    skipped += [SkippedEntry(*address, "the entry no longer exists") for address in gone]
    done: list[ChangedEntry] = []
    examples: list[PatchedExample] = []
    refusal = ""
    for group in split_by_size(sizes):
        if refusal:
            skipped += [SkippedEntry(*address, refusal) for address in group]
            continue
        versions = [selected[address].version for address in group]
        written = [
            WrittenEntry(*address, version, version)
            for address, version in zip(group, versions, strict=True)
        ]
        try:
            with discard_writes() if dry_run else nullcontext():
                result = _patch_group(actor, written, patch, reason)
        except Problem as problem:
            if not done:  # nothing has been written
                raise
            refusal = problem.detail
            skipped += [SkippedEntry(*address, refusal) for address in group]
            continue
        done += result.done
        skipped += result.skipped
        examples += result.examples[: MOST_EXAMPLES - len(examples)]
        if dry_run:
            break
    return PatchResult(sorted(done), sorted(skipped), examples)


def _sizes(
    actor: Actor, selected: dict[tuple[str, str], SelectedEntry]
) -> list[tuple[tuple[str, str], int]]:
    """The addresses of the entries that exist, in key order, with the sizes of their values."""
    rows = (
        Entry.objects.visible_to(actor)
        .live()
        .filter(
            namespace__name__in={namespace for namespace, _ in selected},
            key__in=[key for _, key in selected],
        )
        .values_list("namespace__name", "key", "size_bytes")
    )
    return sorted(
        ((name, key), size) for name, key, size in rows.iterator() if (name, key) in selected
    )


def _patch_group(
    actor: Actor, entries: Sequence[WrittenEntry], patch: Patch, reason: str
) -> PatchResult:
    stamp = journal.parameters(actor, reason or "bulk edit")
    done: list[ChangedEntry] = []
    skipped: list[SkippedEntry] = []
    examples: list[PatchedExample] = []
    define = definitions_for(actor)
    # A short patch can make small values large, so the new ones bound each statement, too.
    puts: list[tuple[str | None, JoinedEntry]] = []
    size = 0
    missed = {(each.namespace, each.key): each for each in entries}
    with quotas.undo_additions(), transaction.atomic():
        for row in reverts_sql.lock_entries(actor.workspace_id, entries):
            del missed[row.namespace, row.key]
            try:
                put, example = _plan(define, patch, row)
            except Problem as refused:
                skipped.append(SkippedEntry(row.namespace, row.key, _explain(refused)))
                continue
            done.append(ChangedEntry(row.namespace, row.key, row.version + 1, row.expires_at))
            if len(examples) < MOST_EXAMPLES:
                examples.append(example)
            puts.append((row.value, put))
            size += put.entry.size
            if size > MOST_BYTES:
                store_together(actor, puts, Operation.PATCH, stamp)
                puts, size = [], 0
        if puts:
            store_together(actor, puts, Operation.PATCH, stamp)
        if done:
            journal.align_feed_clock(actor)
    why = "it was written since then, or its namespace is not registered"
    skipped += [SkippedEntry(namespace, key, why) for namespace, key in missed]
    return PatchResult(done, skipped, examples)


def _plan(
    define: Callable[[str], Definition], patch: Patch, row: RevertibleEntry
) -> tuple[JoinedEntry, PatchedExample]:
    """The write of the patched value. Raises Conflict and Invalid with the reason to skip the entry."""
    if row.value is None:
        raise Conflict("the entry no longer exists")
    before = values.load(row.value)
    after = patch_text(patch.kind, row.value, patch.operations)
    if values.same(before, after.value):
        raise Conflict("no change needed")
    definition = define(row.namespace)
    check_value(definition, after)
    entry = new_entry(definition, row.key, after.text)._replace(ttl=None)
    return (
        JoinedEntry(entry, expires_at=row.expires_at),
        PatchedExample(row.namespace, row.key, before, after.value),
    )


def _explain(refused: Problem) -> str:
    """The problem with its first fault."""
    faults = refused.data.get("errors")
    if not faults:
        return refused.detail
    where = f" at {faults[0]['pointer']}" if faults[0]["pointer"] else ""
    return f"{refused.detail}{where}: {faults[0]['message']}"
