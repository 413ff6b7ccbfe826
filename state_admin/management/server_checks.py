"""The checks of `manage.py doctor` on the database server, its disk, and what the role of DATABASE_URL
may do."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection

from project.env import data_dir, list_settings, read_environment
from project.postgres.base import embedded
from state_admin.management.findings import Finding
from state_admin.models import database_faults, freezing_sql
from state_admin.models.database import keeps_statements

_FREE_BYTES: Final = 1 << 30
# Of difflib: DATABASE_URI is a misspelled DATABASE_URL (0.92), and COMMONHOLD_PORT, which Kubernetes
# sets, is not a misspelled COMMONHOLD_ROLE (0.8).
_SIMILAR: Final = 0.85
# The clients read it (docs/guides), and it resembles COMMONHOLD_ROLE.
_OF_CLIENTS: Final = "COMMONHOLD_URL"
_KEY_LENGTH: Final = 32
_OTHERS: Final = 0o007  # the bits of a mode for who is neither the owner nor in the group
_SESSION: Final = "SELECT pg_backend_pid(), pg_postmaster_start_time()"


def check_environment() -> Iterator[Finding]:
    """Variables that are probably misspelled settings: the server ignores them."""
    settings_by_name = {setting.name: setting for setting in list_settings()}
    for name in sorted(os.environ):
        setting = settings_by_name.get(name.removesuffix("_FILE"))
        # OpenTelemetry's SDK reads more variables than are declared.
        of_others = name == _OF_CLIENTS or name.startswith("OTEL_")
        if name in settings_by_name or (setting and setting.is_secret) or of_others:
            continue
        text = f"{name} is not a setting, and is ignored"
        if setting:
            remedy = f"Set {setting.name}: only secrets can come from a file."
        elif similar := difflib.get_close_matches(name, settings_by_name, 1, _SIMILAR):
            remedy = f"If you meant {similar[0]}, correct the name, and restart the processes."
        else:
            continue
        yield Finding("settings", "warning", text, remedy)


def check_secret_key() -> Iterator[Finding]:
    key = read_environment().secret_key
    if key and len(key) < _KEY_LENGTH:
        yield Finding(
            "secret key",
            "warning",
            f"SECRET_KEY has fewer than {_KEY_LENGTH} characters: who guesses it can forge sessions",
            "Set a random one, such as the output of openssl rand -base64 48, and SECRET_KEY_FALLBACKS "
            "to the old one. Restart the processes, and run manage.py rotate_secrets.",
        )


def check_data_folder() -> Iterator[Finding]:
    folder = data_dir()  # Also corrects the mode of the folder.
    yield _free_space("disk", folder, "move COMMONHOLD_DATA_DIR")
    key = folder / "secret_key"
    if read_environment().secret_key or not key.exists():
        return
    mode = stat.S_IMODE(key.stat().st_mode)
    if mode & 0o077:
        yield Finding(
            "secret key",
            "error",
            f"{key} has mode {mode:03o}, so other users may access it",
            f"Run chmod 600 {key}. If others had access to its folder, replace the key: set SECRET_KEY "
            "to a new one and SECRET_KEY_FALLBACKS to the old one.",
        )
    else:
        yield Finding("secret key", "ok", f"only its owner may read {key}")


def check_log_files() -> Iterator[Finding]:
    """Files that have ids and names, but no values, and for which the group of the file may be right
    (of a program that forwards logs), but not all users of the machine."""
    stream = settings.AUDIT_STREAM
    log = embedded().log
    files = [log, log.with_suffix(".log.1")]
    if stream and stream.scheme == "file":
        files.append(Path(stream.path))  # the folder of its files
    found = False
    for path in files:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
        if mode & _OTHERS:
            found = True
            text = f"{path} has mode {mode:03o}, so all users of the machine may read it"
            yield Finding("log files", "warning", text, f"Run chmod o-rwx {path}.")
    if not found:
        yield Finding(
            "log files", "ok", "other users may read none of those that the server writes"
        )


def _free_space(check: str, folder: Path, alternative: str) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:,.1f} GiB free in {folder}"
    if free < _FREE_BYTES:
        return Finding(check, "error", text, f"Free space, or {alternative}.")
    return Finding(check, "ok", text)


def check_database_disk() -> Iterator[Finding]:
    folder = find_local_files()
    if folder is None:
        yield Finding(
            "database disk",
            "ok",
            "not checked: the files of the server are not on this machine, or not visible to this role",
            "Watch the free space on the machine of the database server.",
        )
    elif folder != data_dir():  # otherwise checked as that of the data folder
        yield _free_space("database disk", folder, "give the server a larger disk")


def find_local_files() -> Path | None:
    """The folder of the database's files, if they are on this machine and the role may know it."""
    if connection.settings_dict.get("EMBEDDED"):
        return data_dir()
    if not connection.settings_dict["HOST"].startswith("/"):  # not a socket
        return None
    name = database_faults.read_settings("data_directory").get("data_directory")
    folder = Path(name) if name else None
    return folder if folder and folder.is_dir() else None


