"""Refuses all writes to frozen workspaces with triggers, whatever statement writes.

The triggers exist only while a workspace is frozen, so that writes have no additional cost at other times.
A trigger takes the lock of the workspace in shared mode, and then checks whether it is frozen. A freeze
takes the lock in exclusive mode: it waits for the transactions that have written, and no other one can
write before the freeze is committed and visible to it. The function is in migration 0016.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from django.db import DatabaseError, connection, models, transaction

from . import database, hot
from .access import ApiToken
from .entries import Entry
from .idempotency import IdempotencyRecord
from .limits import WorkspaceUsage
from .namespaces import Namespace
from .storage import StorageSample
from .threads import Thread
from .traffic import Traffic
from .webhooks import Webhook
from .workspace_moves import MoveSide, MoveState, WorkspaceMove
from .workspace_tables import TABLES, Table
from .workspaces import Workspace

# The constraint name in the error, which distinguishes it from other errors with its SQLSTATE.
FROZEN: Final = "workspace_is_frozen"
_TRIGGER: Final = "refuse_frozen"
# Measurements, which also count reads.
STATISTICS: Final[frozenset[type[models.Model]]] = frozenset(
    {WorkspaceUsage, StorageSample, Traffic}
)
# How the trigger finds the workspace of a row.
_OWNERS: Final[dict[type[models.Model], str]] = {
    Namespace: "namespace",
    Entry: "entry",
    Thread: "thread",
    Webhook: "webhook",
}
_GUARDED: Final = (
    *(table for table in TABLES if table.model not in STATISTICS),
    Table(IdempotencyRecord),
)
# Columns that reads update: not changes of the workspace.
BY_READS: Final = {ApiToken._meta.db_table: frozenset({"last_used_at"})}

_SWITCHED_ON: Final = """
SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE t.tgname = %(trigger)s AND t.tgenabled = 'O' AND c.relnamespace = current_schema()::regnamespace
"""
_UNOWNED: Final = """
SELECT relname FROM pg_class
WHERE relname = ANY(%(tables)s) AND relnamespace = current_schema()::regnamespace
    AND NOT pg_has_role(relowner, 'USAGE')
ORDER BY relname
"""
# The advisory lock of the triggers: one session creates or drops them, and no freeze begins meanwhile.
_SWITCHING: Final = "hashtextextended('switch refuse_frozen', 0)"


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error, or its cause, is that of a write to a frozen workspace."""
    while error is not None:
        diagnosis = getattr(error, "diag", None)
        if diagnosis is not None and diagnosis.constraint_name == FROZEN:
            return True
        error = error.__cause__
    return False


def switch_on() -> None:
    """Create the missing triggers, each in a transaction of its own. From then on, every statement that
    writes runs them: the lock on the table waits for older ones. Raises django.db.OperationalError if
    a table stays locked."""
    with _switching():
        present = _find_triggers()
        for table in _GUARDED:
            if table.name not in present:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(_create(table))


def list_unowned() -> list[str]:
    """The tables whose triggers this role cannot create, because another one owns them."""
    tables = [table.name for table in _GUARDED]
    return [name for (name,) in hot.fetch_all(_UNOWNED, {"tables": tables})]


def is_on() -> bool:
    """Whether there are triggers."""
    return bool(_find_triggers())


def switch_off() -> None:
    """Drop the triggers, unless a workspace is frozen or arrives: its first row, which says that it is
    frozen, may not be copied yet. Raises django.db.OperationalError if a table stays locked."""
    with _switching():
        arriving = WorkspaceMove.objects.filter(side=MoveSide.TARGET, state=MoveState.COPYING)
        if Workspace.objects.present().frozen().exists() or arriving.exists():
            return
        for name in sorted(_find_triggers()):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"DROP TRIGGER IF EXISTS {_TRIGGER} ON {name}")


def lock_workspace(workspace_id: int) -> bool:
    """Wait until no other transaction has written to the workspace, and let none begin until the end of
    this one, which is exempt. False: the triggers do not exist; nothing is locked."""
    hot.fetch_all(f"SELECT pg_advisory_xact_lock_shared({_SWITCHING})", {})
    if {table.name for table in _GUARDED} - _find_triggers():
        return False
    database.lock("frozen workspace", workspace_id)
    exempt()
    return True


def exempt() -> None:
    """Let the rest of the transaction write to frozen workspaces."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL commonhold.moves = 'on'")


def _find_triggers() -> set[str]:
    return {name for (name,) in hot.fetch_all(_SWITCHED_ON, {"trigger": _TRIGGER})}


def _create(table: Table) -> str:
    owner = "workspace" if table.model is Workspace else ""
    if table.owner:
        owner = _OWNERS[table.owner[0]]
    excluded = BY_READS.get(table.name)
    columns = ""
    if excluded is not None:
        columns = " OF " + ", ".join(f'"{name}"' for name in table.fields if name not in excluded)
    return (
        f"CREATE OR REPLACE TRIGGER {_TRIGGER} BEFORE INSERT OR DELETE OR UPDATE{columns}"
        f" ON {table.name} FOR EACH ROW EXECUTE FUNCTION refuse_frozen_workspace('{owner}')"
    )


@contextmanager
def _switching() -> Iterator[None]:
    """The lock of the session on switching the triggers."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_lock({_SWITCHING})")
    try:
        yield
    except BaseException:
        with suppress(DatabaseError):  # a broken connection has released it
            _unlock()
        raise
    _unlock()


def _unlock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_unlock({_SWITCHING})")
