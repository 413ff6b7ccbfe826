"""Moves a workspace from this cell, the source, to another one, the target, for operators.

docs/adr/0028-moving-a-workspace.md lists the steps, and what is true after a crash between any two of
them. Each step is one transaction on one of the two sides, and requires the state before it. At most
one side accepts writes: the source until it is frozen, the target from its opening on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import Error, connection, transaction
from django.db.models.functions import Now

from state_admin.domain.ids import uuid7
from state_admin.models import (
    ApiToken,
    Arrival,
    Change,
    ConfigSecret,
    Membership,
    MoveSide,
    MoveState,
    SavedView,
    User,
    WebhookSecret,
    Workspace,
    WorkspaceMove,
    audit_stream,
    feed_eras,
    feed_sql,
    freezing_sql,
    hot,
    workspace_copies_sql,
    workspace_moves_sql,
)
from state_admin.models.feed_sql import FeedEnd, Shift
from state_admin.models.workspace_moves_sql import MOVED

from . import config_secrets, webhook_secrets
from .errors import Conflict, Invalid, NotFound
from .token_cache import announce_change
from .users import cancel_links_of_new_members
from .workspace_freezes import freeze, record, unfreeze
from .workspace_transfers import (
    SHOWN,
    Cell,
    advance,
    compare,
    copy_rows,
    delete_rows,
    workspace_of,
)
from .workspaces import check_slug

_ARRIVING: Final = (MoveState.EXPECTED, MoveState.COPYING, MoveState.COPIED)


def find_departure(slug: str) -> WorkspaceMove | None:
    """The move of a workspace that another cell serves now. Its rows remain here until the move is
    forgotten; then they are deleted in batches (MoveState.REMOVING)."""
    gone = (MoveState.MOVED, MoveState.REMOVING)
    return WorkspaceMove.objects.filter(slug=slug, side=MoveSide.SOURCE, state__in=gone).first()


def expect_workspace(slug: str) -> WorkspaceMove:
    """Prepare this cell, the target, for a workspace of another one. Stores the name of the cell and the
    ids of its keys, which the source checks. Calling it again returns the same move."""
    check_slug(slug)
    if not settings.CELL:
        raise Invalid("CELL is not set", hint="Set CELL to a name for this cell.")
    if Workspace.objects.filter(slug=slug).exists():
        raise Conflict(f"workspace already exists: {slug}")
    keys = {
        "cell": settings.CELL,
        "secret": webhook_secrets.key_ids()[0],
        "webhooks": webhook_secrets.key_ids(),
        "config": config_secrets.key_ids(),
    }
    move, _ = WorkspaceMove.objects.update_or_create(
        side=MoveSide.TARGET,
        slug=slug,
        state=MoveState.EXPECTED,
        defaults={"keys": keys, "updated_at": Now()},
        create_defaults={"keys": keys, "move_id": uuid7()},
    )
    return move


@dataclass(frozen=True)
class Sides:
    """The rows of a move. `source` is None until the workspace is frozen."""

    source: WorkspaceMove | None
    target: WorkspaceMove

    @property
    def states(self) -> tuple[str, str]:
        return (self.source.state if self.source else "", self.target.state)


class Mover:
    """The moves of one workspace from this cell. `target_url`: the database of the target."""

    def __init__(
        self, slug: str, target_url: str, report: Callable[[str], None] = lambda line: None
    ) -> None:
        self.slug, self.report = slug, report
        self._target = Cell(target_url)

    def close(self) -> None:
        self._target.close()

    # The commands ----------------------------------------------------------------------------

    def run(self, *, begin: bool = True) -> Sides:
        """Move the workspace, or resume an interrupted move. `begin`: whether to begin a new one. Raises
        Conflict or Invalid if the move cannot continue; nothing is lost."""
        with self._alone():
            self._check_servers()
            if not begin and self.read().source is None:
                raise Conflict(f"no move has begun: {self.slug}")
            while step := self._next_step(self.read()):
                step(self.read())
            with self._target.used():
                freezing_sql.switch_off()
            return self.read()

    def undo(self) -> Sides:
        """Let the source accept writes again, and delete the rows of the target. Raises Conflict if the
        target has accepted a write."""
        with self._alone():
            sides = self.read()
            match sides.states:
                case ("", MoveState.EXPECTED | MoveState.UNDONE):
                    if sides.target.state == MoveState.EXPECTED:
                        self._cancel(sides.target)
                    freezing_sql.switch_off()
                    return self.read()
                case (MoveState.MOVED, MoveState.OPEN | MoveState.CLOSING):
                    self._close_target(sides)
                case (MoveState.FROZEN | MoveState.MOVED, state) if state in _ARRIVING:
                    self._cancel(sides.target)
                case (_, MoveState.UNDONE):
                    pass
                case _:
                    raise Conflict(
                        f"the move cannot be undone: {_describe(sides)}",
                        hint="Move the workspace back with another move.",
                    )
            self._reopen_source(self.read())
            freezing_sql.switch_off()
            self._delete_target(self.read())
            return self.read()

    def forget(self) -> Sides:
        """Delete the rows in the source after the move, in batches. The move cannot be undone afterwards.
        Raises Conflict while the audit stream of the source lacks some: that of the target may skip them."""
        with self._alone():
            sides = self.read()
            source = self._source(sides)
            if source.state == MoveState.MOVED:
                if sides.target.state not in (MoveState.OPEN, MoveState.FINAL):
                    raise Conflict(f"the workspace was not moved: {_describe(sides)}")
                _check_audit_is_sent(source)
                with self._target.used():
                    if sides.target.state == MoveState.OPEN:
                        advance(sides.target, MoveState.FINAL)
                advance(source, MoveState.REMOVING)
            if source.state == MoveState.REMOVING:
                for _ in delete_rows(workspace_of(source)):
                    pass
                advance(source, MoveState.REMOVED)
            elif source.state != MoveState.REMOVED:
                raise Conflict(f"the workspace was not moved: {_describe(sides)}")
            freezing_sql.switch_off()
            return self.read()

    def read(self) -> Sides:
        """The newest move of the workspace. Raises NotFound."""
        source = WorkspaceMove.objects.filter(side=MoveSide.SOURCE, slug=self.slug).last()
        with self._target.used():
            rows = WorkspaceMove.objects.filter(side=MoveSide.TARGET, slug=self.slug)
            target = None if source is None else rows.filter(move_id=source.move_id).first()
            newest = rows.filter(state=MoveState.EXPECTED).last()
            if newest is None and target is None:
                newest = rows.last()
        is_over = source is None or source.state in (MoveState.REMOVED, MoveState.UNDONE)
        if newest is not None and is_over and newest != target:
            return Sides(None, newest)
        if target is None:
            raise NotFound(
                f"the other cell does not expect the workspace: {self.slug}",
                hint=f"Run there: manage.py move_workspace {self.slug} --expect.",
            )
        return Sides(source, target)

    # Steps -----------------------------------------------------------------------------------

    def _next_step(self, sides: Sides) -> Callable[[Sides], None] | None:
        match sides.states:
            case ("", MoveState.EXPECTED):
                return self._freeze_source
            case (MoveState.FROZEN, MoveState.EXPECTED):
                return self._begin_copy
            case (MoveState.FROZEN, MoveState.COPYING):
                return self._copy
            case (MoveState.FROZEN, MoveState.COPIED):
                return self._switch_source
            case (MoveState.MOVED, MoveState.COPIED):
                return self._open_target
            case (MoveState.MOVED, MoveState.CLOSING):
                return self._reopen_target
            case (MoveState.MOVED, MoveState.OPEN | MoveState.FINAL):
                return None
            case (MoveState.REMOVING | MoveState.REMOVED, _):
                return None
        raise Conflict(
            f"the move cannot continue: {_describe(sides)}",
            hint="If an undo was interrupted, run --undo again. To begin a new move, first run the command "
            "with --expect in the target.",
        )

    def _freeze_source(self, sides: Sides) -> None:
        workspace = self._check_workspace(sides.target)

        def create_row() -> None:
            WorkspaceMove.objects.create(
                move_id=sides.target.move_id,
                side=MoveSide.SOURCE,
                state=MoveState.FROZEN,
                slug=self.slug,
                workspace_pk=workspace.pk,
                cell=sides.target.keys["cell"],
                progress={"moved_to": workspace.moved_to},
            )

        freeze(workspace.pk, self._detail(sides.target), create_row)
        self.report("The source refuses writes.")

    def _begin_copy(self, sides: Sides) -> None:
        """Reserve the numbers of the rows in the target."""
        # Again: until the freeze, writes could add secrets or members.
        self._check_workspace(sides.target)
        source = self._source(sides)
        with transaction.atomic():
            workspace_copies_sql.begin_copying()
            ranges = {
                table.name: found
                for table in MOVED
                if table.numbered and table.model is not Workspace  # its number is assigned
                if (found := workspace_moves_sql.read_range(table, workspace_of(source)))
            }
        with self._target.used(), transaction.atomic():
            new = workspace_moves_sql.reserve_workspace()
            shifts = {Workspace._meta.db_table: new - workspace_of(source)}
            for table in MOVED:
                if table.name in ranges:
                    shifts[table.name] = workspace_moves_sql.reserve(table, *ranges[table.name])
            advance(
                sides.target,
                MoveState.COPYING,
                workspace_pk=new,
                cell=settings.CELL,
                progress={"shifts": shifts, "ranges": ranges, "done": [], "after": []},
            )

    def _copy(self, sides: Sides) -> None:
        """Copy the remaining rows, and compare both sides. Afterwards, the target is ready."""
        target = sides.target
        with self._target.used():  # after the state, because of which switch_off leaves them
            freezing_sql.switch_on()
        copy_rows(workspace_of(self._source(sides)), target, self._target, self.report)
        if differing := self.compare(sides):
            raise Conflict(
                f"the copy differs from the source: {'; '.join(differing[:SHOWN])}",
                hint="The source is frozen. Run --undo to let it accept writes again.",
            )
        with self._target.used():
            advance(target, MoveState.COPIED)
        self.report("The copy is equal to the source.")

    def _switch_source(self, sides: Sides) -> None:
        source = self._source(sides)
        with transaction.atomic():
            freezing_sql.exempt()
            record(workspace_of(source), "workspace.move", self._detail(sides.target))
            Workspace.objects.filter(pk=workspace_of(source)).update(moved_to=source.cell)
            # Above the clock of everything that the source has written or returned.
            source.progress["clock"] = _read_clock()
            advance(source, MoveState.MOVED, progress=source.progress)
            announce_change()
        self.report("The source refers to the target.")

    def _open_target(self, sides: Sides) -> None:
        source, target = self._source(sides), sides.target
        end = feed_sql.read_end(workspace_of(source))
        with self._target.used():
            _ensure_clock(source.progress["clock"])
            with transaction.atomic():
                advance(target, MoveState.OPEN)
                clock = _read_clock()
                _arrive(workspace_of(target), clock, end, _shift_of_changes(target, clock))
                members = Membership.objects.filter(workspace_id=workspace_of(target))
                cancel_links_of_new_members(*members.values_list("user_id", flat=True))
                self._unfreeze_target(target, "workspace.receive")
        self.report("The target accepts writes.")

    def _close_target(self, sides: Sides) -> None:
        """Freeze the target. Cancel it if it has accepted no write, otherwise open it again."""
        target = sides.target

        def close() -> None:
            advance(
                WorkspaceMove.objects.get(pk=target.pk, state=MoveState.OPEN), MoveState.CLOSING
            )

        if target.state == MoveState.OPEN:
            with self._target.used():
                freeze(workspace_of(target), self._detail(target), close)
            sides = self.read()
            target = sides.target
        if differing := self.compare(sides):
            self._reopen_target(sides)
            raise Conflict(
                "the target has accepted writes, which would be lost: "
                + "; ".join(differing[:SHOWN]),
                hint="Move the workspace back with another move.",
            )
        self._cancel(target)

    def _reopen_target(self, sides: Sides) -> None:
        target = sides.target
        with self._target.used(), transaction.atomic():
            advance(target, MoveState.OPEN)
            self._unfreeze_target(target, "workspace.unfreeze")

    def _unfreeze_target(self, target: WorkspaceMove, action: str) -> None:
        # The name of the target is also its own `moved_to` (models/workspaces.py).
        unfreeze(workspace_of(target), target.keys["cell"], action, self._detail(target))

    def _cancel(self, target: WorkspaceMove) -> None:
        """Mark the target as undone. From the commit on, it can never open the workspace of this move."""
        with self._target.used(), transaction.atomic():
            freezing_sql.exempt()
            was_open = target.state == MoveState.CLOSING
            target.progress["closed_at"] = _read_clock() if was_open else 0
            advance(target, MoveState.UNDONE, progress=target.progress)
            if target.workspace_pk is not None:
                Workspace.objects.filter(pk=target.workspace_pk).update(moved_to=target.cell)
            announce_change()

    def _reopen_source(self, sides: Sides) -> None:
        source, target = self._source(sides), sides.target
        if source.state == MoveState.UNDONE:
            return
        # The target has issued cursors if it was open: they continue here.
        end = feed_sql.read_end(workspace_of(source))
        if closed_at := target.progress.get("closed_at", 0):
            _ensure_clock(closed_at)
        with transaction.atomic():
            advance(source, MoveState.UNDONE)
            if closed_at:
                clock = _read_clock()
                _, low, high, shift = _shift_of_changes(target, clock)
                _arrive(
                    workspace_of(source), clock, end, [clock, low + shift, high + shift, -shift]
                )
            before = source.progress["moved_to"]
            unfreeze(workspace_of(source), before, "workspace.unfreeze", self._detail(target))
        self.report("The source accepts writes.")

    def _delete_target(self, sides: Sides) -> None:
        with self._target.used():
            if sides.target.workspace_pk is not None:
                for _ in delete_rows(sides.target.workspace_pk):
                    pass
            freezing_sql.switch_off()

    def compare(self, sides: Sides) -> list[str]:
        """What differs between the two sides, in plain text."""
        return compare(workspace_of(self._source(sides)), sides.target, self._target)

    # Checks ----------------------------------------------------------------------------------

    def _check_servers(self) -> None:
        here, version = _identify(), max(workspace_copies_sql.list_migrations())
        with self._target.used():
            there, other = _identify(), max(workspace_copies_sql.list_migrations())
        if here == there:
            raise Invalid("the source and the target are the same database")
        if version != other:
            raise Invalid(
                f"the cells have different versions: {version} here, {other} in the target",
                hint="Upgrade both to the same version.",
            )

    def _check_workspace(self, target: WorkspaceMove) -> Workspace:
        """The workspace, if it can be moved to the target. Raises NotFound and Invalid."""
        workspace = Workspace.objects.filter(slug=self.slug).first()
        if workspace is None:
            raise NotFound(f"workspace not found: {self.slug}")
        if not settings.CELL:
            raise Invalid("CELL is not set", hint="Set CELL to a name for this cell.")
        keys = target.keys
        if keys["cell"] == settings.CELL:
            raise Invalid(f"both cells have the name {settings.CELL}", hint="Change one of them.")
        if webhook_secrets.key_ids()[0] != keys["secret"]:
            raise Invalid(
                "the cells have different values of SECRET_KEY",
                hint="Use the same SECRET_KEY in all cells: secrets of webhooks and idempotency records"
                " depend on it.",
            )
        used = {
            "webhooks": WebhookSecret.objects.filter(webhook__workspace=workspace).live(),
            "config": ConfigSecret.objects.filter(entry__namespace__workspace=workspace),
        }
        for name, rows in used.items():
            if rows.order_by().exclude(key_id__in=keys[name]).exists():
                raise Invalid(
                    f"the target lacks a key that decrypts secrets of the workspace ({name})",
                    hint="Add it there to SECRET_KEY_FALLBACKS or CONFIG_SECRET_KEYS, and run --expect"
                    " again.",
                )
        if config_secrets.key_ids()[0] not in keys["config"]:
            raise Invalid(
                "the target lacks the first key of CONFIG_SECRET_KEYS",
                hint="Add it to CONFIG_SECRET_KEYS there, and run --expect again.",
            )
        if ApiToken.objects.filter(workspace=workspace, operator=True).live().exists():
            raise Invalid(
                "the workspace has an operator token, which manages all workspaces of its cell",
                hint="Revoke it, or create it in another workspace.",
            )
        names = {
            *Membership.objects.filter(workspace=workspace).values_list(
                "user__username", flat=True
            ),
            *SavedView.objects.filter(workspace=workspace).values_list(
                "owner__username", flat=True
            ),
        }
        unowned = {"source": freezing_sql.list_unowned()}
        with self._target.used():
            if Workspace.objects.filter(slug=self.slug).exists():
                raise Conflict(f"the target already has a workspace {self.slug}")
            unowned["target"] = freezing_sql.list_unowned()
            names -= set(User.objects.filter(username__in=names).values_list("username", flat=True))
        for side, tables in unowned.items():
            if tables:
                raise Invalid(
                    f"the database role of the {side} does not own {len(tables)} of the tables, such as"
                    f" {tables[0]}",
                    hint="Connect as their owner: the move creates triggers on them.",
                )
        if names:
            raise Invalid(
                f"the target has no users with these names: {', '.join(sorted(names))}",
                hint="Create them there, or remove them from the workspace.",
            )
        return workspace

    # ------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Permit one process at a time, while its connection lasts. If the connection breaks, the states of
        the move still prevent conflicting steps."""
        lock = "hashtextextended('move ' || %s, 0)"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_try_advisory_lock({lock})", [self.slug])
            (mine,) = cursor.fetchone()
        if not mine:
            raise Conflict(
                "another process is moving this workspace", hint="Wait until it has ended."
            )
        try:
            yield
        finally:
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"SELECT pg_advisory_unlock({lock})", [self.slug])
            except Error:
                connection.close()

    def _source(self, sides: Sides) -> WorkspaceMove:
        if sides.source is None:
            raise Conflict("the move has not begun")
        return sides.source

    def _detail(self, target: WorkspaceMove) -> dict[str, Any]:
        return {"move": target.move_id, "from": settings.CELL, "to": target.keys["cell"]}


