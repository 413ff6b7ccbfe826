"""Reads the rows of a workspace by COPY, and writes them into another one.

An import first copies the file into temporary tables, in short transactions, and then inserts all rows
by statements of the server, in one transaction. The temporary tables assign the new numbers, so that
the rows can refer to each other in any order. The statements come from the rules in
workspace_tables.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

import psycopg
from django.db import DataError, connection
from django.db.migrations.recorder import MigrationRecorder

from state_admin.domain.workspace_files import Value

from . import hot
from .access import Membership
from .config import ConfigSecret
from .entries import Entry
from .workspace_tables import STAGING, TABLES, Column, Table
from .workspaces import Workspace

_LINE: Final = re.compile(r"COPY \w+, line (\d+)(?:, column (\w+))?")


class BadRow(Exception):
    """PostgreSQL refuses a value."""

    def __init__(self, line: int, cause: str) -> None:
        super().__init__(cause)
        self.line = line


class BrokenReference(NamedTuple):
    """A row of the file that refers to another one, which the file does not contain."""

    line: int
    column: str
    value: str


class StagedSecret(NamedTuple):
    """A secret of the config registry in the file; without `ciphertext` in a file without secrets."""

    entry_id: int
    pointer: str
    public_id: str
    ciphertext: bytes | None
    key_id: str
    set_at: datetime


_MEMBERS: Final = STAGING.format(Membership._meta.db_table)
_SECRETS: Final = f"""
SELECT e.new_id, x.pointer, x.public_id, x.ciphertext, x.key_id, x.set_at
FROM {STAGING.format(ConfigSecret._meta.db_table)} x
JOIN {STAGING.format(Entry._meta.db_table)} e ON e.id = x.entry_id
ORDER BY x.line
"""


def begin_copying() -> None:
    """Settings of the current transaction: no timeouts, and one text format for all servers."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL TimeZone = 'UTC'")
        cursor.execute("SET LOCAL DateStyle = 'ISO'")
        cursor.execute("SET LOCAL bytea_output = 'hex'")
        cursor.execute("SET LOCAL extra_float_digits = 1")


def list_migrations() -> set[str]:
    """The names of the migrations of this database; alphabetically, the newest is the last."""
    applied = MigrationRecorder(connection).applied_migrations()
    return {name for app, name in applied if app == "state_admin"}


def read_clock() -> int:
    """A number above the transaction ids of everything that the current snapshot contains."""
    return int(hot.fetch_row("SELECT pg_snapshot_xmax(feed_snapshot())::text::bigint", {})[0])


# Export ------------------------------------------------------------------------------------------


def count_rows(table: Table, workspace_id: int, *, secrets: bool) -> int:
    return int(hot.fetch_row(f"SELECT count(*) {rows_of(table, workspace_id, secrets)}", {})[0])


def read_rows(table: Table, workspace_id: int, *, secrets: bool) -> Iterator[Sequence[Value]]:
    """The rows of a table, one by one: the values of its fields."""
    exported = ", ".join(_exported(table, each, secrets) for each in table.fields)
    order = ", ".join(map(_own, table.order or _primary_key(table)))
    statement = (
        f"COPY (SELECT {exported} {rows_of(table, workspace_id, secrets)} ORDER BY {order})"
        " TO STDOUT"
    )
    with copy_out(statement) as rows:
        yield from rows


@contextmanager
def copy_out(statement: str, parameters: Sequence[str] = ()) -> Iterator[Iterator[Sequence[Value]]]:
    """The rows of a COPY TO STDOUT, which is closed at the end."""
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        # Not the wrapper of Django, which takes no parameters if DEBUG is on.
        cursor.cursor.copy(statement, parameters or None) as copy,
    ):
        yield copy.rows()


def _exported(table: Table, column: str, secrets: bool) -> str:
    rule = table.rule(column)
    if rule.secret and not secrets:
        return "NULL"
    return rule.exported or _own(column)


def _own(column: str) -> str:
    return f'x."{column}"'


def names_of(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def rows_of(table: Table, workspace_id: int, secrets: bool = True) -> str:
    """FROM and WHERE. The joins follow `table.owner`."""
    joins, row = "", "x"
    for model in table.owner:
        name = model._meta.model_name
        joins += f" JOIN {model._meta.db_table} {name} ON {name}.id = {row}.{name}_id"
        row = str(name)
    owner = "id" if table.model is Workspace else "workspace_id"
    hidden = " AND false" if table.secret and not secrets else ""
    return f"FROM {table.name} x{joins} WHERE {row}.{owner} = {workspace_id:d}{hidden}"


def _primary_key(table: Table) -> list[str]:
    return [str(each.column) for each in table.model._meta.pk_fields]


# Import ------------------------------------------------------------------------------------------


def create_staging(columns: Mapping[str, Sequence[str]]) -> None:
    """Create an empty temporary table for each table, with these columns of the file."""
    drop_staging()
    with connection.cursor() as cursor:
        for table in TABLES:
            read = ", ".join(
                f'{table.rule(name).exported or _own(name)} AS "{name}"'
                for name in columns.get(table.name, table.fields)
            )
            cursor.execute(
                f"CREATE TEMPORARY TABLE {table.staging} AS"
                f" SELECT {read} FROM {table.name} x WITH NO DATA"
            )
            cursor.execute(f"ALTER TABLE {table.staging} ADD line bigint")
            if table.numbered:
                cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table.name])
                (sequence,) = cursor.fetchone()
                cursor.execute(
                    f"ALTER TABLE {table.staging} ADD new_id bigint DEFAULT nextval(%s)",
                    [sequence],
                )


