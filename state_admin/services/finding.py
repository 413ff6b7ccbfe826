"""Finds one row of a table for a verb."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from .errors import NotFound

_Row = TypeVar("_Row", bound=Model)


def find_row(rows: QuerySet[_Row, _Row], noun: str, **identity: Any) -> _Row:
    """The row with this identity, a lookup and its value. Raises NotFound with the noun and the
    value."""
    row = rows.filter(**identity).first()
    if row is None:
        (value,) = identity.values()
        raise NotFound(f"{noun} not found: {value}")
    return row
