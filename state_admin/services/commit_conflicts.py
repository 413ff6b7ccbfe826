"""Explains a refused commit, key by key: the base, what stands now, what it would have made of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    """The members of a revision conflict: `keys` that the commit touches and others have moved
    since `base`; `conflicts` tells of each

    `base`, `theirs`, `yours`: its value at the base, now, and what the commit would have made of
    the base, each left out where the key is absent; `updates`, what the commit asked for, instead
    of a `yours` that cannot be told; `revisions` that moved it, newest first, as far as kept.

    `base_kept` false: that revision was compacted away, so no `base` is known. Beyond MAX_SHOWN
    bytes in all a conflict goes without its values.
    """
    keys = _moved(thread, {update.key for update in updates}, base)
    told = keys[:MAX_CLASHES]
    if not told:
        return {"keys": [], "conflicts": []}
    old = _values_at(thread, told, base)
    revisions = _revisions(thread, told, base)
    shown = _ConflictReport()
    for key in told:
        mine = [update for update in updates if update.key == key]
        slot = slots.get(key)
        sides = {"theirs": slot.held if slot else None}
        if old is not None:
            sides["base"] = old.get(key)
        shown.add(key, slot, sides, {"yours": mine}, known=old is not None)
        shown.conflicts[-1]["revisions"] = revisions[key]
    return {"keys": keys, "base_kept": old is not None, "conflicts": shown.conflicts}


def explain_branches(
    batches: Sequence[Batch], clashing: Mapping[str, Sequence[int]], slots: Mapping[str, Slot]
) -> dict[str, Any]:
    """The members of a parallel merge conflict, as explain_moves has them: `base` is the value now,
    `theirs` what the first of the `batches` that touch the key makes of it, `yours` the second."""
    shown = _ConflictReport()
    for key in sorted(clashing)[:MAX_CLASHES]:
        first, second = (
            [update for update in batches[place].updates if update.key == key]
            for place in clashing[key][:2]
        )
        slot = slots.get(key)
        base = {"base": slot.held if slot else None}
        shown.add(key, slot, base, {"theirs": first, "yours": second}, known=True)
        shown.conflicts[-1]["batches"] = list(clashing[key])
    return {"keys": sorted(clashing), "conflicts": shown.conflicts}


class _ConflictReport:
    """Conflicts as they are told, within the bytes that all of them may take."""

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
        known: bool,
    ) -> None:
        """`sides` are texts, `side_updates` the updates of a side, applied to the base if it is known."""
        told: dict[str, Any] = {"key": key}
        self.conflicts.append(told)
        texts: dict[str, str | None] = dict(sides)
        asked: list[dict[str, Any]] = []
        if _size(texts) > self.room:
            return
        for side, updates in side_updates.items():
            try:
                if slot is None or not known:
                    raise reducers.UpdateRefused("the base value is not known")
                texts[side] = _after(slot, updates, sides.get("base"))
            except (values.RefusedJSON, patches.PatchTestFailed, reducers.UpdateRefused):
                if side == "yours":
                    asked = [_show(update) for update in updates]
        size = _size(texts) + len(values.dump(asked))
        if size <= self.room:
            self.room -= size
            told |= {side: values.load(text) for side, text in texts.items() if text is not None}
            told |= {"updates": asked} if asked else {}


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
    """Which of the keys were touched since `base`. Asked of the revisions, which stay when snapshot
    compaction takes the values."""
    since = Revision.objects.filter(
        thread=thread, number__gt=base, touched__overlap=sorted(names)
    ).values_list("touched", flat=True)
    return sorted(names & set().union(*since))


def _moves(thread: Thread, names: Iterable[str], base: int) -> Any:
    moved = Q(valid_from__gt=base) | Q(valid_to__gt=base)
    return StateValue.objects.filter(moved, thread=thread, key__in=names)


def _values_at(thread: Thread, keys: Sequence[str], base: int) -> dict[str, str] | None:
    """The texts of the keys at a revision; None when it is not kept."""
    rows = StateValue.objects.filter(thread=thread, key__in=keys).at_revision(base)
    found = dict(rows.values_list("key", "value"))
    try:
        snapshots.check_kept(thread, base)  # behind the read, as in snapshots.read_kept
    except (NotFound, Gone):
        return None
    return found


def _revisions(
    thread: Thread, keys: Sequence[str], base: int
) -> defaultdict[str, list[dict[str, Any]]]:
    """Who moved each key since `base`: the newest revisions of each."""
    rows = _moves(thread, keys, base).order_by("-valid_from")
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for key, start, end in rows.values_list("key", "valid_from", "valid_to")[:_MAX_ROWS]:
        numbers[key].update(number for number in (start, end) if number and number > base)
    newest = {key: sorted(found, reverse=True)[:_MAX_REVISIONS] for key, found in numbers.items()}
    named = {number for found in newest.values() for number in found}
    known = {
        row.number: {
            "revision": row.number,
            "kind": row.kind,
            "run_id": row.run.public_id if row.run else None,
            "actor": row.actor_name,
        }
        for row in Revision.objects.filter(thread=thread, number__in=named).select_related("run")
    }
    told: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, found in newest.items():
        told[key] = [known[number] for number in found if number in known]
    return told
