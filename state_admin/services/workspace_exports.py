"""Writes all rows of a workspace to a file, for operators. The format is in domain/workspace_files.py."""

from __future__ import annotations

from typing import BinaryIO

from django.utils import timezone

from state_admin import __version__
from state_admin.domain.moments import timestamp
from state_admin.domain.workspace_files import Header, TableSummary, Writer
from state_admin.models import Workspace, workspace_copies_sql
from state_admin.models.workspace_tables import TABLES

from .finding import find_row
from .verification import one_moment


def export_workspace(*, slug: str, stream: BinaryIO, secrets: bool = False) -> Header:
    """Write the workspace `slug` as it is at one moment, in constant memory, and return the first line
    of the file.

    `secrets`: include the encrypted secrets of the config registry, the salts of webhooks' secrets and
    the digests of tokens. Raises NotFound.
    """
    with one_moment():
        workspace_copies_sql.begin_copying()
        workspace = find_row(Workspace.objects.all(), "workspace", slug=slug)
        header = Header(
            commonhold_version=__version__,
            migration=max(workspace_copies_sql.list_migrations()),
            exported_at=timestamp(timezone.now()),
            workspace=slug,
            workspace_id=workspace.pk,
            clock=workspace_copies_sql.read_clock(),
            secrets=secrets,
            tables={
                table.name: TableSummary(
                    rows=workspace_copies_sql.count_rows(table, workspace.pk, secrets=secrets),
                    columns=tuple(table.fields),
                )
                for table in TABLES
            },
        )
        writer = Writer(stream, header)
        for table in TABLES:
            columns = header.tables[table.name].columns
            for row in workspace_copies_sql.read_rows(table, workspace.pk, secrets=secrets):
                writer.write_row(table.name, columns, row)
        writer.finish()
    return header
