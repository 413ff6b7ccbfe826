"""Errors as they are logged: their type and place, never the values that their texts quote.

`duplicate key … Key (name)=(…) already exists`, `invalid literal for int(): …`, `KeyError: …`: the
text of an error may quote anything, so it is left out unless PostgreSQL wrote it about itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from os import strerror

import psycopg

# Classes of SQLSTATE whose texts are about the server, the connection or the transaction and not
# about data: connection, transaction state, authorization, unknown database, rollback, resources,
# object state, operator intervention, system error, internal error.
_ABOUT_THE_SERVER = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX")

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def describe_error(error: BaseException) -> str:
    """One line: the class of the error, and the parts of its text that contain no value."""
    name = type(error).__qualname__
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if isinstance(cause, psycopg.Error):
        return f"{name}{_describe_database_error(cause)}"
    if isinstance(error, OSError) and error.errno:
        return f"{name}: {strerror(error.errno)}"
    return name


def _describe_database_error(error: psycopg.Error) -> str:
    if error.sqlstate is None:  # raised by psycopg itself: about the connection, or about a value
        about_connection = isinstance(error, psycopg.OperationalError)
        return f": {_first_line(str(error))}" if about_connection and str(error) else ""
    places = {
        "SQLSTATE": error.sqlstate,
        "table": error.diag.table_name,
        "column": error.diag.column_name,
        "constraint": error.diag.constraint_name,
    }
    described = f" ({', '.join(f'{kind} {name}' for kind, name in places.items() if name)})"
    if error.sqlstate.startswith(_ABOUT_THE_SERVER) and error.diag.message_primary:
        described += f": {_first_line(error.diag.message_primary)}"
    return described


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def is_connection_lost(sqlstate: str | None) -> bool:
    """Whether an error with this SQLSTATE says that the connection was lost (class 08, or an error of
    psycopg, which has none) or closed by an operator (class 57P)."""
    return sqlstate is None or sqlstate.startswith(("08", "57P"))


def is_outage(error: BaseException) -> bool:
    """Whether an error says that PostgreSQL is not available, whatever the program did."""
    cause = error.__cause__
    return isinstance(cause, psycopg.OperationalError) and is_connection_lost(cause.sqlstate)


def format_traceback(error: BaseException) -> str:
    """Like Python's own traceback, with its causes, each error described by describe_error."""
    return "".join(_traceback_lines(error, set())).rstrip("\n")


def _traceback_lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    context = None if error.__suppress_context__ else error.__context__
    before = error.__cause__ or context
    if before is not None and id(before) not in seen:
        yield from _traceback_lines(before, seen)
        yield _CAUSE if error.__cause__ else _CONTEXT
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
    yield f"{describe_error(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            if id(each) not in seen:
                yield "\nIn the group:\n\n"
                yield from _traceback_lines(each, seen)