def _check_audit_is_sent(source: WorkspaceMove) -> None:
    destination = settings.AUDIT_STREAM
    if destination is not None and audit_stream.has_unsent(destination.url, workspace_of(source)):
        raise Conflict(
            "the audit stream has not sent all rows of the workspace",
            hint="Repeat the command when it has: manage.py doctor says how far it is.",
        )


def _describe(sides: Sides) -> str:
    target = MoveState(sides.target.state).label
    if sides.source is None:
        return f"target: {target}"
    return f"source: {MoveState(sides.source.state).label}; target: {target}"


def _ensure_clock(needed: int) -> None:
    """Let the feed clock of this cell continue above that of another one. Raises Conflict."""
    if _read_horizon() <= needed:
        feed_eras.begin_era()
    if _read_horizon() <= needed:
        raise Conflict(
            "the clock of the change feed of the other cell is ahead",
            hint="Synchronize the clocks of the two servers.",
        )


def _read_horizon() -> int:
    return int(hot.fetch_row("SELECT feed_horizon()::text::bigint", {})[0])


def _read_clock() -> int:
    """The feed clock, not below that of any recorded change, also of this transaction."""
    statement = (
        "SELECT greatest(feed_clock()::text::bigint,"
        " pg_snapshot_xmax(feed_snapshot())::text::bigint)"
    )
    return int(hot.fetch_row(statement, {})[0])


def _shift_of_changes(target: WorkspaceMove, clock: int) -> list[int]:
    """[clock, low, high, shift] of the copied changes. There is at least the change of the freeze."""
    name = Change._meta.db_table
    _, high = target.progress["ranges"][name]
    return [clock, 1, high, target.progress["shifts"][name]]


def _arrive(workspace_id: int, clock: int, end: FeedEnd, shift: Sequence[int]) -> None:
    """Store how cursors of the other cell continue here. `end`: of the feed of the other cell."""
    moved = end._replace(shifts=(Shift(*shift),))
    gaps = [[*moved.translate(gap.last), gap.start] for gap in end.gaps]
    shifts = [*map(list, end.shifts), list(shift)]
    Arrival.objects.update_or_create(
        pk=workspace_id, defaults={"clock": clock, "gaps": gaps, "shifts": shifts}
    )


def _identify() -> tuple[int, str]:
    """The server and the database of the connection."""
    statement = "SELECT system_identifier, current_database()::text FROM pg_control_system()"
    system, name = hot.fetch_row(statement, {})
    return system, name
