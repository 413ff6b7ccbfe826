"""Moves of workspaces that are refused, and what the refusals say."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from state_admin.models import (
    Entry,
    Membership,
    MoveSide,
    MoveState,
    User,
    Workspace,
    WorkspaceMove,
    freezing_sql,
)
from state_admin.services import workspace_moves, workspace_transfers
from state_admin.services.errors import Conflict, Invalid, NotFound
from state_admin.services.workspace_moves import Mover, expect_workspace
from tests.builders import Person
from tests.services.moving import Cell, accepting, acme, cells, expect, mover_to, target

__all__ = ["acme", "cells", "target"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("cells")]


def test_run__differing_copy__stops_and_says_what_differs(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(target, "acme", "alice", "bob")
    original = workspace_transfers._copy_references

    def change(*args: Any) -> None:
        original(*args)
        with target.used(), transaction.atomic():
            freezing_sql.exempt()
            Entry.objects.filter(key="k3").update(value='{"n": 4}')

    monkeypatch.setattr(workspace_transfers, "_copy_references", change)
    with mover_to(target, "acme") as mover:
        with pytest.raises(
            Conflict,
            match="differs from the source: entries: 5 rows in the source, 5 in the target",
        ):
            mover.run()
        assert mover.read().states == (MoveState.FROZEN, MoveState.COPYING)
        mover.undo()
    assert accepting(target, acme) == (True, False)


def test_run__target_does_not_expect_it__says_what_to_do(acme: Person, target: Cell) -> None:
    with mover_to(target, "acme") as mover, pytest.raises(NotFound) as refused:
        mover.run()
    assert "--expect" in refused.value.hint
    assert accepting(target, acme) == (True, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell": "a"}, "both cells have the name a"),
        ({"secret": "other"}, "different values of SECRET_KEY"),
        ({"config": []}, "lacks the first key of CONFIG_SECRET_KEYS"),
    ],
)
def test_run__keys_of_the_target__must_open_the_secrets(
    acme: Person, target: Cell, change: dict[str, Any], message: str
) -> None:
    move = expect(target, "acme", "alice", "bob")
    with target.used():
        WorkspaceMove.objects.filter(pk=move.pk).update(keys=move.keys | change)
    with mover_to(target, "acme") as mover, pytest.raises(Invalid, match=message):
        mover.run()
    assert accepting(target, acme) == (True, False)


def test_run__missing_users_and_operator_tokens__are_named_before_the_freeze(
    acme: Person, target: Cell
) -> None:
    expect(target, "acme", "bob")
    with mover_to(target, "acme") as mover:
        with pytest.raises(Invalid, match="no users with these names: alice"):
            mover.run()
        with target.used():
            User.objects.create(username="alice")
        acme.workspace.tokens.update(operator=True)
        with pytest.raises(Invalid, match="operator token"):
            mover.run()
    assert not WorkspaceMove.objects.filter(side=MoveSide.SOURCE).exists()
    assert accepting(target, acme) == (True, False)


def test_run__workspace_changed_before_the_freeze__is_checked_again(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(target, "acme", "alice", "bob")
    freeze = workspace_moves.freeze

    def add_a_member(workspace_id: int, *rest: Any) -> None:
        Membership.objects.create(
            workspace_id=workspace_id, user=User.objects.create(username="late")
        )
        freeze(workspace_id, *rest)

    monkeypatch.setattr(workspace_moves, "freeze", add_a_member)
    with mover_to(target, "acme") as mover:
        with pytest.raises(Invalid, match="no users with these names: late"):
            mover.run()
        assert mover.read().states == (MoveState.FROZEN, MoveState.EXPECTED)
        with target.used():
            assert not Entry.objects.exists()
            User.objects.create(username="late")
        mover.run()
    assert accepting(target, acme) == (False, True)


def test_run__name_taken_in_the_target__is_refused_before_the_freeze(
    acme: Person, target: Cell
) -> None:
    expect(target, "acme", "alice", "bob")
    with target.used():
        Workspace.objects.create(slug="acme", name="Acme")
    with mover_to(target, "acme") as mover, pytest.raises(Conflict, match="already has a work"):
        mover.run()
    assert not WorkspaceMove.objects.filter(side=MoveSide.SOURCE).exists()


def test_run__role_does_not_own_the_tables_of_the_target__is_refused_before_the_freeze(
    acme: Person, target: Cell
) -> None:
    expect(target, "acme", "alice", "bob")
    with target.used(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE ROLE mover; GRANT ALL ON ALL TABLES IN SCHEMA public TO mover;"
            "ALTER TABLE entries OWNER TO mover"
        )
    mover = Mover("acme", f"{target.url}&options=-c%20role%3Dmover")
    try:
        with pytest.raises(Invalid, match=r"role of the target does not own \d+ of the tables"):
            mover.run()
    finally:
        mover.close()
        with target.used(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE entries OWNER TO CURRENT_USER")
            cursor.execute("DROP OWNED BY mover; DROP ROLE mover")
    assert not WorkspaceMove.objects.filter(side=MoveSide.SOURCE).exists()


def test_run__same_database__is_refused(acme: Person, target: Cell) -> None:
    expect_workspace("elsewhere")
    mover = Mover("acme", target.source_url)
    try:
        with pytest.raises(Invalid, match="same database"):
            mover.run()
    finally:
        mover.close()


def test_expect__without_a_name_of_the_cell__is_refused(settings: Any) -> None:
    settings.CELL = ""
    with pytest.raises(Invalid, match="CELL is not set"):
        expect_workspace("acme")


def test_expect__existing_workspace__is_refused(acme: Person) -> None:
    with pytest.raises(Conflict, match="already exists"):
        expect_workspace("acme")
