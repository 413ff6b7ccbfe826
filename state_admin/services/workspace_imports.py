"""Creates a workspace from a file that workspace_exports.py wrote, for operators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import BinaryIO, Final

from django.db import Error, IntegrityError, transaction
from django.db.models.functions import Now

from state_admin.domain.workspace_files import BadFile, Header, Reader, Row
from state_admin.models import (
    ApiToken,
    Membership,
    Webhook,
    WebhookStatus,
    Workspace,
    feed_eras,
    workspace_copies_sql,
)
from state_admin.models.workspace_tables import OLDEST_MIGRATION, TABLES

from . import journal
from .actors import system_actor
from .batching import split_by_size
from .config_secrets import import_secrets
from .errors import Conflict, Invalid
from .users import cancel_links_of_new_members
from .webhook_secrets import live_secrets
from .workspaces import check_slug

# The most rows, and characters of values, in memory. A batch is read completely before a transaction
# copies it into a temporary table: a transaction that waits for the file would delay the change feed.
_MOST_ROWS: Final = 2000
_MOST_BYTES: Final = 2 * 1024 * 1024


@dataclass(frozen=True)
class WorkspaceImport:
    """The new workspace, and what the operator has to do for it: the names of tokens and webhooks without
    a secret, the places of missing secrets in the config registry (`namespace/key pointer`), and the
    members of the source that are not members of the copy."""

    workspace: Workspace
    rows: Mapping[str, int]
    tokens: list[str]
    webhooks: list[str]
    secrets: list[str]
    members: list[str]


def import_workspace(*, stream: BinaryIO, slug: str = "", members: bool = False) -> WorkspaceImport:
    """Create the workspace `slug` (as in the file by default) from a file: all of it, or nothing.

    First, the whole file is copied into temporary tables and checked. Then one transaction inserts the
    rows. The memory used does not depend on their number. `members`: users who have the same names as
    members of the source get their roles and saved views, and their unused login links stop working.

    Raises Conflict if the workspace exists, and Invalid if the file has another format, is of a newer
    or too old version, is truncated or changed, or contradicts itself.
    """
    try:
        reader = Reader(stream)
        _check_version(reader.header)
        slug = slug or reader.header.workspace
        check_slug(slug)
        if Workspace.objects.filter(slug=slug).exists():
            raise _exists(slug)
        _check_tables(reader.header)
        columns = {name: each.columns for name, each in reader.header.tables.items()}
        with _staging(columns):
            for name, rows in groupby(reader.read_rows(), attrgetter("table")):
                sized = ((row, sum(len(each) for each in row.values if each)) for row in rows)
                for batch in split_by_size(sized, _MOST_ROWS, _MOST_BYTES):
                    _stage(name, columns[name], batch)
                    batch.clear()  # before the next one is read
            _check_references()
            if reader.header.clock > workspace_copies_sql.read_clock():
                feed_eras.begin_era()
            return _store(reader.header, slug, members)
    except BadFile as bad:
        raise Invalid(f"the file cannot be imported: {bad}") from bad


def _check_version(header: Header) -> None:
    if header.migration not in workspace_copies_sql.list_migrations():
        raise BadFile(
            1,
            f"the file is of a newer version ({header.commonhold_version},"
            f" {header.migration}); install that version, and run manage.py setup",
        )
    if header.migration < OLDEST_MIGRATION:
        raise BadFile(
            1,
            f"the file is of a version that is too old ({header.commonhold_version},"
            f" {header.migration}); upgrade its server, and export the workspace again",
        )


def _exists(slug: str) -> Conflict:
    return Conflict(f"workspace already exists: {slug}", hint="Choose another name with --as.")


def _check_tables(header: Header) -> None:
    tables = {table.name: table for table in TABLES}
    for name, summary in header.tables.items():
        if name not in tables:
            raise BadFile(1, f"unknown table: {name}")
        given = set(summary.columns)
        if len(given) < len(summary.columns):
            raise BadFile(1, f"repeated columns of {name}")
        if unknown := given - tables[name].fields.keys():
            raise BadFile(1, f"unknown columns of {name}: {', '.join(sorted(unknown))}")
        if missing := tables[name].required - given:
            raise BadFile(1, f"missing columns of {name}: {', '.join(sorted(missing))}")
    workspaces = header.tables.get(Workspace._meta.db_table)
    if workspaces is None or workspaces.rows != 1:
        raise BadFile(1, "the file must have one workspace")


@contextlib.contextmanager
def _staging(columns: Mapping[str, tuple[str, ...]]) -> Iterator[None]:
    with transaction.atomic():
        workspace_copies_sql.create_staging(columns)
    try:
        yield
    finally:
        # If this fails, PostgreSQL drops them when the connection closes.
        with contextlib.suppress(Error), transaction.atomic():
            workspace_copies_sql.drop_staging()


def _stage(name: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    (table,) = (each for each in TABLES if each.name == name)
    lines = [(row.line, row.values) for row in rows]
    try:
        with transaction.atomic():
            workspace_copies_sql.begin_copying()
            workspace_copies_sql.stage_rows(table, columns, lines)
    except workspace_copies_sql.BadRow as bad:
        raise BadFile(bad.line, f"{name}: {bad}") from bad


def _check_references() -> None:
    try:
        with transaction.atomic():
            workspace_copies_sql.begin_copying()
            workspace_copies_sql.index_staging()
            broken = map(workspace_copies_sql.find_broken_reference, TABLES)
            for table, found in zip(TABLES, broken, strict=True):
                if found is not None:
                    raise BadFile(
                        found.line,
                        f"{table.name}: {found.column} is {found.value}, and the file has no such"
                        " row",
                    )
    except IntegrityError as error:
        raise _contradiction(error) from error


def _contradiction(error: IntegrityError) -> Invalid:
    return Invalid(f"the rows of the file contradict each other: {str(error).splitlines()[0]}")


def _store(header: Header, slug: str, members: bool) -> WorkspaceImport:
    try:
        with transaction.atomic():
            workspace_copies_sql.begin_copying()
            workspace_id = workspace_copies_sql.name_workspace(slug)
            rows = {
                table.name: workspace_copies_sql.insert_rows(
                    table, header.tables[table.name].columns
                )
                for table in TABLES
                if table.name in header.tables
                if table.stored and (members or not table.of_members)
            }
            secrets = import_secrets(
                workspace_copies_sql.read_secrets(),
                workspace_id=workspace_id,
                source_id=header.workspace_id,
            )
            webhooks = _disable_webhooks(workspace_id)
            _record(workspace_id, slug, header)
            workspace_copies_sql.check_constraints()
            memberships = Membership.objects.filter(workspace_id=workspace_id)
            cancel_links_of_new_members(*memberships.values_list("user_id", flat=True))
            return WorkspaceImport(
                workspace=Workspace.objects.get(pk=workspace_id),
                rows=rows,
                tokens=_find_tokens(workspace_id),
                webhooks=webhooks,
                secrets=secrets,
                members=_find_missing_members(workspace_id),
            )
    except IntegrityError as error:
        if "workspaces_slug_unique" in str(error):
            raise _exists(slug) from error
        raise _contradiction(error) from error


def _disable_webhooks(workspace_id: int) -> list[str]:
    """Disable the active webhooks that have no secret to sign with. Returns the names of all webhooks
    without one."""
    silent = [
        hook
        for hook in Webhook.objects.filter(workspace_id=workspace_id).order_by("pk")
        if not live_secrets(hook.pk)
    ]
    active = Webhook.objects.filter(pk__in=[hook.pk for hook in silent]).active()
    active.update(
        status=WebhookStatus.DISABLED,
        status_reason="imported without its secret; rotate the secret, then resume",
        updated_at=Now(),
    )
    return [hook.name for hook in silent]


def _record(workspace_id: int, slug: str, header: Header) -> None:
    detail = {
        "source": header.workspace,
        "exported_at": header.exported_at,
        "rows": sum(each.rows for each in header.tables.values()),
    }
    trace = journal.Trace("workspace.import", key=slug, detail=detail)
    journal.record(system_actor(workspace_id, "operator"), [trace])


def _find_tokens(workspace_id: int) -> list[str]:
    rows = ApiToken.objects.filter(workspace_id=workspace_id, digest="").live()
    return list(rows.order_by("pk").values_list("name", flat=True))


def _find_missing_members(workspace_id: int) -> list[str]:
    rows = Membership.objects.filter(workspace_id=workspace_id)
    present = set(rows.values_list("user__username", flat=True))
    return [name for name in workspace_copies_sql.read_members() if name not in present]
