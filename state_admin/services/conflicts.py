"""Explains a lost race for an entry: the common base, theirs, yours, and what truly clashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state_admin.domain import diffs, values
from state_admin.domain.access import Actor
from state_admin.domain.diffs import Clash
from state_admin.domain.values import JSON, Raw
from state_admin.models import EntryRevision

# Beyond this many bytes in all, the values are left out: the versions tell where to read them.
MAX_SHOWN = 256 * 1024
MAX_CLASHES = 100


@dataclass(frozen=True)
class Collision:
    """Two writers started from `base`. `clashes` is empty when their changes can be joined to
    `merged`; `shown` are the members of the problem that tells the loser."""

    merged: JSON
    clashes: list[Clash]
    shown: dict[str, Any]


def explain(
    actor: Actor, namespace: str, key: str, expected: int, theirs: str, yours: Raw
) -> Collision | None:
    """Compare both with the version that the writer had read. None: that version is not known
    (never was, held no value, was compacted away or redacted), so nothing can be said."""
    rows = EntryRevision.objects.visible_to(actor).of_key(namespace, key)
    found = rows.filter(version=expected, redacted_at=None).values_list("value", flat=True).first()
    if found is None:
        return None
    base, stored, wanted = values.load(found), values.load(theirs), values.load(yours.text)
    merged, clashes = diffs.three_way(base, stored, wanted)
    shown: dict[str, Any] = {
        "mergeable": not clashes,
        "clashes": [_show(clash) for clash in clashes[:MAX_CLASHES]],
    }
    if len(found) + len(theirs) + len(yours.text) <= MAX_SHOWN:
        shown |= {"base": base, "theirs": stored, "yours": wanted}
    else:
        shown["clashes"] = [{"pointer": clash.pointer} for clash in clashes[:MAX_CLASHES]]
    return Collision(merged, clashes, shown)


def _show(clash: Clash) -> dict[str, Any]:
    sides = {"base": clash.base, "theirs": clash.theirs, "yours": clash.yours}
    return {"pointer": clash.pointer, **{k: v for k, v in sides.items() if k not in clash.absent}}
