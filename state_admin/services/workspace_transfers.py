"""Copies the rows of a workspace to another cell, compares them, and deletes them.

The states and the steps of a move are in workspace_moves.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final

from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    IntegrityError,
    OperationalError,
    connections,
    transaction,
)
from django.db.models.functions import Now

from project import databases, startup
from project.env import BadSetting
from state_admin.domain.digests import DigestLine, differences
from state_admin.domain.workspace_files import Value
from state_admin.models import (
    ConfigSecret,
    MoveState,
    WorkspaceMove,
    freezing_sql,
    workspace_copies_sql,
    workspace_moves_sql,
)
from state_admin.models.workspace_moves_sql import MOVED, Row
from state_admin.models.workspace_tables import Table

from . import config_secrets, verification
from .batching import split_by_size
from .errors import Conflict, Gone

# The most rows, and characters, of a transaction on the target.
_MOST_ROWS: Final = 2000
_MOST_BYTES: Final = 2 * 1024 * 1024
_DELETED_AT_ONCE: Final = 2000
# The most differences that a message describes.
SHOWN: Final = 20


class Cell:
    """The other cell: a connection to its database."""

    def __init__(self, url: str) -> None:
        self._wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        entry = databases.from_url(url, "MOVE_DATABASE_URL")
        self._wrapper.settings_dict = {**self._wrapper.settings_dict, "EMBEDDED": False, **entry}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let every statement of this thread run in the other cell. A transaction of this cell stays
        open. Raises BadSetting if the database cannot be reached, or fails meanwhile."""
        own = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = self._wrapper
        try:
            startup.reach_database()
            yield
        except OperationalError as error:  # explained here, where the connection is this one
            raise BadSetting(
                f"The target failed. {startup.explain(error)} Then run the command again."
            ) from error
        finally:
            connections[DEFAULT_DB_ALIAS] = own

    def close(self) -> None:
        self._wrapper.close()


def advance(
    move: WorkspaceMove,
    state: MoveState,
    *,
    expected: Mapping[str, Any] | None = None,
    **values: Any,
) -> None:
    """Change the state of a side, if it is still what this process has read. Raises Conflict."""
    rows = WorkspaceMove.objects.filter(pk=move.pk, state=move.state)
    if expected is not None:
        rows = rows.filter(progress=expected)
    if not rows.update(state=state, updated_at=Now(), **values):
        raise Conflict(
            f"another process has changed the move of {move.slug} meanwhile",
            hint="Run the command with --status to read its state.",
        )
    move.state = state
    for name, value in values.items():
        setattr(move, name, value)


def workspace_of(move: WorkspaceMove) -> int:
    """The number of the workspace on this side. Raises Gone if the workspace was never copied here."""
    if move.workspace_pk is None:
        raise Gone(f"the workspace was not copied to this cell: {move.slug}")
    return move.workspace_pk


def copy_rows(
    source: int, move: WorkspaceMove, target: Cell, report: Callable[[str], None]
) -> None:
    """Copy the rows that the target does not have yet. `move`: the side of the target, which has the
    progress. Raises Conflict if the target refuses a row."""
    for table in MOVED:
        if table.name not in move.progress["done"]:
            rows = _copy_table(table, source, move, target)
            report(f"{table.name}: {rows:,} rows")
    _copy_references(source, move, target)


def _copy_table(table: Table, source: int, move: WorkspaceMove, target: Cell) -> int:
    copied = 0
    with _reading(
        workspace_moves_sql.read_rows(
            table, source, move.progress["shifts"], move.cell, move.progress["after"]
        )
    ) as rows:
        for batch in _batches(rows):
            values = [each for _, each in batch]
            if table.model is ConfigSecret:
                values = _seal(table, batch, workspace_of(move))
            work = partial(workspace_moves_sql.store_rows, table, values)
            _store(target, move, work, after=batch[-1][0])
            copied += len(batch)
    _store(target, move, lambda: None, done=table.name)
    return copied


def _copy_references(source: int, move: WorkspaceMove, target: Cell) -> None:
    for table in MOVED:
        if not workspace_moves_sql.later_references(table):
            continue
        found = workspace_moves_sql.read_references(table, source, move.progress["shifts"])
        with _reading(found) as rows:
            for batch in _batches(rows):
                values = [each for _, each in batch]
                work = partial(workspace_moves_sql.store_references, table, values)
                _store(target, move, work)


@contextmanager
def _reading(rows: Generator[Row]) -> Iterator[Iterator[Row]]:
    """The rows of a COPY. It is closed before the transaction ends, also after an error."""
    with transaction.atomic():
        workspace_copies_sql.begin_copying()
        with closing(rows):
            yield rows


