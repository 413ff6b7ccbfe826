"""Explains a version conflict of an entry: the common base, both sides, and their clashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from state_admin.domain import three_way, values
from state_admin.domain.access import Actor
from state_admin.domain.three_way import Clash
from state_admin.domain.values import JSON, MISSING
from state_admin.models import EntryRevision

from .namespaces import Definition, find_definition

if TYPE_CHECKING:
    from .entry_views import EntryView

# If the values have more characters than this in all, they are omitted. Clients can read them by
# version.
MAX_SHOWN = 256 * 1024
MAX_CLASHES = 100


@dataclass(frozen=True)
class ConflictSides:
    """A write whose version is stale, and the sides of the conflict, as JSON text.

    `base` is the value at the version that the writer had read. None: it was compacted or redacted,
    or never existed, so the sides cannot be merged. `yours` is the value to write; None: a
    deletion. `clashes` is empty if the changes of both sides can be merged to `merged`.
    """

    base: str | None
    current: EntryView
    yours: str | None
    merged: JSON
    clashes: Sequence[Clash]

    @property
    def theirs(self) -> str | None:
        """The current value; None: deleted."""
        return self.current.value if self.current.exists else None

    @property
    def mergeable(self) -> bool:
        return self.base is not None and not self.clashes

    def members(self) -> dict[str, Any]:
        """The members of the problem document."""
        sides = show_sides(base=self.base, theirs=self.theirs, yours=self.yours)
        members: dict[str, Any] = {"mergeable": self.mergeable, **sides}
        if self.base is not None:
            members["clashes"] = [
                _show(clash, with_values=bool(sides)) for clash in self.clashes[:MAX_CLASHES]
            ]
        return members


def collide(
    actor: Actor, definition: Definition, current: EntryView, expected: int, yours: str | None
) -> ConflictSides:
    """Return the conflict between a write that expects the version `expected` and the current
    entry."""
    return compare(read_base(actor, definition, current.key, expected), current, yours)


def read_base(actor: Actor, definition: Definition, key: str, version: int) -> str | None:
    """Return the value at a version as JSON text; the default for version 0. None: the version was
    deleted, compacted or redacted, or never existed."""
    if version == 0:  # the cached definition may have an old default
        return find_definition(actor, definition.name, fresh=True).default
    rows = EntryRevision.objects.visible_to(actor).of_key(definition.name, key)
    texts = rows.filter(version=version, redacted_at=None).values_list("value", flat=True)
    return texts.first()


def compare(base: str | None, current: EntryView, yours: str | None) -> ConflictSides:
    """Compare the sides. A value is never merged with a deletion."""
    theirs = current.value if current.exists else None
    if base is None:
        return ConflictSides(base, current, yours, None, ())
    before, stored, requested = (
        MISSING if text is None else values.load(text) for text in (base, theirs, yours)
    )
    merged, clashes = three_way.merge(before, stored, requested)
    if theirs is None and yours is not None:
        merged, clashes = requested, [Clash("", before, None, requested, ("theirs",))]
    return ConflictSides(base, current, yours, merged, clashes)


def show_sides(**texts: str | None) -> dict[str, Any]:
    """Return the parsed values that exist, or {} if they exceed MAX_SHOWN characters."""
    existing = {side: text for side, text in texts.items() if text is not None}
    if sum(map(len, existing.values())) > MAX_SHOWN:
        return {}
    return {side: values.load(text) for side, text in existing.items()}


def _show(clash: Clash, *, with_values: bool) -> dict[str, Any]:
    sides = {"base": clash.base, "theirs": clash.theirs, "yours": clash.yours}
    return {
        "pointer": clash.pointer,
        **({"pointers": clash.pointers} if clash.pointers else {}),
        **{side: v for side, v in sides.items() if with_values and side not in clash.absent},
    }
