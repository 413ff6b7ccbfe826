"""Moves of workspaces between two databases: each step, and a crash between any two."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from state_admin.domain.access import Role
from state_admin.models import (
    ApiToken,
    AuditRow,
    ConfigSecret,
    Entry,
    Membership,
    MoveState,
    User,
    Webhook,
    Workspace,
    feed_sql,
    freezing_sql,
    workspace_moves_sql,
)
from state_admin.models.feed_eras import begin_era
from state_admin.models.feed_sql import FeedFilter, Position
from state_admin.models.workspace_moves_sql import KINDS, MOVED
from state_admin.services import (
    config_secrets,
    indexing,
    users,
    webhook_secrets,
    workspace_moves,
    workspace_transfers,
)
from state_admin.services.actors import system_actor
from state_admin.services.errors import Conflict
from state_admin.services.workspace_moves import Mover, expect_workspace
from state_admin.streams import cursors
from tests.builders import Person, make_namespace, make_person, put
from tests.feeding import wait_for_feed
from tests.services.moving import (
    THERE,
    Cell,
    accepting,
    acme,
    ann,
    cells,
    expect,
    mover_to,
    target,
    triggers,
)
from tests.services.racing import race, split
from tests.services.workspace_copying import digests, export, portable_rows

__all__ = ["acme", "ann", "cells", "target"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("cells"),
    pytest.mark.timeout(1800),
]

SLUG = "demo"
_DAY = timedelta(days=1)
# What a move does in this order: each is a transaction.
STEPS = ("freeze", "begin", "copy", "switch", "open")


class Crash(Exception):
    """The process of a move ends here."""


def crash_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Let the next run end after so many steps."""
    proper = Mover._next_step
    left = [steps]

    def next_step(self: Mover, sides: Any) -> Any:
        if not left[0]:
            raise Crash
        left[0] -= 1
        return proper(self, sides)

    monkeypatch.setattr(Mover, "_next_step", next_step)


def run_until(
    target: Cell, slug: str, monkeypatch: pytest.MonkeyPatch, steps: int, *users: str
) -> None:
    """Begin a move, and let it crash after so many steps."""
    expect(target, slug, *users)
    with monkeypatch.context() as patch, mover_to(target, slug) as mover:
        crash_after(patch, steps)
        with pytest.raises(Crash):
            mover.run()


def tokens_of(workspace_id: int) -> list[tuple[str, str, str]]:
    rows = ApiToken.objects.filter(workspace_id=workspace_id).order_by("pk")
    return list(rows.values_list("lookup", "digest", "role"))


def rows_of_target() -> dict[str, int]:
    """The rows in the current cell, by table."""
    found = {table.name: table.model._base_manager.count() for table in MOVED}
    return {name: count for name, count in found.items() if count}


def comparable(slug: str) -> Mapping[str, Any]:
    """The rows of a workspace without what the move itself has written."""
    found = dict(portable_rows(export(slug, secrets=True)))
    found["changes"] = [row for row in found["changes"] if row["kind"] not in KINDS]
    found["audit"] = [row for row in found["audit"] if row["action"] not in KINDS]
    for row in found["workspaces"]:
        row.pop("frozen_at", None)
    for row in found["config_secrets"]:
        row.pop("ciphertext", None)
    for row in found["api_tokens"]:
        row.pop("last_used_at", None)
    # Positions in the feed that are not rows: compared below, by what they are followed by.
    for table in ("webhooks", "webhook_deliveries"):
        for row in found[table]:
            row.pop("place_id", None)
            row.pop("change_id", None)
    return found


def keys_after(workspace_id: int, cursor: str | None) -> list[tuple[str, str, int]]:
    """What a reader of the feed gets after a cursor, without what the move has written."""
    actor = system_actor(workspace_id, "reader")
    end = feed_sql.read_end(workspace_id)
    after = Position() if cursor is None else cursors.resume(cursor, end, _DAY)
    rows = feed_sql.read_page(
        actor, after=after, until=end.position, filters=FeedFilter(), limit=10_000
    )
    return [(row.kind, row.key, row.version) for row in rows if row.kind not in KINDS]


def all_cursors(workspace_id: int) -> list[str]:
    """The cursors after each change."""
    end = feed_sql.read_end(workspace_id)
    rows = feed_sql.read_page(
        system_actor(workspace_id, "reader"),
        after=Position(),
        until=end.position,
        filters=FeedFilter(),
        limit=10_000,
    )
    return [cursors.seal(row.position, row.at) for row in rows]


# The whole move ------------------------------------------------------------------------------


