"""Entries that do not match the schema of their namespace.

Only entries that were written under another schema version can be invalid. They are validated here,
because most of them match the current schema as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from state_admin.domain import values
from state_admin.domain.access import Actor
from state_admin.models.browsing import EntryFilter, NamespaceSize, entry_page
from state_admin.services.namespaces import find_definition

# Entries that are read to find those of another schema version.
_WINDOW = 1000


@dataclass(frozen=True)
class InvalidEntries:
    """The keys of invalid entries with their first error, and how many entries were validated.
    `complete`: every entry of another schema version that was counted has been validated."""

    errors: list[tuple[str, str]] = field(default_factory=list)
    examined: int = 0
    complete: bool = True

    @property
    def count(self) -> str:
        """The number as text: "3", or "3+" if not all entries were validated."""
        return f"{len(self.errors):,}{'' if self.complete else '+'}"

    @property
    def label(self) -> str:
        return f"{self.count} invalid"


def find_invalid(
    actor: Actor, sizes: Mapping[str, NamespaceSize], most: int
) -> dict[str, InvalidEntries]:
    """The invalid entries of registered namespaces, by name. Validates at most `most` entries in
    all."""
    found = {}
    for name, size in sizes.items():
        lines = []
        if size.stale and most:
            stale = EntryFilter(name, stale=True)
            lines = entry_page(actor, stale, limit=min(most, size.stale), window=_WINDOW)
        most -= len(lines)
        validator = find_definition(actor, name, fresh=True).validator if lines else None
        errors = [
            (line.key, str(faults[0]))
            for line in lines
            if validator and (faults := validator.faults(values.load(line.value or "null"), 1))
        ]
        found[name] = InvalidEntries(errors, len(lines), complete=size.stale <= len(lines))
    return found
