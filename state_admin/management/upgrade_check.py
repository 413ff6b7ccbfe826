"""`manage.py upgrade --check`: whether the database can be upgraded while processes of the previous
version serve requests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from project import migrations, startup
from project.upgrades import estimates
from project.upgrades.estimates import Size
from project.upgrades.rehearsal import Step, rehearse
from state_admin.management.findings import Finding
from state_admin.management.server_checks import find_local_files
from state_admin.models import database_faults

# How long other statements may wait for a migration that holds its locks.
_BUDGET_SECONDS: Final = 2.0
_LOCK_SECONDS: Final = startup.LOCK_BUDGET_MS / 1000
_STOP: Final = (
    "Stop all processes of the previous version, run manage.py setup, and start the new processes."
)


def check_upgrade() -> Iterator[Finding]:
    """The findings for each migration that the database lacks. Changes nothing."""
    due = migrations.find_due()
    if not due:
        yield Finding("migrations", "ok", "the database is up to date")
        return
    applied = MigrationRecorder(connection).applied_migrations()
    if not applied:
        yield Finding(
            "migrations", "ok", f"the database is empty; {len(due)} migrations create its tables"
        )
        return
    yield Finding("migrations", "ok", f"{len(due)} to apply")
    rehearsal = rehearse(applied.keys())
    sizes = estimates.read_sizes()
    for step in rehearsal.steps:
        yield from _check_step(step, sizes)
    yield from _check_breaks(rehearsal.breaks)
    yield from _check_transactions(rehearsal.steps)
    # Migrations run one after the other, and what they add stays.
    effects = [each for step in rehearsal.steps for each in step.effects]
    yield from _check_disk(sum(estimates.disk_bytes(each, sizes) for each in effects))


def _check_step(step: Step, sizes: dict[str, Size]) -> Iterator[Finding]:
    blocked = _find_blocked(step, sizes)
    long = {table: seconds for table, seconds in blocked.items() if seconds > _BUDGET_SECONDS}
    for table, seconds in long.items():
        reads = any(effects.blocks_reads(table) for effects in step.effects)
        access = "reads and writes" if reads else "writes"
        size = sizes[table].total / 2**20
        text = f"{access} of {table} ({size:,.0f} MiB) wait up to {seconds:,.0f} s"
        yield Finding(step.migration, "error", text, _STOP)
    parts = []
    if brief := [table for table in blocked if table not in long]:
        parts.append(
            f"locks {', '.join(brief)} for less than {_BUDGET_SECONDS:g} s, and waits for the locks"
            f" for at most {_LOCK_SECONDS:g} s at a time"
        )
    for index in (index for each in step.effects for index in each.indexes if index.concurrent):
        seconds = estimates.index_seconds(index, sizes[index.table])
        parts.append(f"builds the index {index.name} beside writes in up to {seconds:,.0f} s")
    if parts or not long:
        text = "; ".join(parts) or "blocks no table"
        yield Finding(step.migration, "ok", text)


def _find_blocked(step: Step, sizes: dict[str, Size]) -> dict[str, float]:
    """For each table that a migration blocks: the longest time in one transaction."""
    blocked: dict[str, float] = {}
    for effects in step.effects:
        for table, seconds in estimates.seconds_blocked(effects, sizes).items():
            blocked[table] = max(blocked.get(table, 0.0), seconds)
    return blocked


def _check_breaks(breaks: list[str]) -> Iterator[Finding]:
    for reason in breaks:
        yield Finding("previous version", "error", reason, _STOP)
    if not breaks:
        yield Finding("previous version", "ok", "can use the new schema")


def _check_transactions(steps: list[Step]) -> Iterator[Finding]:
    if not any(effects.locks for step in steps for effects in step.effects):
        return
    for one in database_faults.find_long_transactions(int(_BUDGET_SECONDS)):
        name = f"connection {one.pid} ({one.who})" if one.pid else f"prepared transaction {one.who}"
        yield Finding(
            "transactions",
            "warning",
            f"{name} is open for {one.seconds} s; migrations may have to wait for it",
            "Wait until it ends, or end it.",
        )


def _check_disk(needed: int) -> Iterator[Finding]:
    text = f"up to {needed / 2**20:,.0f} MiB needed"
    if not needed:
        return
    folder = find_local_files()
    if folder is None:
        remedy = (
            "Compare with the free space of the database server, which cannot be read from here."
        )
        yield Finding("disk", "warning", text, remedy)
        return
    free = shutil.disk_usage(folder).free
    text = f"{text}, {free / 2**20:,.0f} MiB free in {folder}"
    if needed > free:
        yield Finding("disk", "error", text, "Free space, or give the server a larger disk.")
    else:
        yield Finding("disk", "ok", text)
