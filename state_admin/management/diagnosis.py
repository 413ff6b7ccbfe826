"""The checks of `manage.py doctor`: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.files.storage import storages
from django.db import DatabaseError, connection
from django.utils import timezone

from project import broker, migrations, startup
from project.env import BadSetting
from project.failures import describe_error
from project.postgres import replication
from project.postgres.base import embedded
from project.postgres.binaries import ClusterError
from project.postgres.session import find_log_leaks
from state_admin.management import server_checks
from state_admin.management.findings import Finding, Level
from state_admin.models import (
    MoveSide,
    MoveState,
    Run,
    Sweep,
    Webhook,
    WebhookStatus,
    Workspace,
    WorkspaceMove,
    audit_stream,
    database_faults,
)
from state_admin.models import search as search_models
from state_admin.models.database import CROWDED, connections_used, describe_database, read_time
from state_admin.models.sweeps import WORKER_SILENCE, newest_sweep
from state_admin.services import config_secrets, replicas, webhook_secrets

_SKEW_SECONDS: Final = 2.0
_LONG_SECONDS: Final = 300
_SLOT_BYTES: Final = 1 << 30
_OLD_TRANSACTIONS: Final = 1_000_000_000
_LATE_INDEX: Final = timedelta(minutes=10)
_LATE_STREAM: Final = timedelta(minutes=15)
_LATE_HOOK: Final = timedelta(minutes=10)
_LATE_REMOVAL: Final = timedelta(hours=1)
_DEAD_ROWS: Final = 100_000
# An index whose keys are inserted in any order is two thirds full, which is not a fault.
_WASTED_BYTES: Final = 100 << 20
_NEEDED_PART: Final = 0.4
_MOST_EXAMPLES: Final = 5
_RAISE_CONNECTIONS: Final = (
    "Raise max_connections, or lower WEB_WORKERS, WEB_THREADS or WORKER_THREADS. pg_stat_activity shows who has "
    "the connections."
)


Check = Callable[[], Iterator[Finding]]


def diagnose() -> Iterator[Finding]:
    """The findings of all checks, one after the other. Repairs nothing."""
    yield from _guarded("files", _check_files)
    try:
        startup.require_embedded_files()
    except BadSetting as error:
        remedy = (
            "Run doctor with the environment of the server: its DATABASE_URL, or its COMMONHOLD_DATA_DIR. "
            "A new server has no database before its first start."
        )
        yield Finding("database", "error", str(error), remedy)
        return
    try:
        startup.reach_database()
    except (BadSetting, ClusterError) as error:
        yield Finding("database", "error", str(error), _remedy_without_database(str(error)))
        return
    due = False
    for name, check in _OF_THE_SERVER.items():
        for finding in _guarded(name, check):
            due = due or (finding.check == "migrations" and finding.level == "error")
            yield finding
    if due:  # the other checks read tables and indexes that may not exist yet
        return
    for name, check in _OF_THE_ROWS.items():
        yield from _guarded(name, check)


def _remedy_without_database(problem: str) -> str:
    if startup.is_crowded(problem):
        return _RAISE_CONNECTIONS
    if startup.is_embedded():
        return (
            f"Change the settings that the message names, or read {embedded().log}. If its processes hang "
            "although the disk works, kill them: the next connection starts it again."
        )
    return "Start it, correct DATABASE_URL, or change the settings that the message names."


def _guarded(name: str, check: Check) -> Iterator[Finding]:
    """The findings of a check, or that it failed; the next checks run in any case."""
    try:
        yield from check()
    except (DatabaseError, OSError, BadSetting) as error:
        remedy = "Remove the cause, and run doctor again."
        if isinstance(error, BadSetting):
            why = str(error)  # contains no secret
        else:
            why = describe_error(error)
            remedy += " Appendix A of the PostgreSQL manual explains a SQLSTATE."
        yield Finding(name, "error", f"cannot be checked: {why}", remedy)


def _check_files() -> Iterator[Finding]:
    yield from server_checks.check_environment()
    yield from server_checks.check_secret_key()
    yield from server_checks.check_data_folder()
    yield from server_checks.check_log_files()
    # Only the storage of production reads a manifest.
    if not getattr(storages["staticfiles"], "hashed_files", True):
        yield Finding(
            "static files",
            "error",
            f"{settings.STATIC_ROOT} contains no collected files, so pages cannot be shown",
            "Run manage.py collectstatic --noinput.",
        )


def _check_server() -> Iterator[Finding]:
    database = describe_database()
    used, most = connections_used()
    text = (
        f"PostgreSQL {database.version} ({startup.describe_place()}), "
        f"{database.size_bytes / 2**20:,.0f} MiB, {used:,} of {most:,} connections"
    )
    if used > CROWDED * most:
        yield Finding("database", "warning", text, _RAISE_CONNECTIONS)
    else:
        yield Finding("database", "ok", text)
    connection.ensure_connection()
    if leaks := find_log_leaks(connection.connection):
        names = ", ".join(sorted(leaks))
        yield Finding(
            "database log",
            "warning",
            f"the server may log values: {names}",
            f'As a superuser: GRANT SET ON PARAMETER {names} TO "{database_faults.read_privileges().role}". '
            "Then restart the processes.",
        )


def _check_migrations() -> Iterator[Finding]:
    due = migrations.find_due()
    if due:
        names = ", ".join(f"{step.app_label}.{step.name}" for step in due[:_MOST_EXAMPLES])
        yield Finding("migrations", "error", f"{len(due)} due: {names}", "Run manage.py setup.")
    else:
        yield Finding("migrations", "ok", "all applied")


def _check_clock() -> Iterator[Finding]:
    before = time.time()
    server = read_time().timestamp()
    skew = server - (before + time.time()) / 2
    if abs(skew) > _SKEW_SECONDS:
        yield Finding(
            "clock",
            "warning",
            f"the database server is {abs(skew):,.1f} s {'ahead' if skew > 0 else 'behind'}",
            "Synchronize the clocks of both machines (NTP): expiry of logins and codes depends on "
            "them.",
        )
    else:
        yield Finding("clock", "ok", f"differs from the database server by {abs(skew):.1f} s")


def _check_transactions() -> Iterator[Finding]:
    found = database_faults.find_long_transactions(_LONG_SECONDS)
    for one in found:
        name = f"connection {one.pid} ({one.who})" if one.pid else f"prepared transaction {one.who}"
        end = f"pg_terminate_backend({one.pid})" if one.pid else f"ROLLBACK PREPARED '{one.who}'"
        yield Finding(
            "transactions",
            "warning",
            f"{name} is open for {timedelta(seconds=one.seconds)}; the change feed and the audit "
            "stream wait for it if it has written, and dead rows stay",
            f"End it: {end}.",
        )
    if not found:
        yield Finding("transactions", "ok", "none is open for long")
    age = database_faults.read_transaction_age()
    if age > _OLD_TRANSACTIONS:
        yield Finding(
            "transaction ids",
            "error",
            f"{age:,} since the oldest row that is not frozen; the server refuses writes at two billion",
            "End what holds back vacuum (long transactions, abandoned replication slots), then run VACUUM.",
        )


def _check_standbys() -> Iterator[Finding]:
    standbys = database_faults.read_standbys()
    if standbys.required and not standbys.confirming:
        yield Finding(
            "standbys",
            "error",
            f"no synchronous standby is connected: writes get 503 after {replication.patience():g} s"
            f" ({standbys.waiting} waiting)",
            "Start a standby. To see standbys, the role of DATABASE_URL needs pg_monitor.",
        )
    elif standbys.connected:
        yield Finding(
            "standbys",
            "ok",
            f"{standbys.connected} connected, {standbys.confirming} synchronous, "
            f"{standbys.lag / 2**20:,.0f} MiB behind at most",
        )


def _check_replicas() -> Iterator[Finding]:
    for replica in replicas.describe():
        check = f"read replica {replica.name.removeprefix('replica')}"
        lag = f"{replica.lag_bytes or 0:,} bytes and {replica.lag_seconds or 0:.1f} s behind"
        if replica.reason:
            detail = "" if replica.lag_bytes is None else f" ({lag})"
            yield Finding(
                check,
                "warning",
                f"not used: {replica.reason}{detail}",
                "The primary answers its reads. Start it, or correct DATABASE_REPLICA_URLS.",
            )
        else:
            yield Finding(check, "ok", lag)


def _check_storage() -> Iterator[Finding]:
    for slot in database_faults.find_abandoned_slots():
        if slot.retained_bytes > _SLOT_BYTES:
            yield Finding(
                "replication",
                "warning",
                f"the slot {slot.name} has no reader and keeps "
                f"{slot.retained_bytes / 2**30:,.1f} GiB of WAL",
                f"Start its standby, or drop it: pg_drop_replication_slot('{slot.name}').",
            )
    for table in database_faults.find_bloated_tables(_DEAD_ROWS):
        yield Finding(
            "dead rows",
            "warning",
            f"{table.table} has {table.dead:,} dead rows and {table.live:,} live ones",
            f"Run VACUUM (ANALYZE) {table.table}; find out why autovacuum does not run on it.",
        )
    for index in database_faults.find_bloated_indexes(_WASTED_BYTES, _NEEDED_PART):
        needed = f"{index.needed / 2**20:,.0f} MiB"
        yield Finding(
            "index bloat",
            "warning",
            f"{index.name} has {index.size / 2**20:,.0f} MiB and needs about {needed}",
            f"Run REINDEX INDEX CONCURRENTLY {index.name}: it needs {needed} of free disk, and blocks "
            "neither reads nor writes.",
        )
    missing, invalid = database_faults.find_broken_indexes()
    for name in missing:
        remedy = "Create it as manage.py sqlmigrate shows it."
        yield Finding("indexes", "error", f"{name} is missing", remedy)
    for name in invalid:
        remedy = f"Run REINDEX INDEX CONCURRENTLY {name}."
        yield Finding("indexes", "error", f"{name} is invalid and not used", remedy)
    if not missing and not invalid:
        yield Finding("indexes", "ok", "all present and valid")


def _check_broker() -> Iterator[Finding]:
    where, problem = broker.ping()
    if problem:
        start = "Start manage.py worker" if broker.uses_database() else "Start it"
        remedy = f"{start}, or correct BROKER_URL. No job is lost: sweeps find them."
        yield Finding("broker", "error", f"{where}: {problem}", remedy)
    else:
        yield Finding("broker", "ok", where)


def _check_jobs() -> Iterator[Finding]:
    newest = newest_sweep()
    silent = newest is None or timezone.now() - newest > WORKER_SILENCE
    when = f"the last sweep started {_utc(newest)}" if newest else "no sweep has started yet"
    # Both keep their connections open, with their role as the name of the application.
    connected = database_faults.count_connections(["worker", "beat"])
    for role in ("worker", "beat"):
        if silent and not connected[role]:
            remedy = f"Start manage.py {role}, and read its log."
            yield Finding(
                role, "error", f"not connected to PostgreSQL, and {when}, so jobs wait", remedy
            )
        else:
            state = "connected to PostgreSQL"
            if not connected[role]:
                state = f"not {state} at the moment"
            yield Finding(role, "ok", f"{state}; {when}")
    if silent and all(connected.values()):
        yield Finding(
            "sweeps",
            "error",
            f"worker and beat are connected to PostgreSQL, but {when}, so jobs wait",
            "Check the broker above. Read the logs of worker and beat, and restart them.",
        )
    for sweep in Sweep.objects.exclude(error=""):
        remedy = "Its traceback is in the log of the worker. It is repeated."
        yield Finding("sweeps", "error", f"{sweep.name} failed: {sweep.error}", remedy)
    late = search_models.SearchPosition.objects.filter(at__lt=timezone.now() - _LATE_INDEX).count()
    if late:
        remedy = "Searches are right but slow. Check worker, beat and transactions above."
        yield Finding("search", "warning", f"the index of {late} workspaces is behind", remedy)


def _check_secrets() -> Iterator[Finding]:
    restore = "Restore the key in CONFIG_SECRET_KEYS or SECRET_KEY_FALLBACKS, or"
    yield from _report_unreadable(
        "secrets",
        config_secrets.unreadable(),
        f"{restore} write the secret again.",
        "all secrets of the config registry can be decrypted",
    )
    if settings.LOGIN_TOTP != "off":
        # Needs the packages of requirements-login.txt.
        from state_admin.services import second_factors

        yield from _report_unreadable(
            "authenticators",
            (f"{name} cannot be decrypted" for name in second_factors.unreadable()),
            f"{restore} reset it: manage.py reset_totp NAME.",
            "all can be decrypted",
        )
    former = list(webhook_secrets.of_former_keys())
    yield from _report_unreadable(
        "webhook secrets",
        (
            f"a secret of {hook} was derived from a SECRET_KEY that is not configured"
            for hook in webhook_secrets.underivable()
        ),
        "Add that SECRET_KEY to SECRET_KEY_FALLBACKS, or rotate the secret on the "
        "page of the webhook and give the new one to its receiver.",
        "" if former else "all are derived from SECRET_KEY",
    )
    yield from _report_unreadable(
        "webhook secrets",
        (f"a secret of {hook} is derived from a key in SECRET_KEY_FALLBACKS" for hook in former),
        "Before you remove that key, rotate the secret on the page of the webhook, give the new one to "
        "its receiver, and wait until the old one has expired.",
        level="warning",
    )


def _report_unreadable(
    check: str, texts: Iterable[str], remedy: str, healthy: str = "", level: Level = "error"
) -> Iterator[Finding]:
    found = list(texts)
    for text in found[:_MOST_EXAMPLES]:
        yield Finding(check, level, text, remedy)
    if len(found) > _MOST_EXAMPLES:
        yield Finding(check, level, f"{len(found) - _MOST_EXAMPLES:,} more, as above", remedy)
    if not found and healthy:
        yield Finding(check, "ok", healthy)


def _check_work() -> Iterator[Finding]:
    # What a frozen workspace has is not processed, and its pages change nothing: `moves` names it.
    hooks = Webhook.objects.failing().filter(workspace__frozen_at=None)
    hooks = hooks.select_related("workspace").order_by("pk")
    for hook in hooks.filter(status=WebhookStatus.DISABLED)[:_MOST_EXAMPLES]:
        name = f"{hook.workspace.slug}/{hook.name}"
        remedy = "Fix the cause, then resume it on its page."
        yield Finding("webhooks", "warning", f"{name} is disabled: {hook.status_reason}", remedy)
    for hook in hooks.filter(status=WebhookStatus.ACTIVE)[:_MOST_EXAMPLES]:
        yield Finding(
            "webhooks",
            "warning",
            f"{hook.workspace.slug}/{hook.name} has been failing since {_utc(hook.failing_since)}",
            "Check its receiver. Its page has the last error.",
        )
    stalled = database_faults.find_stalled_webhooks(_LATE_HOOK, _MOST_EXAMPLES)
    for stall in stalled:
        yield Finding(
            "webhooks",
            "warning",
            f"{stall.name} does not advance: {stall.what} has waited since {_utc(stall.since)}",
            "Check worker, beat, broker and transactions above. If they are healthy, read the log of "
            "the worker and restart it.",
        )
    if not stalled and not hooks.exists():
        yield Finding("webhooks", "ok", "none is failing or stalled")
    runs = Run.objects.stuck().filter(workspace__frozen_at=None)
    if stuck := runs.count_by_workspace():
        parts = [f"{count:,} in {slug}" for slug, count in stuck[:_MOST_EXAMPLES]]
        if others := sum(count for _, count in stuck[_MOST_EXAMPLES:]):
            parts.append(f"{others:,} in other workspaces")
        remedy = "Open the stuck runs in the admin: each page lists what you can do."
        yield Finding("runs", "warning", f"stuck: {', '.join(parts)}", remedy)
    else:
        yield Finding("runs", "ok", "none is stuck")


def _check_moves() -> Iterator[Finding]:
    remedies = {
        MoveState.FROZEN: "run manage.py move_workspace {slug} with --resume or with --undo",
        MoveState.MOVED: (
            "and you will not undo the move, run manage.py move_workspace {slug} --forget: it deletes "
            "the rows in this cell, and the move cannot be undone afterwards"
        ),
        MoveState.REMOVING: "run manage.py move_workspace {slug} --forget again",
        MoveState.COPYING: "continue or undo the move in the source",
        MoveState.COPIED: "continue or undo the move in the source",
        MoveState.CLOSING: "run manage.py move_workspace {slug} --undo in the source again",
    }
    unfinished = WorkspaceMove.objects.filter(state__in=remedies)
    for move in unfinished.order_by("updated_at")[:_MOST_EXAMPLES]:
        cell = f" (move to {move.cell})" if move.side == MoveSide.SOURCE and move.cell else ""
        state = f"{MoveState(move.state).label} since {_utc(move.updated_at)}"
        remedy = remedies[MoveState(move.state)].format(slug=move.slug)
        yield Finding(
            "moves",
            "warning",
            f"{move.slug} {state}{cell}",
            f"If no move_workspace command is running, {remedy}.",
        )
    if not unfinished.exists():
        yield Finding("moves", "ok", "no move of a workspace is unfinished")


def _check_deletions() -> Iterator[Finding]:
    late = Workspace.objects.deleted().filter(frozen_at__lt=timezone.now() - _LATE_REMOVAL)
    for workspace in late[:_MOST_EXAMPLES]:
        yield Finding(
            "deletions",
            "warning",
            f"{workspace.deleted_slug}, deleted {_utc(workspace.frozen_at)}, still has rows",
            "The worker deletes them, which takes long for a large workspace, and waits for the audit stream. "
            "The page System shows how many rows the sweep “remove workspaces” has deleted, and its errors.",
        )
    if not late.exists():
        yield Finding(
            "deletions", "ok", "every workspace deleted more than an hour ago has no rows left"
        )


def _check_audit_stream() -> Iterator[Finding]:
    destination = settings.AUDIT_STREAM
    if destination is None:
        return
    lag = audit_stream.read_lag(destination.url)
    text = f"{lag.text} rows to send, the oldest from {_utc(lag.oldest)}"
    if lag.error:
        yield Finding(
            "audit stream",
            "warning",
            f"{destination.url} has been failing since {_utc(lag.failing_since)}: {lag.error}; {text}",
            "Check the destination. No row is lost: the stream continues where it stopped.",
        )
    elif lag.oldest and timezone.now() - lag.oldest > _LATE_STREAM:
        remedy = "Check worker, beat and transactions above; a first export takes its time."
        yield Finding("audit stream", "warning", text, remedy)
    else:
        yield Finding("audit stream", "ok", text if lag.rows else "all rows were sent")


def _utc(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if moment else "?"


_OF_THE_SERVER: Final[dict[str, Check]] = {
    "database": _check_server,
    "pooler": server_checks.check_pooler,
    "settings": server_checks.check_settings,
    "database disk": server_checks.check_database_disk,
    "permissions": server_checks.check_permissions,
    "migrations": _check_migrations,
    "clock": _check_clock,
    "transactions": _check_transactions,
    "standbys": _check_standbys,
}
_OF_THE_ROWS: Final[dict[str, Check]] = {
    "storage": _check_storage,
    "broker": _check_broker,
    "jobs": _check_jobs,
    "secrets": _check_secrets,
    "webhooks and runs": _check_work,
    "moves": _check_moves,
    "deletions": _check_deletions,
    "audit stream": _check_audit_stream,
    "read replicas": _check_replicas,
}
