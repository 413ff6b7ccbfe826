"""The checks and preparations before the first process starts. Each failure is one sentence."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection
from psycopg.errors import (
    DeadlockDetected,
    LockNotAvailable,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedTable,
)

from project import migrations
from project.children import DRAIN_SECONDS
from project.env import BadSetting, data_dir
from project.failures import describe_error
from project.postgres.base import embedded
from project.postgres.replication import UnconfirmedCommit
from project.postgres.session import UnsafeServer
from state_admin.models import freezing_sql

_MIGRATION_LOCK = 0x5747_0002
# How long a migration waits for a lock on a table, how long it waits before it tries again, and for how
# long it tries. The first is below PostgreSQL's deadlock_timeout (1 s), so that a migration that locks
# several tables gives up before the server cancels a writer to resolve a deadlock.
LOCK_BUDGET_MS = 500
_LOCK_PAUSE = 1.0
_LOCK_PATIENCE = 300.0
_CROWDED = (
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "no more connections allowed",
)


class Claim:
    """A lock on the data folder, held as long as this object exists; the kernel releases it with
    the process."""

    def __init__(self) -> None:
        self.folder = data_dir()
        self._fd = os.open(self.folder / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadSetting(
                f"Commonhold already runs from {self.folder} (process {self._content()}); stop it "
                "first, or set COMMONHOLD_DATA_DIR and PORT for a second one"
            ) from None
        # A number that remains means that the last run was killed: its children may still be
        # ending.
        self.was_killed = bool(self._content())
        self._write(str(os.getpid()))

    def _content(self) -> str:
        return os.pread(self._fd, 20, 0).decode()

    def _write(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def release(self) -> None:
        self._write("")
        os.close(self._fd)


def killed_run_patience(claim: Claim) -> float:
    return DRAIN_SECONDS + 2.0 if claim.was_killed else 0.0


# Database ------------------------------------------------------------------------------------


def reach_database() -> None:
    """Connect to a PostgreSQL that is safe to use, starting the embedded one. The message of an
    error never contains the password."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        if isinstance(error.__cause__, UnsafeServer):
            raise BadSetting(str(error)) from None
        raise BadSetting(_why_no_database(str(error))) from None


def explain(error: DatabaseError) -> str:
    """Why the database did not do what a command needs, and what to do; "" for an error of the command itself."""
    if isinstance(error.__cause__, UnsafeServer):
        return str(error)
    if isinstance(error, OperationalError):
        if freezing_sql.is_refusal(error):
            return (
                "The workspace refuses writes, because it is being moved to another cell or was moved. "
                "What the command did in other workspaces is stored. Run manage.py doctor."
            )
        if isinstance(error.__cause__, UnconfirmedCommit):
            return (
                "The change is stored, but no standby server has confirmed it in time: a failover may "
                "lose it. Run manage.py doctor."
            )
        if getattr(error.__cause__, "sqlstate", None) is None:  # from libpq, not from a server
            return _why_no_database(str(error))
        return f"The database did not complete the command: {describe_error(error)}"
    missing = UndefinedTable | UndefinedColumn | UndefinedFunction
    if isinstance(error.__cause__, missing) and migrations.find_due():
        return (
            f"The database lacks migrations of this version: {describe_place()}. Run manage.py setup"
            f" first{_ELSE if is_embedded() else ''}."
        )
    return ""


# A command without the environment of the server would use an embedded database of its own.
_ELSE = (
    "; if the server uses another database, give this command the environment of the server "
    "(DATABASE_URL, or COMMONHOLD_DATA_DIR)"
)


def is_embedded() -> bool:
    return bool(connection.settings_dict.get("EMBEDDED"))


def describe_place() -> str:
    """Where the database is, without its password."""
    where = connection.settings_dict
    if is_embedded():
        return f"embedded, in {data_dir()}"
    return f"{where['NAME']} at {where['HOST'] or 'the local socket'}:{where['PORT'] or 5432}"


def require_embedded_files() -> None:
    """Raise BadSetting if the embedded server would be created by the next connection."""
    if is_embedded() and not embedded().exists():
        raise BadSetting(
            f"DATABASE_URL is not set, and {data_dir()} contains no embedded PostgreSQL"
        )


def is_crowded(message: str) -> bool:
    """Whether libpq's message says that the server, or a pooler, accepts no further connection. An error while
    connecting has no SQLSTATE."""
    return any(words in message for words in _CROWDED)


def _why_no_database(message: str) -> str:
    where = connection.settings_dict
    if is_embedded():
        return f"The embedded PostgreSQL does not answer: {_last_line(message)}"
    reason = _last_line(message)
    if where["PASSWORD"]:
        reason = reason.replace(where["PASSWORD"], "…")
    advice = "" if is_crowded(message) else f" Check {where['SETTING']}."
    return f"Cannot reach the database {describe_place()} as {where['USER'] or 'this user'}: {reason}.{advice}"


def _last_line(output: str) -> str:
    """Return libpq's reason: the last line that is not a hint, without the repeated address."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if "failed:" in line or "error" in line.lower()] or lines
    return (reasons or ["no reason given"])[-1].rpartition("failed: ")[2].rstrip(".")


def migrate() -> bool:
    """Apply the migrations. Returns whether there were any. Only one machine migrates at a time.

    Processes of the previous version may serve requests meanwhile. A migration that needs a lock on
    a table waits for it at most LOCK_BUDGET_MS, because all later statements queue behind it, and
    is then retried. The lock of this function is polled, because lock_timeout would end the wait,
    and a migration on another machine may take longer.
    """
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_MIGRATION_LOCK])
            if cursor.fetchone() == (True,):
                break
            time.sleep(0.2)
        try:
            due = migrations.find_due()
            if due:
                cursor.execute("SET statement_timeout = 0")
                cursor.execute(f"SET lock_timeout = {LOCK_BUDGET_MS}")
                _migrate_patiently()
            return bool(due)
        finally:
            # Also releases the lock and restores the timeout.
            connection.close()


def _migrate_patiently() -> None:
    """Raises BadSetting if other transactions hold a lock for too long."""
    until = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            call_command("migrate", interactive=False, verbosity=0, database=DEFAULT_DB_ALIAS)
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
                raise
            if time.monotonic() > until:
                due = [str(each) for each in migrations.find_due()[:1]] or ["the last one"]
                raise BadSetting(
                    f"The migration {due[0]} needs a lock that another transaction has held for"
                    f" {_LOCK_PATIENCE:.0f} s. End it (see pg_stat_activity), then try again. Applied"
                    " migrations stay."
                ) from None
        time.sleep(_LOCK_PAUSE)


# Static files --------------------------------------------------------------------------------


def collect_static() -> bool:
    """Collect and compress the static files if any has changed; returns whether one has."""
    if settings.DEBUG:
        return False  # whitenoise serves them from their source folders
    root = Path(settings.STATIC_ROOT)
    stamp = root / ".stamp"
    fingerprint = _fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            call_command("collectstatic", interactive=False, verbosity=0)
            stamp.write_text(fingerprint)
    except OSError as error:
        raise BadSetting(
            f"Cannot write the static files to {root}: {error.strerror}; make the folder writable"
        ) from None
    return True


def _fingerprint() -> str:
    """A digest of names and contents, because file times are not kept by a checkout or an image
    layer."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for path, storage in sorted(finder.list([]), key=lambda found: str(found[0])):
            digest.update(str(path).encode())
            with storage.open(path) as file:
                digest.update(file.read())
    return digest.hexdigest()
