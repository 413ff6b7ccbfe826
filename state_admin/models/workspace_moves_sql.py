"""Copies the rows of a workspace from one database to another, and compares both.

The rows keep everything but their numbers, which other rows of the target may have. All numbers of a
table grow by the same shift, so that the rows keep their order and refer to each other as before. The
statements come from the rules in workspace_tables.py.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from django.db import connection, models
from django.db.models.fields.related import ForeignKey

from state_admin.domain.workspace_files import Value

from . import hot
from .access import ApiToken, User
from .changes import Change
from .config import ConfigSecret
from .freezing_sql import BY_READS
from .idempotency import IdempotencyRecord
from .presence import Presence
from .reverts import Revert
from .search import SearchDocument, SearchPosition
from .webhooks import Webhook, WebhookDelivery
from .workspace_copies_sql import copy_out, names_of, rows_of
from .workspace_tables import REVERT_PROGRESS, TABLES, Table
from .workspaces import Workspace

# The primary key of a row in the source, and its values in the target.
Row = tuple[Sequence[str], Sequence[Value]]
# By the name of a table: the shift of the numbers of its rows.
Shifts = Mapping[str, int]

# The kinds of the audit rows and changes that a move writes. They exist in one cell only.
KINDS: Final = ("workspace.freeze", "workspace.move", "workspace.receive", "workspace.unfreeze")
# The tables to copy: first those that others refer to.
MOVED: Final = (*TABLES, Table(IdempotencyRecord))
# Columns that contain the number of a row of another model without a foreign key; 0 stays 0.
_NUMBERS: Final[Mapping[tuple[str, str], type[models.Model]]] = {
    (Webhook._meta.db_table, "place_id"): Change,
    (WebhookDelivery._meta.db_table, "change_id"): Change,
}
_USERS: Final = User._meta.db_table
_STAGING: Final = "moved_rows"
# Unused ids before a reserved range, for rows that other sessions insert at the same moment.
_MARGIN: Final = 10_000


class Digest(NamedTuple):
    """The rows of a table: their number, and sums of two hashes of their content."""

    rows: int
    first: str
    second: str


# Numbers -----------------------------------------------------------------------------------------


def read_range(table: Table, workspace_id: int) -> tuple[int, int] | None:
    """The lowest and the highest number of the rows of a workspace. None: it has no rows."""
    low, high = hot.fetch_row(f"SELECT min(x.id), max(x.id) {rows_of(table, workspace_id)}", {})
    return None if low is None else (low, high)


def reserve(table: Table, low: int, high: int) -> int:
    """Reserve numbers of a table for those from `low` to `high`: returns the shift. All new numbers are
    above `high`, so that an old one cannot be mistaken for a new one."""
    parameters = {"table": table.name, "high": high, "margin": _MARGIN, "length": high - low + 1}
    row = hot.fetch_row(
        """
        SELECT setval(s, greatest(nextval(s), %(high)s::bigint) + %(margin)s::bigint + %(length)s::bigint)
        FROM (SELECT pg_get_serial_sequence(%(table)s::text, 'id')::regclass AS s) sequence
        """,
        parameters,
    )
    return int(row[0]) - high


def reserve_workspace() -> int:
    """The number of a new workspace."""
    statement = "SELECT nextval(pg_get_serial_sequence('workspaces', 'id'))"
    return int(hot.fetch_row(statement, {})[0])


# Rows --------------------------------------------------------------------------------------------


def read_rows(
    table: Table, workspace_id: int, shifts: Shifts, cell: str, after: Sequence[str]
) -> Generator[Row]:
    """The rows after a primary key, in its order: each with its primary key here, and its values in the
    other cell. `cell`: where the copy says that the workspace is."""
    key = [f'x."{each.column}"' for each in table.model._meta.pk_fields]
    values = [_shifted(table, column, shifts, cell) for column in table.fields]
    condition, parameters = "", []
    if after:
        places = ", ".join("%s" for _ in key)
        condition = f" AND ({', '.join(key)}) > ({places})"
        parameters = list(after)
    statement = (
        f"COPY (SELECT {', '.join([*key, *values])} {rows_of(table, workspace_id)}{condition}"
        f" ORDER BY {', '.join(key)}) TO STDOUT"
    )
    with copy_out(statement, parameters) as rows:
        for row in rows:
            yield [str(each) for each in row[: len(key)]], row[len(key) :]


def store_rows(table: Table, rows: Sequence[Sequence[Value]]) -> None:
    """Insert rows of `read_rows` in the current transaction, which freezing_sql.exempt has prepared."""
    columns = table.fields
    users = [column for column in columns if _is_user(table, column)]
    target = table.name
    with connection.wrap_database_errors, connection.cursor() as cursor:
        if users:
            read = ", ".join(
                f"NULL::text AS {name}" if name in users else f'x."{name}"' for name in columns
            )
            cursor.execute(
                f"CREATE TEMPORARY TABLE {_STAGING} ON COMMIT DROP AS"
                f" SELECT {read} FROM {table.name} x WITH NO DATA"
            )
            target = _STAGING
        with cursor.copy(f"COPY {target} ({names_of(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        if users:
            values = ", ".join(
                f"(SELECT u.id FROM {_USERS} u WHERE u.username = x.{name})"
                if name in users
                else f'x."{name}"'
                for name in columns
            )
            cursor.execute(
                f"INSERT INTO {table.name} ({names_of(columns)}) SELECT {values} FROM {_STAGING} x"
            )


def later_references(table: Table) -> list[str]:
    """The foreign keys to rows that are copied after the row, or with it. They are NULL at first."""
    places = {each.model: place for place, each in enumerate(MOVED)}
    return [
        column
        for column, field in table.fields.items()
        if isinstance(field, ForeignKey)
        and getattr(field, "db_constraint", True)
        and field.related_model in places
        and places[field.related_model] >= places[table.model]
    ]


def read_references(table: Table, workspace_id: int, shifts: Shifts) -> Generator[Row]:
    """For each row with one: its number and its later references, as they are in the other cell."""
    columns = later_references(table)
    values = [f"x.{column} + {_shift_of(table, column, shifts)}" for column in columns]
    some = " OR ".join(f"x.{column} IS NOT NULL" for column in columns)
    own = f"x.id + {shifts.get(table.name, 0):d}"
    statement = (
        f"COPY (SELECT {', '.join([own, *values])} {rows_of(table, workspace_id)}"
        f" AND ({some}) ORDER BY x.id) TO STDOUT"
    )
    with copy_out(statement) as rows:
        for row in rows:
            yield [str(row[0])], row


def store_references(table: Table, rows: Sequence[Sequence[Value]]) -> None:
    """Set the references of `read_references`. Repeating it has no effect."""
    columns = later_references(table)
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE {_STAGING} ON COMMIT DROP AS"
            f" SELECT id, {names_of(columns)} FROM {table.name} WITH NO DATA"
        )
        with cursor.copy(f"COPY {_STAGING} (id, {names_of(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        changes = ", ".join(f"{column} = r.{column}" for column in columns)
        cursor.execute(f"UPDATE {table.name} x SET {changes} FROM {_STAGING} r WHERE r.id = x.id")


def _shifted(table: Table, column: str, shifts: Shifts, cell: str) -> str:
    """The SQL expression of a value in the other cell."""
    if table.model is Workspace and column == "moved_to":
        return f"'{cell}'"
    if column in later_references(table):
        return "NULL"
    return _moved(table, column, shifts)


def _moved(table: Table, column: str, shifts: Shifts) -> str:
    own = f'x."{column}"'
    if table.model is Revert and column == "actor_id":
        # The job writes with the permissions of its token. A user is found by name.
        shift = shifts.get(ApiToken._meta.db_table, 0)
        return f"CASE WHEN x.actor_kind = 'token' THEN ({own}::bigint + {shift:d})::text ELSE {own} END"
    if table.model is Revert and column == "progress":
        return REVERT_PROGRESS
    if _is_user(table, column):
        return f"(SELECT u.username FROM {_USERS} u WHERE u.id = {own})"
    if shift := _shift_of(table, column, shifts):
        if (table.name, column) in _NUMBERS:
            return f"CASE WHEN {own} > 0 THEN {own} + {shift:d} ELSE {own} END"
        return f"{own} + {shift:d}"
    return own


def _shift_of(table: Table, column: str, shifts: Shifts) -> int:
    field = table.fields[column]
    model: type[models.Model] | None = None
    if isinstance(field, models.AutoField):
        model = table.model
    elif isinstance(field, ForeignKey):
        model = field.related_model
    elif (table.name, column) in _NUMBERS:
        model = _NUMBERS[table.name, column]
    else:
        model = table.rule(column).refers
    return 0 if model is None else shifts.get(model._meta.db_table, 0)


def _is_user(table: Table, column: str) -> bool:
    field = table.fields[column]
    return isinstance(field, ForeignKey) and field.related_model is User


# Digests -----------------------------------------------------------------------------------------

# Columns that differ between the two sides.
_DIFFERENT: Final[Mapping[str, frozenset[str]]] = {
    Workspace._meta.db_table: frozenset({"frozen_at", "moved_to"}),
    # Encrypted for their place, which contains the number of the workspace.
    ConfigSecret._meta.db_table: frozenset({"ciphertext", "key_id"}),
    **BY_READS,
}


def read_digest(table: Table, workspace_id: int, shifts: Shifts | None = None) -> Digest:
    """The digest of the rows of a workspace. `shifts`: those with which they were copied here; the
    digest is that of the rows that they were copied from."""
    back = {name: -shift for name, shift in (shifts or {}).items()}
    excluded = _DIFFERENT.get(table.name, frozenset())
    values = [_moved(table, column, back) for column in table.fields if column not in excluded]
    own = ""
    if table.model is Change:
        own = f" AND x.kind NOT IN {KINDS}"
    elif table.name == "audit":
        own = f" AND x.action NOT IN {KINDS}"
    row = hot.fetch_row(
        "SELECT count(*), coalesce(sum(hashtextextended(r, 1)), 0)::text,"
        " coalesce(sum(hashtextextended(r, 2)), 0)::text"
        f" FROM (SELECT ROW({', '.join(values)})::text AS r"
        f" {rows_of(table, workspace_id)}{own}) x",
        {},
    )
    return Digest(*row)


# Deletion ----------------------------------------------------------------------------------------

# Not moved, and deleted with the workspace, before the rows that they belong to.
_DERIVED: Final = (
    f"FROM {SearchDocument._meta.db_table} x JOIN entries e ON e.id = x.entry_id"
    " JOIN namespaces n ON n.id = e.namespace_id WHERE n.workspace_id = {workspace:d}",
    f"FROM {SearchPosition._meta.db_table} x WHERE x.workspace_id = {{workspace:d}}",
    f"FROM {Presence._meta.db_table} x WHERE x.workspace_id = {{workspace:d}}",
    f"FROM rate_buckets x JOIN {ApiToken._meta.db_table} t ON t.id = x.token_id"
    " WHERE t.workspace_id = {workspace:d}",
    "FROM arrivals x WHERE x.workspace_id = {workspace:d}",
)


def clear_references(workspace_id: int, batch: int) -> int:
    """Remove references between rows that would otherwise have to be deleted together. Returns the
    number of rows, 0 at the end."""
    changed = 0
    for table in MOVED:
        if columns := later_references(table):
            nothing = ", ".join(f"{column} = NULL" for column in columns)
            some = " OR ".join(f"x.{column} IS NOT NULL" for column in columns)
            changed += _execute(
                f"UPDATE {table.name} SET {nothing} WHERE id IN (SELECT x.id"
                f" {rows_of(table, workspace_id)} AND ({some}) LIMIT {batch:d})"
            )
    return changed


def deletions(workspace_id: int) -> Iterator[str]:
    """The tables and rows to delete, in order: each a table, FROM and WHERE."""
    for derived in _DERIVED:
        yield derived.format(workspace=workspace_id)
    for table in reversed(MOVED):
        yield rows_of(table, workspace_id)


def delete_rows(rows: str, batch: int) -> int:
    """Delete up to `batch` of the rows of `deletions`; returns their number."""
    name = rows.split()[1]
    return _execute(
        f"DELETE FROM {name} WHERE ctid = ANY(ARRAY(SELECT x.ctid {rows} LIMIT {batch:d}))"
    )


def _execute(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.rowcount)
