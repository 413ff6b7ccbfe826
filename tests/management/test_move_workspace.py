"""The command move_workspace; the moves themselves are in tests/services/test_workspace_moves.py."""

from __future__ import annotations

import io
import os
import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from state_admin.models import User, workspace_moves_sql
from tests.builders import Person, make_namespace, put
from tests.project.running import free_port
from tests.services.moving import Cell, cells, target

__all__ = ["cells", "target"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("cells")]


def run(*arguments: str) -> list[str]:
    output = io.StringIO()
    call_command("move_workspace", *arguments, stdout=output)
    return output.getvalue().splitlines()


def test_command__each_option__does_its_step_and_prints_both_sides(
    alice: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    monkeypatch.setenv("MOVE_DATABASE_URL", target.url)
    with pytest.raises(CommandError, match=r"does not expect the workspace: acme\. Run there: "):
        run("acme")
    with target.used():
        User.objects.create(username="alice")
        assert run("acme", "--expect") == ["The cell b expects the workspace acme."]
    assert run("acme", "--status") == [
        "source: accepts writes",
        "target: waits for the workspace",
    ]
    with pytest.raises(CommandError, match="no move has begun: acme"):
        run("acme", "--resume")
    printed = run("acme")
    assert "entries: 1 rows" in printed
    moved = ["source: refers to the other cell", "target: serves the workspace"]
    assert printed[-2:] == run("acme", "--status") == run("acme", "--resume") == moved
    assert run("acme", "--undo")[-2:] == [
        "source: the move was undone",
        "target: the move was undone",
    ]
    with pytest.raises(CommandError, match="first run the command with --expect in the target"):
        run("acme")


def test_command__without_the_database_of_the_target__says_what_is_missing(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOVE_DATABASE_URL", raising=False)
    with pytest.raises(CommandError, match="MOVE_DATABASE_URL is not set"):
        run("acme")
    monkeypatch.setenv("MOVE_DATABASE_URL", "mysql://secret@host/name")
    with pytest.raises(CommandError, match="MOVE_DATABASE_URL is not a PostgreSQL URL") as refused:
        run("acme")
    assert "secret" not in str(refused.value)


def cut_connection() -> None:
    """End the connection as a server that is killed does."""
    connection.ensure_connection()
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


def end_backend() -> None:
    """End the connection as a server that is shut down does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (cut_connection, r"Cannot reach the database {name} at .*\. Check MOVE_DATABASE_URL\."),
        (
            end_backend,
            r"The database did not complete the command: OperationalError \(SQLSTATE 57P01\): .*",
        ),
    ],
)
def test_command__target_ends_during_the_copy__says_so_and_can_be_repeated(
    alice: Person,
    target: Cell,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[], None],
    reason: str,
) -> None:
    make_namespace(alice.actor, "notes")
    put(alice.actor, "notes", "a", 1)
    monkeypatch.setenv("MOVE_DATABASE_URL", target.url)
    with target.used():
        User.objects.create(username="alice")
        run("acme", "--expect")

    def store(*arguments: Any) -> None:
        fail()
        store_rows(*arguments)

    store_rows = workspace_moves_sql.store_rows
    with monkeypatch.context() as patch:
        patch.setattr(workspace_moves_sql, "store_rows", store)
        with pytest.raises(CommandError) as refused:
            run("acme")
    expected = reason.format(name=re.escape(target.name))
    assert re.fullmatch(
        rf"The target failed\. {expected} Then run the command again\.",
        str(refused.value),
    )
    assert run("acme")[-2:] == [
        "source: refers to the other cell",
        "target: serves the workspace",
    ]


def test_command__target_unreachable__names_it_and_not_the_source(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://me:secret@127.0.0.1:{free_port()}/target"
    monkeypatch.setenv("MOVE_DATABASE_URL", url)
    with pytest.raises(CommandError) as refused:
        run("acme")
    message = str(refused.value)
    assert message.startswith("Cannot reach the database target at 127.0.0.1:")
    assert message.endswith("Connection refused. Check MOVE_DATABASE_URL.")
    assert "secret" not in message
