"""The columns of the state browser: facts of the entries, and members of their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from state_admin.domain import values
from state_admin.domain.values import JSON
from state_admin.models.browsing import EntryText

from .tables import Column, member_column

FACTS: Final = (
    Column("value", "Value"),
    Column("state", "State"),
    Column("tags", "Tags"),
    Column("expires", "Expires"),
    Column("version", "Version", numeric=True),
    Column("size", "Size", numeric=True),
    Column("actor", "Written by"),
    Column("changed", "Changed"),
)
# Members that are shown by default, and offered, of a schema or of the values of a page.
_FIRST: Final = 3
_MOST_OFFERED: Final = 40
_SCALARS: Final = {"string", "number", "integer", "boolean", "null"}
_NUMBERS: Final = {"number", "integer"}


def default_columns(
    members: Sequence[Column], rows: Sequence[Mapping[str, JSON] | None], *, state: bool, tags: bool
) -> list[str]:
    """The columns of a list whose user has chosen none, with the states and the tags if an entry on the
    page has any, and with the values, unless the members show each of those in `rows` completely."""
    first = members[:_FIRST]
    names = {column.label for column in first}
    value = not (rows and all(row and _is_shown(row, names) for row in rows))
    facts = {"value": value, "state": state, "tags": tags, "changed": True}
    return [*(column.id for column in first), *(name for name, needed in facts.items() if needed)]


def _is_shown(row: Mapping[str, JSON], names: Set[str]) -> bool:
    return row.keys() <= names and all(_kind(member) in _SCALARS for member in row.values())


def columns_of_schema(schema: JSON) -> list[Column]:
    """A column for each scalar property of an object's schema."""
    parts = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(parts, dict):
        return []
    found = []
    for name, part in parts.items():
        kinds = kinds_of(part)
        if kinds and kinds <= _SCALARS:
            numeric = bool(kinds & _NUMBERS) and kinds <= _NUMBERS | {"null"}
            found.append(member_column(name, numeric=numeric))
    return found[:_MOST_OFFERED]


def kinds_of(part: Any) -> set[str]:
    """The JSON types that a schema names, or those of its constants; empty if it allows any."""
    if not isinstance(part, dict):
        return set()
    kinds = part.get("type", [])
    if kinds:
        return {kinds} if isinstance(kinds, str) else set(kinds)
    constants = part.get("enum", [part["const"]] if "const" in part else [])
    return {_kind(each) for each in constants}


def columns_of_values(rows: Sequence[Mapping[str, JSON]]) -> list[Column]:
    """A column for each member that is a scalar in at least one of the rows, most frequent first."""
    counts: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, member in row.items():
            kind = _kind(member)
            if kind in _SCALARS:
                counts[name] += 1
                kinds.setdefault(name, set()).add(kind)
    return [
        member_column(name, numeric="number" in kinds[name] and kinds[name] <= {"number", "null"})
        for name, _ in counts.most_common(_MOST_OFFERED)
    ]


def members_of(text: EntryText | None) -> Mapping[str, JSON] | None:
    """The members of a value that was read completely; None if it was not, and {} if it is not an
    object."""
    if text is None or text.text is None or not text.whole:
        return None
    value = values.load(text.text)
    return value if isinstance(value, dict) else {}


def _kind(value: JSON) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "object"
