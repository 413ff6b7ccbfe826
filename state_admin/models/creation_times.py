"""Finds rows by creation time in tables without an index on it.

The ids of a workspace are in the order of time, so a range of time is a range of ids, which lists
have indexes on. Those of the whole table are not: an imported workspace keeps its times and gets new
ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from . import hot

Rows = TypeVar("Rows", bound=QuerySet[Any])

# The assumed maximum duration of a transaction that writes, by which ids and times may differ in order.
# IDLE_IN_TRANSACTION_TIMEOUT_MS cannot be longer.
OPEN = timedelta(minutes=1)

# Binary search over the ids of one owner, such as a workspace: about thirty lookups.
_ID_AT = """
WITH RECURSIVE probe(low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM {table} WHERE {owner}
    UNION ALL
    SELECT CASE WHEN r.at < %(moment)s THEN r.id + 1 ELSE low END,
        CASE WHEN r.at < %(moment)s THEN high ELSE (low + high) / 2 END
    FROM probe CROSS JOIN LATERAL (
        SELECT a.id, a.{column} AS at FROM {table} a
        WHERE {owner} AND a.id >= (low + high) / 2 ORDER BY a.id LIMIT 1
    ) r
    WHERE low < high
)
SELECT low FROM probe ORDER BY high - low LIMIT 1
"""


def id_at(model: type[Model], column: str, moment: datetime, owner: Mapping[str, int]) -> int:
    """About the id of the first row of an owner whose `column`, the time of creation, is `moment` or
    later: see OPEN. `owner`: the column and the number of the owner, which begin an index that
    continues with the id."""
    ((name, _),) = owner.items()
    statement = _ID_AT.format(
        table=model._meta.db_table, column=column, owner=f"{name} = %({name})s"
    )
    return int(hot.fetch_row(statement, {"moment": moment, **owner})[0])


def between(rows: Rows, column: str, after: datetime | None, before: datetime | None) -> Rows:
    """Those whose `column` is at `after` or later, and before `before`. None: no limit."""
    if after is not None:
        rows = rows.filter(**{f"{column}__gte": after})
    return rows if before is None else rows.filter(**{f"{column}__lt": before})


def within(
    rows: Rows,
    column: str,
    after: datetime | None,
    before: datetime | None,
    owner: Mapping[str, int],
) -> Rows:
    """As between, by a range of ids too: for tables whose rows keep the time of their insertion.
    `owner`: see id_at."""
    if after is not None:
        rows = rows.filter(pk__gte=id_at(rows.model, column, shift_moment(after, -OPEN), owner))
    if before is not None:
        rows = rows.filter(pk__lt=id_at(rows.model, column, shift_moment(before, OPEN), owner))
    return between(rows, column, after, before)


def shift_moment(moment: datetime, by: timedelta) -> datetime:
    """The time later by `by`, or the same one if there is no such time."""
    try:
        return moment + by
    except OverflowError:
        return moment