def test_run__every_table__is_equal_in_the_target(ann: Person, target: Cell) -> None:
    with target.used():
        other = make_person("carol", "other", Role.ADMIN)
        make_namespace(other.actor, "notes")
        put(other.actor, "notes", "k", {"n": 1})
    before = comparable(SLUG)
    expect(target, SLUG, "ann", "demo")
    with mover_to(target, SLUG) as mover:
        sides = mover.run()
    assert sides.states == (MoveState.MOVED, MoveState.OPEN)
    assert comparable(SLUG) == before
    own = digests(SLUG)
    with target.used():
        assert comparable(SLUG) == before
        assert digests(SLUG) == own
        assert triggers() == 0
        workspace = Workspace.objects.get(slug=SLUG)
        assert (workspace.frozen_at, workspace.moved_to) == (None, THERE)
        assert Entry.objects.get(namespace__workspace=other.workspace).version == 1
    assert Workspace.objects.get(slug=SLUG).moved_to == THERE


def test_run__secrets_and_tokens__work_in_the_target(ann: Person, target: Cell) -> None:
    plain = {row.pointer: config_secrets.open_secret(row) for row in ConfigSecret.objects.all()}
    hook = Webhook.objects.get(name="hook")
    signing = webhook_secrets.live_secrets(hook.pk)
    assert plain
    assert signing
    expect(target, SLUG, "ann", "demo")
    with mover_to(target, SLUG) as mover:
        mover.run()
    before = tokens_of(ann.workspace.pk)
    with target.used():
        assert plain == {
            row.pointer: config_secrets.open_secret(row) for row in ConfigSecret.objects.all()
        }
        moved = Webhook.objects.get(name="hook")
        assert moved.status == hook.status
        assert webhook_secrets.live_secrets(moved.pk) == signing
        workspace = Workspace.objects.get(slug=SLUG)
        assert tokens_of(workspace.pk) == before


def test_run__members__unused_login_links_of_the_target_stop_working(
    acme: Person, target: Cell
) -> None:
    """Admins of workspaces of the target may have them."""
    expect(target, "acme", "alice", "bob", "carol")
    with target.used():
        links = {user.username: users.make_login_link(user) for user in User.objects.all()}
    with mover_to(target, "acme") as mover:
        mover.run()
    with target.used():
        working = {name for name, link in links.items() if users.use_login_link(link)}
        members = set(Membership.objects.values_list("user__username", flat=True))
        assert "alice" in members
        assert working == links.keys() - members


def test_run__audit__has_a_row_of_each_step_on_both_sides(acme: Person, target: Cell) -> None:
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()

    def steps() -> list[tuple[str, str, str]]:
        rows = AuditRow.objects.filter(action__in=KINDS).order_by("pk")
        return [(row.action, row.actor_name, row.detail["to"]) for row in rows]

    assert steps() == [
        ("workspace.freeze", "operator", THERE),
        ("workspace.move", "operator", THERE),
    ]
    with target.used():
        assert steps() == [
            ("workspace.freeze", "operator", THERE),
            ("workspace.receive", "operator", THERE),
        ]


def test_run__search__finds_all_entries_in_the_target(acme: Person, target: Cell) -> None:
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
    with target.used():
        assert indexing.index_entries()["indexed"] == 5


# Cursors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("source_is_ahead", [False, True])
def test_run__cursors_of_the_source__continue_exactly(
    ann: Person, target: Cell, source_is_ahead: bool
) -> None:
    if source_is_ahead:
        begin_era()  # the first one only records the server
        begin_era()
        put(ann.actor, "notes_exact", "later", 1)
    wait_for_feed(ann.workspace.pk)
    issued = all_cursors(ann.workspace.pk)
    expected = [keys_after(ann.workspace.pk, cursor) for cursor in issued]
    expect(target, SLUG, "ann", "demo")
    with mover_to(target, SLUG) as mover:
        mover.run()
    with target.used():
        workspace = Workspace.objects.get(slug=SLUG)
        put(system_actor(workspace.pk, "writer"), "notes_exact", "new", 2)
        wait_for_feed(workspace.pk)
        assert [keys_after(workspace.pk, cursor) for cursor in issued] == [
            [*each, ("entry.put", "new", 1)] for each in expected
        ]
        # Those of the target itself are not translated.
        own = all_cursors(workspace.pk)
        assert keys_after(workspace.pk, own[-1]) == []
        assert keys_after(workspace.pk, own[0])[-1] == ("entry.put", "new", 1)


def test_run__cursor_of_lost_changes__is_refused_in_the_target_too(
    acme: Person, target: Cell
) -> None:
    wait_for_feed(acme.workspace.pk)
    end = feed_sql.read_end(acme.workspace.pk)
    begin_era()
    lost = cursors.seal(Position(end.position.xid + 5, end.position.id), end.at)
    put(acme.actor, "notes", "after", 1)
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
    with target.used():
        workspace = Workspace.objects.get(slug="acme")
        with pytest.raises(cursors.LostCursor):
            keys_after(workspace.pk, lost)


