"""The fields of a form generated from a JSON Schema, with their values and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from state_admin.domain.schema_forms import Field

_MOST_ROWS = 16


@dataclass(frozen=True)
class BoundField:
    """A field with its value and its error."""

    field: Field
    typed: str
    error: str = ""

    @property
    def chosen(self) -> list[str]:
        """The selected options of a field with several."""
        return self.typed.split("\n")

    @property
    def rows(self) -> int:
        """The height of a textarea in lines, by its content."""
        least = 3 if self.field.kind == "lines" else 2
        return max(least, min(_MOST_ROWS, self.typed.count("\n") + 1 + len(self.typed) // 100))


def read_typed(post: QueryDict, fields: Sequence[Field]) -> dict[str, str]:
    """The typed values by field name; several selected options are separated by newlines."""
    return {field.name: "\n".join(post.getlist(f"answer{field.name}")) for field in fields}


def bind_fields(
    fields: Sequence[Field], typed: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> list[BoundField]:
    at = errors or {}
    return [BoundField(field, typed[field.name], at.get(field.name, "")) for field in fields]
