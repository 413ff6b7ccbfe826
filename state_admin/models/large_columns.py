"""The columns that may have megabytes: JSON, and text without a limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, TypeVar

from django.db.models import BigIntegerField, Func, JSONField, Model, QuerySet, TextField

from .fields import RawJSON

_Rows = TypeVar("_Rows", bound=QuerySet[Any])


def stored_bytes_of(column: str) -> str:
    """Return the SQL for the bytes of the text of a column. The database reads only compressed values
    for it."""
    return (
        f"coalesce(CASE WHEN pg_column_compression({column}) IS NULL"
        f" THEN pg_column_size({column}) ELSE octet_length({column}::text) END, 0)"
    )


class StoredBytes(Func):
    """`stored_bytes_of` for querysets."""

    template = stored_bytes_of("%(expressions)s")
    arity = 1
    output_field = BigIntegerField()


def large_columns(rows: QuerySet[Any]) -> list[str]:
    """Return the large columns that `rows` reads, as lookups, those of related rows included."""
    names, deferred = rows.query.deferred_loading

    def of(model: type[Model], related: Any, path: str) -> Iterator[str]:
        for field in model._meta.concrete_fields:
            name = path + field.name
            if _is_large(field) and (name in names) != deferred:
                yield name
        for relation, further in related.items() if isinstance(related, dict) else ():
            target: Any = model._meta.get_field(relation).related_model
            yield from of(target, further, f"{path}{relation}__")

    return list(of(rows.model, rows.query.select_related, ""))


def _is_large(field: Any) -> bool:
    # Text with a collation of its own is a key or an id, which are short.
    text = isinstance(field, TextField) and not field.db_collation
    return text or isinstance(field, RawJSON | JSONField)


def stored_bytes(rows: QuerySet[Any]) -> Any:
    """Return the expression for the bytes of all large columns that `rows` reads."""
    return reduce(add, map(StoredBytes, large_columns(rows)))


def without_large(rows: _Rows) -> _Rows:
    """Return `rows` without their large columns."""
    return rows.defer(*large_columns(rows))


def without_related(rows: _Rows) -> _Rows:
    """Return `rows` without the large columns of related rows."""
    return rows.defer(*(name for name in large_columns(rows) if "__" in name))