def test_run__eras_of_the_target__do_not_refuse_cursors_of_the_source(
    acme: Person, target: Cell
) -> None:
    wait_for_feed(acme.workspace.pk)
    issued = all_cursors(acme.workspace.pk)
    with target.used():
        begin_era()
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
    with target.used():
        workspace = Workspace.objects.get(slug="acme")
        assert keys_after(workspace.pk, issued[-1]) == []
        begin_era()  # after the move: what it lost concerns the workspace too
        end = feed_sql.read_end(workspace.pk)
        with pytest.raises(cursors.LostCursor):
            keys_after(
                workspace.pk,
                cursors.seal(Position(end.horizon - 1000, end.position.id), end.at),
            )


def test_run__there_and_back__cursors_of_every_stay_continue(acme: Person, target: Cell) -> None:
    wait_for_feed(acme.workspace.pk)
    first = all_cursors(acme.workspace.pk)[-2]
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
        mover.forget()
    with target.used():
        workspace = Workspace.objects.get(slug="acme")
        put(system_actor(workspace.pk, "writer"), "notes", "there", 1)
        wait_for_feed(workspace.pk)
        second = all_cursors(workspace.pk)[-1]
    expect_workspace("acme")
    with target.used():
        back = Mover("acme", target.source_url)
    try:
        with target.used():
            back.run()
    finally:
        back.close()
    workspace = Workspace.objects.get(slug="acme")
    put(system_actor(workspace.pk, "writer"), "notes", "back", 1)
    wait_for_feed(workspace.pk)
    assert keys_after(workspace.pk, first) == [
        ("entry.put", "k4", 1),
        ("entry.put", "there", 1),
        ("entry.put", "back", 1),
    ]
    assert keys_after(workspace.pk, second) == [("entry.put", "back", 1)]