def check_settings() -> Iterator[Finding]:
    # Every connection requires them (project/postgres/session.py), so they are as they must be.
    durable = ("fsync", "full_page_writes", "synchronous_commit")
    vacuum = ("autovacuum", "track_counts")
    log = ("logging_collector", "log_file_mode")
    values = database_faults.read_settings(*durable, *vacuum, *log)
    text = ", ".join(f"{name} = {values[name]}" for name in durable)
    yield Finding("durability", "ok", f"a crash loses no confirmed write: {text}")
    for name in vacuum:
        if values[name] != "on":
            yield Finding(
                "autovacuum",
                "error",
                f"{name} is {values[name]}, so dead rows stay, plans get worse, and the server stops "
                "when its transaction ids are used up",
                f"ALTER SYSTEM SET {name} = on, then SELECT pg_reload_conf(). If it is also set for a "
                "role, a database or on the command line of the server, correct it there.",
            )
    if all(values[name] == "on" for name in vacuum):
        yield Finding("autovacuum", "ok", ", ".join(f"{name} = on" for name in vacuum))
    mode = values["log_file_mode"]
    if values["logging_collector"] == "on" and int(mode, 8) & _OTHERS:
        yield Finding(
            "database log files",
            "warning",
            f"log_file_mode is {mode}, so all users of the database server's machine may read its log",
            "ALTER SYSTEM SET log_file_mode = '0640', then SELECT pg_reload_conf(). Run chmod o-rwx on "
            "the existing files in log_directory.",
        )
    failures = database_faults.read_failures()
    if failures.wal_failed_at:
        yield Finding(
            "WAL archive",
            "error",
            f"the last attempt failed ({failures.wal}, {failures.wal_failed_at:%Y-%m-%d %H:%M} UTC): "
            "the backup is behind, and the server keeps WAL until its disk is full",
            "The log of the server has the reason. Correct archive_command or its target; the server "
            "then archives what waits.",
        )
    if failures.damaged:
        yield Finding(
            "checksums",
            "error",
            f"checksum failures: {failures.damaged:,}, the last one at "
            f"{failures.damaged_at:%Y-%m-%d %H:%M} UTC",
            "Check the disk. Fail over to a standby, or restore a backup as docs/operations.md "
            "describes; the log of the server names the files.",
        )
    if keeps_statements():
        yield Finding("extensions", "ok", "pg_stat_statements is installed")
    else:
        yield Finding(
            "extensions",
            "ok",
            "none is required; without pg_stat_statements the page System lists running statements "
            "only, not those with the most time in total",
            "To install it: add pg_stat_statements to shared_preload_libraries, restart the server, "
            "and run CREATE EXTENSION pg_stat_statements in this database.",
        )


def check_pooler() -> Iterator[Finding]:
    """A pooler in transaction mode gives the idle server process of one connection to the next one."""
    connection.ensure_connection()
    other = connection.copy()
    try:
        with connection.cursor() as first, other.cursor() as second:
            first.execute(_SESSION)
            second.execute("BEGIN")
            second.execute(_SESSION)
            shared = first.fetchone() == second.fetchone()
            second.execute("ROLLBACK")
    finally:
        other.close()
    if shared:
        yield Finding(
            "pooler",
            "error",
            "DATABASE_URL leads through a pooler in transaction mode, so sessions lose their settings, "
            "such as timeouts, and notifications",
            "Set pool_mode = session in the pooler, or name the server in DATABASE_URL.",
        )


def check_permissions() -> Iterator[Finding]:
    privileges = database_faults.read_privileges()
    faults = []
    if not privileges.temporary:
        faults.append(
            (
                "cannot create temporary tables, so import_workspace and move_workspace fail",
                f'GRANT TEMPORARY ON DATABASE "{privileges.database}" TO "{privileges.role}".',
            )
        )
    if unowned := freezing_sql.list_unowned():
        faults.append(
            (
                f"does not own {len(unowned):,} of the tables, such as {unowned[0]}, so migrations and "
                "move_workspace fail",
                f'Connect as their owner, or ALTER TABLE … OWNER TO "{privileges.role}" for each.',
            )
        )
    if not privileges.statistics:
        faults.append(
            (
                "sees no transactions of other roles and no standbys, so the checks of both may miss "
                "some",
                f'GRANT pg_monitor TO "{privileges.role}".',
            )
        )
    for text, remedy in faults:
        yield Finding("permissions", "warning", f"the role {privileges.role} {text}", remedy)
    if not faults:
        yield Finding("permissions", "ok", f"the role {privileges.role} has all that commands need")
