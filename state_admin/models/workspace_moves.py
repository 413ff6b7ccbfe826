"""Moves of workspaces between cells (docs/adr/0028-moving-a-workspace.md).

Both databases have a row of a move. Each step is an UPDATE that requires the state before it, so a
process that was overtaken by another one changes nothing.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from .workspaces import Workspace


class MoveSide(models.TextChoices):
    SOURCE = "source"
    TARGET = "target"


class MoveState(models.TextChoices):
    """The state of a side. Of the target: expected to undone, or final. Of the source: frozen, moved,
    and then removing and removed, or undone."""

    EXPECTED = "expected", "waits for the workspace"
    COPYING = "copying", "copies the rows"
    COPIED = "copied", "has all rows, and does not serve them yet"
    OPEN = "open", "serves the workspace"
    CLOSING = "closing", "is frozen, to undo the move"
    FINAL = "final", "serves the workspace; the move cannot be undone"
    FROZEN = "frozen", "refuses writes"
    MOVED = "moved", "refers to the other cell"
    REMOVING = "removing", "deletes its rows"
    REMOVED = "removed", "has deleted its rows"
    UNDONE = "undone", "the move was undone"


class WorkspaceMove(models.Model):
    """One side of a move. `move_id` is the same on both sides."""

    move_id = models.CharField(max_length=36, db_collation="C")
    side = models.CharField(max_length=6, choices=MoveSide.choices)
    state = models.CharField(max_length=8, choices=MoveState.choices)
    slug = models.CharField(max_length=64, db_collation="C")
    # Without a foreign key: the row outlives the workspace. NULL: not known yet.
    workspace_pk = models.BigIntegerField(null=True)
    # The name of the other cell; "" if it is not known yet.
    cell = models.CharField(max_length=8, default="", db_collation="C")
    # Of the target: its name, and the ids of the keys with which it decrypts the secrets of the workspace.
    keys = models.JSONField(default=dict)
    # Of the target: the progress of the copy. Of the source: the feed clock after its last write.
    progress = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "workspace_moves"
        constraints = [
            models.UniqueConstraint(
                fields=["move_id", "side"], name="workspace_moves_one_per_side"
            ),
            # At most one unfinished move of a workspace on each side.
            models.UniqueConstraint(
                fields=["slug", "side"],
                name="workspace_moves_single_flight",
                condition=models.Q(
                    state__in=[
                        "expected",
                        "copying",
                        "copied",
                        "closing",
                        "frozen",
                        "moved",
                        "removing",
                    ]
                ),
            ),
        ]


class Arrival(models.Model):
    """How cursors of the cell that a workspace came from continue here.

    Positions below `clock`, the clock of the feed when this cell began to accept writes, are those of
    the other cell. `gaps` are the lost ones among them (models/feed_sql.py, Gap): each is [clock, id,
    start]. The gaps of this cell that end below `clock` do not concern the workspace. `shifts`: each is
    [clock, low, high, shift] (models/feed_sql.py, Shift).
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True)
    clock = models.BigIntegerField()
    gaps = models.JSONField(default=list)
    shifts = models.JSONField(default=list)

    class Meta:
        db_table = "arrivals"
