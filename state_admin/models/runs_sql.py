"""The hot statement of a run: locking it with its thread, with which every write to a run begins.

The ORM takes longer to compose this statement than PostgreSQL to execute it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, models

from . import hot
from .fields import RawJSON
from .runs import Run
from .threads import Thread

_M = TypeVar("_M", bound=models.Model)

# Locks the thread before the run, as all statements on threads do.
_LOCK = """
SELECT {columns}, statement_timestamp()
FROM runs r JOIN threads t ON t.id = r.thread_id
WHERE r.workspace_id = %(workspace)s AND r.public_id = %(run)s
    AND (%(prefixes)s::text[] = '{{}}' OR EXISTS (
        SELECT FROM unnest(%(prefixes)s::text[]) AS p(prefix) WHERE starts_with(t.public_id, p.prefix)
    ))
FOR NO KEY UPDATE OF t, r
"""


# Skips runs that another transaction has locked, instead of waiting.
_LOCK_FREE = """
SELECT {columns}, statement_timestamp(), now(), x.place
FROM unnest(%(place)b::int[], %(workspace)b::bigint[], %(run)b::text[]) AS x(place, workspace, run)
JOIN runs r ON r.workspace_id = x.workspace AND r.public_id = x.run
JOIN threads t ON t.id = r.thread_id
FOR NO KEY UPDATE OF t, r SKIP LOCKED
"""


def lock(*, workspace_id: int, run_id: str, prefixes: Sequence[str]) -> Run | None:
    """The run with its thread, both rows locked, with `read_at` (RunQuerySet.timed). None if it
    does not exist, or if `prefixes` is not empty and its thread's id has none of them."""
    parameters = {"workspace": workspace_id, "run": run_id, "prefixes": list(prefixes)}
    row = hot.fetch_one(_with_columns(_LOCK), parameters)
    return None if row is None else _read(row)


def locking(addresses: hot.Addresses) -> hot.Call:
    """The statement that locks runs with their threads, except those that another transaction has
    locked. `locked` reads its rows."""
    return _with_columns(_LOCK_FREE), hot.columns_of(addresses)


def locked(rows: Sequence[hot.Row]) -> Iterator[tuple[int, Run, datetime]]:
    """The place of each run, the run as `lock` returns it, and when the transaction began."""
    for row in rows:
        yield row[-1], _read(row[:-2]), row[-2]


def _read(row: Sequence[Any]) -> Run:
    of_run = len(_fields(Run))
    run = _build(Run, row[:of_run])
    run.thread = _build(Thread, row[of_run:-1])
    run.read_at = row[-1]
    return run


@cache
def _with_columns(statement: str) -> str:
    columns = [_column("r", field) for field in _fields(Run)]
    columns += [_column("t", field) for field in _fields(Thread)]
    return statement.format(columns=", ".join(columns))


def _column(table: str, field: models.Field[Any, Any]) -> str:
    as_text = "::text" if isinstance(field, (RawJSON, models.JSONField)) else ""
    return f"{table}.{field.column}{as_text}"


def _build(model: type[_M], row: Sequence[Any]) -> _M:
    fields = _fields(model)
    held = [
        json.loads(value) if value is not None and isinstance(field, models.JSONField) else value
        for field, value in zip(fields, row, strict=True)
    ]
    return model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in fields], held)


def _fields(model: type[models.Model]) -> Sequence[models.Field[Any, Any]]:
    return model._meta.concrete_fields