def _store(
    target: Cell,
    move: WorkspaceMove,
    work: Callable[[], None],
    *,
    after: Sequence[str] | None = None,
    done: str = "",
) -> None:
    """Write a batch and the progress, in one transaction on the target. A move that was undone
    meanwhile, or that another process continues, is not written to."""
    progress = {**move.progress}
    if after is not None:
        progress["after"] = list(after)
    if done:
        progress |= {"done": [*progress["done"], done], "after": []}
    before = move.progress
    try:
        with target.used(), transaction.atomic():
            workspace_copies_sql.begin_copying()
            freezing_sql.exempt()
            advance(move, MoveState.COPYING, expected=before, progress=progress)
            work()
    except (Error, BadSetting) as error:
        move.progress = before
        if not isinstance(error, IntegrityError):
            raise
        raise Conflict(
            f"the target refuses a row: {str(error).splitlines()[0]}",
            hint="Run --undo to let the source accept writes again.",
        ) from error


def compare(source: int, move: WorkspaceMove, target: Cell) -> list[str]:
    """What differs between the two sides, in plain text."""
    copy, shifts = workspace_of(move), move.progress["shifts"]
    found = []
    for table in MOVED:
        if table.model not in freezing_sql.STATISTICS:
            here = _digest(table, source)
            with target.used():
                there = _digest(table, copy, shifts)
            if here != there:
                found.append(
                    f"{table.name}: {here.rows:,} rows in the source, {there.rows:,} in the target"
                    + (", with different content" if here.rows == there.rows else "")
                )
    return [
        *found,
        *_compare_secrets(source, shifts, target),
        *_compare_states(source, copy, shifts, target),
    ]


def _compare_secrets(source: int, shifts: Mapping[str, int], target: Cell) -> Iterator[str]:
    shift = shifts.get(ConfigSecret._meta.db_table, 0)
    rows = ConfigSecret.objects.filter(entry__namespace__workspace_id=source).order_by("pk")
    ids = list(rows.values_list("pk", flat=True))
    for start in range(0, len(ids), _MOST_ROWS):
        part = ids[start : start + _MOST_ROWS]
        plain = config_secrets.read_plain(part)
        with target.used():
            copied = config_secrets.read_plain([pk + shift for pk in part])
        if {pk + shift: text for pk, text in plain.items()} != copied:
            yield "config_secrets: a secret differs"


def _compare_states(
    source: int, copy: int, shifts: Mapping[str, int], target: Cell
) -> Iterator[str]:
    """Compare what verify_state compares: every version and every snapshot."""
    back = {"entry": shifts.get("entries", 0), "state": shifts.get("threads", 0)}
    with tempfile.TemporaryFile("w+") as lines:
        lines.writelines(f"{line}\n" for line in verification.read_digests(source))
        lines.seek(0)
        with target.used():
            copied = (
                line._replace(owner=line.owner - back[line.kind])
                for line in verification.read_digests(copy)
            )
            found = list(islice(differences(map(DigestLine.parse, lines), copied), SHOWN))
    for pair in found:
        yield from (verification.describe_difference(line) for line in pair[:1] if line)
        yield from (f"only in the target: {line}" for line in pair[1:] if not pair[0])


def _seal(table: Table, batch: Sequence[Row], workspace_id: int) -> list[Sequence[Value]]:
    """The rows of secrets, encrypted for the workspace in the target."""
    sealed = config_secrets.seal_for([int(key) for (key,), _ in batch], workspace_id=workspace_id)
    rows: list[Sequence[Value]] = []
    for (key,), values in batch:
        row = dict(zip(table.fields, values, strict=True))
        encrypted = sealed[int(key)]
        row |= {"ciphertext": rf"\x{encrypted.ciphertext.hex()}", "key_id": encrypted.key_id}
        rows.append(list(row.values()))
    return rows


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    sized = ((row, sum(len(value) for value in row[1] if value)) for row in rows)
    return split_by_size(sized, _MOST_ROWS, _MOST_BYTES)


def _digest(
    table: Table, workspace_id: int, shifts: Mapping[str, int] | None = None
) -> workspace_moves_sql.Digest:
    with transaction.atomic():
        workspace_copies_sql.begin_copying()
        return workspace_moves_sql.read_digest(table, workspace_id, shifts)


def delete_rows(workspace_id: int) -> Iterator[int]:
    """Delete all rows of a workspace in batches, each of which is a transaction, and yield the number of
    rows of each. An interrupted deletion continues here. A write that was in progress may add a row to a
    table that was emptied before, so the row of the workspace is deleted when all others are gone."""

    def repeat(step: Callable[[], int]) -> Iterator[int]:
        while count := _in_transaction(step):
            yield count

    *tables, workspace = workspace_moves_sql.deletions(workspace_id)
    steps = [partial(workspace_moves_sql.clear_references, workspace_id, _DELETED_AT_ONCE)]
    steps += [partial(workspace_moves_sql.delete_rows, rows, _DELETED_AT_ONCE) for rows in tables]
    found = True
    while found:
        found = False
        for step in steps:
            for count in repeat(step):
                found = True
                yield count
    yield _in_transaction(partial(workspace_moves_sql.delete_rows, workspace, _DELETED_AT_ONCE))


def _in_transaction(step: Callable[[], int]) -> int:
    with transaction.atomic():
        workspace_copies_sql.begin_copying()
        freezing_sql.exempt()
        return step()
