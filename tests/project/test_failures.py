"""What is logged of an error: its class and place, and no value."""

from __future__ import annotations

import logging

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection

from project.failures import describe_error, format_traceback, is_outage
from project.logging import _omit_values
from state_admin.models import Workspace

CANARY = "canary"


def caught(statement: str) -> DatabaseError:
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as found:
        cursor.execute(statement)
    return found.value


def test_describe__values_in_the_text__are_left_out(db: None) -> None:
    Workspace.objects.create(slug=CANARY, name="x")
    with pytest.raises(IntegrityError) as duplicate:
        Workspace.objects.create(slug=CANARY, name="x")
    assert CANARY in str(duplicate.value)
    assert describe_error(duplicate.value) == (
        "IntegrityError (SQLSTATE 23505, table workspaces, constraint workspaces_slug_unique)"
    )


def test_describe__text_of_the_server_about_itself__is_kept(db: None) -> None:
    timeout = "SET LOCAL statement_timeout = 1; SELECT pg_sleep(9)"
    assert describe_error(caught(timeout)) == (
        "OperationalError (SQLSTATE 57014): canceling statement due to statement timeout"
    )


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (ValueError(CANARY), "ValueError"),
        (KeyError(CANARY), "KeyError"),
        (OSError(CANARY), "OSError"),
        (ConnectionRefusedError(111, CANARY), "ConnectionRefusedError: Connection refused"),
        (FileNotFoundError(2, "gone", CANARY), "FileNotFoundError: No such file or directory"),
        (OperationalError(CANARY), "OperationalError"),
    ],
)
def test_describe__other_errors__contain_their_class(error: BaseException, described: str) -> None:
    assert describe_error(error) == described


def chain() -> BaseException:
    try:
        try:
            int(CANARY)
        except ValueError as error:
            raise KeyError(CANARY) from error
    except KeyError:
        try:
            raise ExceptionGroup(CANARY, [RuntimeError(CANARY)])
        except ExceptionGroup as group:
            return group


def test_traceback__causes_contexts_and_groups__contain_places_and_classes() -> None:
    text = format_traceback(chain())
    for line in (
        "int(CANARY)",
        "\nValueError\n",
        "direct cause",
        "\nKeyError\n",
        "During handling",
        "\nExceptionGroup\n",
        "In the group:",
    ):
        assert line in text
    assert text.endswith("\nRuntimeError")
    assert CANARY not in text


def raised(cause: psycopg.Error) -> OperationalError:
    try:
        raise OperationalError from cause
    except OperationalError as error:
        return error


@pytest.mark.parametrize(
    ("cause", "outage"),
    [
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.QueryCanceled(), False),
        (psycopg.errors.DeadlockDetected(), False),
        (psycopg.errors.UniqueViolation(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_job__fails_in_an_outage_of_the_database__is_logged_without_traceback(
    cause: psycopg.Error, outage: bool
) -> None:
    error = raised(cause)
    assert is_outage(error) == outage
    info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("celery.app.trace", logging.ERROR, "", 0, "failed", None, info)
    event = _omit_values(None, "error", {"_record": record, "exc_info": info})
    assert event["event"] == "task.failed"
    assert ("exc_info" in event) != outage
    assert ("errors" in event) == outage
