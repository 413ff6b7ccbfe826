"""Two cells for tests of moves: the test database is the source, and another database of the same
server is the target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import (
    DEFAULT_DB_ALIAS,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from project import databases
from project.postgres.base import embedded
from project.postgres.server import PORT
from state_admin.models import User, Workspace, WorkspaceMove, freezing_sql
from state_admin.services.actors import actor_of_token
from state_admin.services.move_problems import WorkspaceMoved
from state_admin.services.workspace_moves import Mover, expect_workspace
from tests.builders import Person, make_namespace, put
from tests.emptying import empty_tables
from tests.services.workspace_copying import make_workspace

HERE, THERE = "a", "b"


class Cell:
    """The target: a database of its own, with the tables of the source."""

    def __init__(self, name: str) -> None:
        self._where: dict[str, Any] = {
            "host": str(embedded().socket_folder),
            "port": PORT,
            "user": "postgres",
        }
        self.name = name
        template = connection.settings_dict["NAME"]
        connections.close_all()
        self._execute(
            f"DROP DATABASE IF EXISTS {name}",
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            f" WHERE datname = '{template}'",
            f"CREATE DATABASE {name} TEMPLATE {template}",
        )
        self.url, self.source_url = (
            f"postgresql://postgres@/{each}?host={self._where['host']}&port={PORT}"
            for each in (name, template)
        )
        self.wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        entry = databases.from_url(self.url)
        self.wrapper.settings_dict = {**self.wrapper.settings_dict, "EMBEDDED": False, **entry}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let statements run on the target, with its settings."""
        source = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = self.wrapper
        try:
            with override_settings(CELL=THERE):
                yield
        finally:
            connections[DEFAULT_DB_ALIAS] = source

    def empty(self) -> None:
        with self.used():
            empty_tables()

    def drop(self) -> None:
        self.wrapper.close()
        self._execute(f"DROP DATABASE {self.name} WITH (FORCE)")

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(**self._where, dbname="postgres", autocommit=True) as server:
            for statement in statements:
                server.execute(statement.encode())


def expect(cell: Cell, slug: str, *users: str) -> WorkspaceMove:
    """Prepare the target, which has these users."""
    with cell.used():
        for name in users:
            User.objects.get_or_create(username=name)
        return expect_workspace(slug)


@contextmanager
def mover_to(cell: Cell, slug: str) -> Iterator[Mover]:
    mover = Mover(slug, cell.url)
    try:
        yield mover
    finally:
        mover.close()


def triggers() -> int:
    """How many tables refuse writes to frozen workspaces, in the current database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE tgname = 'refuse_frozen'")
        return int(cursor.fetchone()[0])


@pytest.fixture(scope="module")
def target(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Cell]:
    with django_db_blocker.unblock():
        cell = Cell(f"move_target_{os.getpid()}")
        try:
            yield cell
        finally:
            cell.drop()


@pytest.fixture
def cells(settings: Any, target: Cell) -> Iterator[None]:
    """Both cells have names. At the end, both are empty, and have no triggers."""
    settings.CELL = HERE
    target.empty()
    yield
    reset()
    with target.used():
        reset()
        empty_tables()


def reset() -> None:
    """Drop the triggers of the current database, whatever is frozen."""
    with transaction.atomic():
        freezing_sql.exempt()
        Workspace.objects.update(frozen_at=None)
        WorkspaceMove.objects.all().delete()
    freezing_sql.switch_off()


@pytest.fixture
def ann() -> Person:
    return make_workspace()


@pytest.fixture
def acme(alice: Person) -> Person:
    """A small workspace."""
    make_namespace(alice.actor, "notes")
    for number in range(5):
        put(alice.actor, "notes", f"k{number}", {"n": number})
    return alice


def accepts(person: Person) -> bool:
    """Whether the current cell accepts a write with the token. Nothing is stored."""
    try:
        with transaction.atomic():
            actor = actor_of_token(person.token)
            if actor is None:
                return False
            put(actor, "notes", "probe", {"n": 1})
            transaction.set_rollback(True)
            return True
    except WorkspaceMoved:
        return False
    except OperationalError as error:
        if not freezing_sql.is_refusal(error):
            raise
        return False


def accepting(target: Cell, person: Person) -> tuple[bool, bool]:
    """Whether the source and the target accept writes."""
    with target.used():
        there = accepts(person)
    return accepts(person), there