def drop_staging() -> None:
    names = ", ".join(f"pg_temp.{table.staging}" for table in TABLES)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {names}")


def stage_rows(
    table: Table, columns: Sequence[str], rows: Iterable[tuple[int, Sequence[Value]]]
) -> None:
    """Copy rows, with their lines in the file, into the temporary table. Raises BadRow."""
    lines: list[int] = []
    statement = f"COPY {table.staging} (line, {names_of(columns)}) FROM STDIN"
    try:
        with (
            connection.wrap_database_errors,
            connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            for line, values in rows:
                lines.append(line)
                copy.write_row((line, *values))
    except DataError as error:
        raise _bad_row(error, lines) from error


def _bad_row(error: DataError, lines: Sequence[int]) -> BadRow:
    """With the line of the file for that of the COPY, which PostgreSQL names."""
    cause = error.__cause__
    context = cause.diag.context or "" if isinstance(cause, psycopg.Error) else ""
    found = _LINE.search(context)
    line = lines[int(found[1]) - 1] if found else lines[-1]
    column = f"{found[2]}: " if found and found[2] else ""
    return BadRow(line, f"{column}{str(cause).splitlines()[0]}")


def index_staging() -> None:
    """Prepare the temporary tables for joins. To be called when all rows are in."""
    with connection.cursor() as cursor:
        for table in TABLES:
            if table.numbered:
                cursor.execute(f"CREATE UNIQUE INDEX ON {table.staging} (id)")
            if table.order:
                cursor.execute(f"CREATE INDEX ON {table.staging} ({names_of(table.order)})")
            cursor.execute(f"ANALYZE {table.staging}")


def find_broken_reference(table: Table) -> BrokenReference | None:
    for column, target in _references(table):
        rows = hot.fetch_all(
            f"SELECT x.line, x.{column}::text FROM {table.staging} x"
            f" LEFT JOIN {target} r ON r.id = x.{column}"
            f" WHERE x.{column} IS NOT NULL AND r.id IS NULL ORDER BY 1 LIMIT 1",
            {},
        )
        for line, value in rows:
            return BrokenReference(line, column, value)
    return None


def name_workspace(slug: str) -> int:
    """Set the name of the workspace in the temporary table; returns its new number."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {STAGING.format(Workspace._meta.db_table)} SET slug = %s RETURNING new_id",
            [slug],
        )
        return int(cursor.fetchone()[0])


def insert_rows(table: Table, columns: Sequence[str]) -> int:
    """Insert the rows of a temporary table into the table; returns their number. Columns that the
    file does not have get their default."""
    joins = "".join(
        f" LEFT JOIN {target} {column} ON {column}.id = x.{column}"
        for column, target in _references(table)
        if column in columns
    )
    imported: dict[str, str] = {}
    parameters: list[Any] = []
    for column, given in table.fields.items():
        if column in columns:
            imported[column] = _imported(column, table.rule(column))
        elif not given.has_db_default():
            imported[column] = f"%s::{given.db_type(connection)}"
            parameters.append(given.get_default())
    # Rows that this statement numbers need their order: COPY also fills gaps in earlier pages.
    order = " ORDER BY x.line" if "id" in table.columns else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table.name} ({names_of(imported)})"
            f" SELECT {', '.join(imported.values())} FROM {table.staging} x{joins}"
            f" WHERE {table.condition}{order}",
            parameters or None,
        )
        return int(cursor.rowcount)


def _imported(column: str, rule: Column) -> str:
    return rule.imported or (f"{column}.new_id" if rule.refers else _own(column))


def check_constraints() -> None:
    """Check foreign keys now, and not at the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def read_members() -> list[str]:
    """The names of the members in the temporary table."""
    rows = hot.fetch_all(f"SELECT user_id FROM {_MEMBERS} ORDER BY 1", {})
    return [name for (name,) in rows]


def read_secrets() -> list[StagedSecret]:
    """The secrets in the temporary table, with the new numbers of their entries."""
    return [StagedSecret._make(row) for row in hot.fetch_all(_SECRETS, {})]


def _references(table: Table) -> Iterator[tuple[str, str]]:
    """The columns that refer to rows of the file, and the temporary tables that they refer to."""
    for column in table.fields:
        if (target := table.rule(column).refers) is not None:
            yield column, STAGING.format(target._meta.db_table)
