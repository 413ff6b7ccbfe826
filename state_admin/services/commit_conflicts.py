"""Explains a refused commit key by key: the base value, the current value, and the value that the
commit would have written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from state_admin.domain import patches, reducers, values
from state_admin.domain.json_pointers import Budget
from state_admin.domain.merging import Batch, Update
from state_admin.models import Revision, StateValue, Thread

from . import snapshots
from .conflicts import MAX_CLASHES, MAX_SHOWN
from .errors import Gone, NotFound
from .state_keys import Slot, SlotValue

_MAX_REVISIONS = 10
_MAX_ROWS = 500


def explain_moves(
    thread: Thread, updates: Sequence[Update], slots: Mapping[str, Slot], base: int
) -> dict[str, Any]:
    """Return the members of a revision conflict. `keys` are the keys of the commit that were
    changed after the revision `base`. `conflicts` describes the first MAX_CLASHES of them:

    `base`, `theirs` and `yours` are the value at the base, the current value, and the base value
    with the updates of the commit applied; each is omitted if the key is absent. `updates` replaces
    a `yours` that cannot be computed. `revisions` are the retained revisions that changed the key,
    newest first.

    `base_kept` is false if snapshot compaction removed the revision `base`, so that the base values
    are unknown. Values are omitted from a conflict if all of them together would exceed MAX_SHOWN
    characters.
    """
    keys = _moved(thread, {update.key for update in updates}, base)
    reported = keys[:MAX_CLASHES]
    if not reported:
        return {"keys": [], "conflicts": []}
    old = _values_at(thread, reported, base)
    revisions = _revisions(thread, reported, base)
    report = _ConflictReport()
    for key in reported:
        mine = [update for update in updates if update.key == key]
        slot = slots.get(key)
        sides = {"theirs": slot.held if slot else None}
        if old is not None:
            sides["base"] = old.get(key)
        report.add(key, slot, sides, {"yours": mine}, base_kept=old is not None)
        report.conflicts[-1]["revisions"] = revisions[key]
    return {"keys": keys, "base_kept": old is not None, "conflicts": report.conflicts}


def explain_branches(
    batches: Sequence[Batch], clashing: Mapping[str, Sequence[int]], slots: Mapping[str, Slot]
) -> dict[str, Any]:
    """Return the members of a parallel merge conflict, as explain_moves does. `base` is the current
    value; `theirs` and `yours` are that value with the updates of the first and of the second batch
    that change the key."""
    report = _ConflictReport()
    for key in sorted(clashing)[:MAX_CLASHES]:
        first, second = (
            [update for update in batches[index].updates if update.key == key]
            for index in clashing[key][:2]
        )
        slot = slots.get(key)
        base = {"base": slot.held if slot else None}
        report.add(key, slot, base, {"theirs": first, "yours": second}, base_kept=True)
        report.conflicts[-1]["batches"] = list(clashing[key])
    return {"keys": sorted(clashing), "conflicts": report.conflicts}


class _ConflictReport:
    """Conflicts for the problem document. Their values have at most MAX_SHOWN characters in all."""

    def __init__(self) -> None:
        self.conflicts: list[dict[str, Any]] = []
        self.room = MAX_SHOWN

    def add(
        self,
        key: str,
        slot: Slot | None,
        sides: Mapping[str, str | None],
        side_updates: Mapping[str, list[Update]],
        *,
        base_kept: bool,
    ) -> None:
        """Add a conflict. `sides` are values as JSON text. `side_updates` are applied to the base
        value to compute the other sides, if it is kept."""
        conflict: dict[str, Any] = {"key": key}
        self.conflicts.append(conflict)
        texts: dict[str, str | None] = dict(sides)
        requested: list[dict[str, Any]] = []
        if _size(texts) > self.room:
            return
        for side, updates in side_updates.items():
            try:
                if slot is None or not base_kept:
                    raise reducers.UpdateRefused("the base value is not known")
                texts[side] = _after(slot, updates, sides.get("base"))
            except (values.RefusedJSON, patches.PatchTestFailed, reducers.UpdateRefused):
                if side == "yours":
                    requested = [_show(update) for update in updates]
        size = _size(texts) + len(values.dump(requested))
        if size <= self.room:
            self.room -= size
            known_sides = {side: text for side, text in texts.items() if text is not None}
            conflict |= {side: values.load(text) for side, text in known_sides.items()}
            conflict |= {"updates": requested} if requested else {}


def _size(texts: Mapping[str, str | None]) -> int:
    return sum(len(text or "") for text in texts.values())


def _after(slot: Slot, updates: Sequence[Update], text: str | None) -> str | None:
    value = SlotValue(slot, text, Budget())
    for update in updates:
        if not update.clear:
            values.check(update.update)
        value.apply(update)
    return value.text


def _show(update: Update) -> dict[str, Any]:
    return {"clear": True} if update.clear else {"update": values.load(update.update.text)}


def _moved(thread: Thread, names: set[str], base: int) -> list[str]:
    """Return the keys that were changed after `base`, sorted. Reads revisions, because snapshot
    compaction removes values but not the rows of revisions."""
    since = Revision.objects.filter(
        thread=thread, number__gt=base, touched__overlap=sorted(names)
    ).values_list("touched", flat=True)
    return sorted(names & set().union(*since))


def _values_at(thread: Thread, keys: Sequence[str], base: int) -> dict[str, str] | None:
    """Return the JSON texts of the keys at a revision. None: the revision is not retained."""
    rows = StateValue.objects.filter(thread=thread, key__in=keys).at_revision(base)
    found = dict(rows.values_list("key", "value"))
    try:
        snapshots.check_kept(thread, base)  # after the read, as in snapshots.read_kept
    except (NotFound, Gone):
        return None
    return found


def _revisions(
    thread: Thread, keys: Sequence[str], base: int
) -> defaultdict[str, list[dict[str, Any]]]:
    """Return the newest retained revisions that changed each key after `base`."""
    moved = Q(valid_from__gt=base) | Q(valid_to__gt=base)
    rows = StateValue.objects.filter(moved, thread=thread, key__in=keys).order_by("-valid_from")
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for key, start, end in rows.values_list("key", "valid_from", "valid_to")[:_MAX_ROWS]:
        numbers[key].update(number for number in (start, end) if number and number > base)
    newest = {key: sorted(found, reverse=True)[:_MAX_REVISIONS] for key, found in numbers.items()}
    named = {number for found in newest.values() for number in found}
    revisions = {
        row.number: {
            "revision": row.number,
            "kind": row.kind,
            "run_id": row.run.public_id if row.run else None,
            "actor": row.actor_name,
        }
        for row in Revision.objects.filter(thread=thread, number__in=named).select_related("run")
    }
    by_key: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, found in newest.items():
        by_key[key] = [revisions[number] for number in found if number in revisions]
    return by_key