# Crashes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
def test_run__crash_after_each_step__at_most_one_side_accepts_writes_and_a_resume_ends_it(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    run_until(target, "acme", monkeypatch, steps, "alice", "bob")
    expected = {0: (True, False), len(STEPS): (False, True)}.get(steps, (False, False))
    assert accepting(target, acme) == expected
    before = comparable("acme")
    with mover_to(target, "acme") as mover:
        assert mover.run().states == (MoveState.MOVED, MoveState.OPEN)
    assert accepting(target, acme) == (False, True)
    with target.used():
        assert comparable("acme") == before


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
def test_undo__after_each_step__the_source_continues_and_the_target_is_empty(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    run_until(target, "acme", monkeypatch, steps, "alice", "bob")
    before = comparable("acme")
    with mover_to(target, "acme") as mover:
        sides = mover.undo()
        assert sides.target.state == MoveState.UNDONE
        assert mover.undo().states == sides.states
    assert accepting(target, acme) == (True, False)
    assert comparable("acme") == before
    assert triggers() == 0
    with target.used():
        assert rows_of_target() == {}
        assert triggers() == 0
    # A new move is possible.
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        assert mover.run().states == (MoveState.MOVED, MoveState.OPEN)


@pytest.mark.parametrize("batches", [0, 1, 5, 12, 20])
def test_run__crash_within_the_copy__continues_where_it_was(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    monkeypatch.setattr(workspace_transfers, "_MOST_ROWS", 2)
    expect(target, "acme", "alice", "bob")
    proper, left = workspace_moves_sql.store_rows, [batches]

    def store(*args: Any) -> None:
        proper(*args)
        if not left[0]:
            raise Crash
        left[0] -= 1

    with monkeypatch.context() as patch, mover_to(target, "acme") as mover:
        patch.setattr(workspace_moves_sql, "store_rows", store)
        with pytest.raises(Crash):
            mover.run()
    with target.used():
        stored = sum(rows_of_target().values())
    assert accepting(target, acme) == (False, False)
    before = comparable("acme")
    again: list[int] = []

    def count(table: Any, rows: Any) -> None:
        again.append(len(rows))
        proper(table, rows)

    monkeypatch.setattr(workspace_moves_sql, "store_rows", count)
    with mover_to(target, "acme") as mover:
        mover.run()
    with target.used():
        assert comparable("acme") == before
        total = sum(rows_of_target().values())
    # The rows of the opening: an audit row and a change.
    assert stored + sum(again) == total - 2


def test_undo__crash_after_the_end_of_the_target__is_finished_by_another_undo(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(target, "acme", monkeypatch, 4, "alice", "bob")
    with monkeypatch.context() as patch, mover_to(target, "acme") as mover:
        patch.setattr(Mover, "_reopen_source", lambda self, sides: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            mover.undo()
    assert accepting(target, acme) == (False, False)
    with mover_to(target, "acme") as mover:
        with pytest.raises(Conflict, match="cannot continue: source: refers"):
            mover.run()
        mover.undo()
    assert accepting(target, acme) == (True, False)


@pytest.mark.parametrize("command", ["run", "undo", "forget"])
def test_move__crash_before_the_triggers_are_dropped__the_same_command_drops_them(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    expect(target, "acme", "alice", "bob")

    def crash() -> None:
        raise Crash

    with mover_to(target, "acme") as mover:
        if command != "run":
            mover.run()
        with monkeypatch.context() as patch:
            patch.setattr(freezing_sql, "switch_off", crash)
            with pytest.raises(Crash):
                getattr(mover, command)()
        getattr(mover, command)()
    # After the move the source is frozen; otherwise no workspace is.
    assert bool(triggers()) is (command == "run")
    with target.used():
        assert triggers() == 0


def test_run__another_move_to_the_cell_ends_meanwhile__the_copy_stays_frozen(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drops the triggers of the target, which has no frozen workspace yet."""
    expect(target, "acme", "alice", "bob")
    proper, guarded = workspace_moves_sql.store_rows, []

    def store(*args: Any) -> None:
        guarded.append(triggers())
        proper(*args)

    def copy(*args: Any) -> None:
        with target.used():
            freezing_sql.switch_off()
        workspace_transfers.copy_rows(*args)

    monkeypatch.setattr(workspace_moves, "copy_rows", copy)
    monkeypatch.setattr(workspace_moves_sql, "store_rows", store)
    with mover_to(target, "acme") as mover:
        mover.run()
    assert min(guarded) > 20


def test_run__overtaken_by_an_undo__writes_nothing_more(
    acme: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lost its lock, and continues after another one has undone the move."""
    run_until(target, "acme", monkeypatch, 2, "alice", "bob")
    with mover_to(target, "acme") as slow, mover_to(target, "acme") as other:
        sides = slow.read()
        other.undo()
        for step in (slow._copy, slow._switch_source, slow._open_target):
            with pytest.raises((Conflict, KeyError)):
                step(sides)
    assert accepting(target, acme) == (True, False)
    with target.used():
        assert rows_of_target() == {}


def test_run__two_processes__one_moves_it(acme: Person, target: Cell) -> None:
    expect(target, "acme", "alice", "bob")

    def run() -> Any:
        with mover_to(target, "acme") as mover:
            return mover.run().states

    done, refused = split(race([run, run]))
    assert done[0] == (MoveState.MOVED, MoveState.OPEN)
    assert [problem.detail for problem in refused] in (
        [],
        ["another process is moving this workspace"],
    )


# Undo after the opening -------------------------------------------------------------------------


def test_undo__target_has_accepted_a_write__is_refused_and_the_target_continues(
    acme: Person, target: Cell
) -> None:
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
        with target.used():
            workspace = Workspace.objects.get(slug="acme")
            put(system_actor(workspace.pk, "writer"), "notes", "k0", {"n": 7})
        with pytest.raises(Conflict, match=r"accepted writes.*entries: 5 rows"):
            mover.undo()
        assert mover.read().states == (MoveState.MOVED, MoveState.OPEN)
    assert accepting(target, acme) == (False, True)


def test_undo__after_the_opening__cursors_of_the_target_continue_in_the_source(
    acme: Person, target: Cell
) -> None:
    expect(target, "acme", "alice", "bob")
    with mover_to(target, "acme") as mover:
        mover.run()
        with target.used():
            begin_era()
            workspace = Workspace.objects.get(slug="acme")
            wait_for_feed(workspace.pk)
            issued = all_cursors(workspace.pk)
            expected = [keys_after(workspace.pk, cursor) for cursor in issued]
        mover.undo()
    put(acme.actor, "notes", "new", 1)
    wait_for_feed(acme.workspace.pk)
    assert [keys_after(acme.workspace.pk, cursor) for cursor in issued] == [
        [*each, ("entry.put", "new", 1)] for each in expected
    ]


def test_forget__after_the_move__deletes_every_row_and_prevents_an_undo(
    ann: Person, target: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_transfers, "_DELETED_AT_ONCE", 3)
    expect(target, SLUG, "ann", "demo")
    with mover_to(target, SLUG) as mover:
        with pytest.raises(Conflict, match="not begun"):
            mover.forget()
        mover.run()
        assert mover.forget().states == (MoveState.REMOVED, MoveState.FINAL)
        with pytest.raises(Conflict, match="cannot be undone"):
            mover.undo()
    assert set(Workspace.objects.values_list("slug", flat=True)) == {"default"}
    left = set(AuditRow.objects.values_list("workspace_id", flat=True))
    assert left == {Workspace.objects.get().pk}
    assert triggers() == 0
    with target.used():
        assert Workspace.objects.filter(slug=SLUG).exists()
