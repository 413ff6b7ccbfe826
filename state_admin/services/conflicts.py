"""Explains a lost race for an entry: the common base, theirs, yours, and what truly clashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state_admin.domain import diffs, values
from state_admin.domain.access import Actor
from state_admin.domain.diffs import Clash
from state_admin.domain.places import MISSING
from state_admin.domain.values import JSON, Raw
from state_admin.models import EntryRevision

# Beyond this many bytes in all, the values are left out: the versions tell where to read them.
MAX_SHOWN = 256 * 1024
MAX_CLASHES = 100


@dataclass(frozen=True)
class Collision:
    """Two writers started from one base. `clashes` is empty when their changes can be joined to
    `merged`; `shown` are the members of the problem that tells the loser."""

    merged: JSON
    clashes: list[Clash]
    shown: dict[str, Any]


def explain(
    actor: Actor, namespace: str, key: str, expected: int, theirs: str | None, yours: Raw | None
) -> Collision | None:
    """Compare both with the version that the writer had read. None: that version is not known
    (read_base), so nothing can be said."""
    base = read_base(actor, namespace, key, expected)
    return None if base is None else compare(base, theirs, yours.text if yours else None)


def read_base(actor: Actor, namespace: str, key: str, version: int) -> str | None:
    """The value at a version, as JSON text. None: it never was, held no value, was compacted away
    or redacted."""
    rows = EntryRevision.objects.visible_to(actor).of_key(namespace, key)
    held = rows.filter(version=version, redacted_at=None).values_list("value", flat=True)
    return held.first() if version else None


def compare(base: str, theirs: str | None, yours: str | None) -> Collision:
    """Both as JSON text; None where the writer deletes. A value is never joined with a deletion."""
    before, stored, wanted = (
        MISSING if text is None else values.load(text) for text in (base, theirs, yours)
    )
    merged, clashes = diffs.three_way(before, stored, wanted)
    if theirs is None and yours is not None:
        clashes = [Clash("", before, None, wanted, ("theirs",))]
    sides = show_sides(base=base, theirs=theirs, yours=yours)
    shown = {
        "mergeable": not clashes,
        "clashes": [
            _show(clash) if sides else {"pointer": clash.pointer} for clash in clashes[:MAX_CLASHES]
        ],
    }
    return Collision(merged, clashes, shown | sides)


def show_sides(**texts: str | None) -> dict[str, Any]:
    """The values that are there, unless they are too long for an answer."""
    there = {side: text for side, text in texts.items() if text is not None}
    if sum(map(len, there.values())) > MAX_SHOWN:
        return {}
    return {side: values.load(text) for side, text in there.items()}


def _show(clash: Clash) -> dict[str, Any]:
    sides = {"base": clash.base, "theirs": clash.theirs, "yours": clash.yours}
    return {"pointer": clash.pointer, **{k: v for k, v in sides.items() if k not in clash.absent}}
