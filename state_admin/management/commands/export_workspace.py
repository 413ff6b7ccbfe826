"""Writes a workspace to a file."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.management.drafts import draft_of
from state_admin.models import MoveState
from state_admin.services import replicas
from state_admin.services.errors import Problem
from state_admin.services.workspace_exports import export_workspace
from state_admin.services.workspace_moves import find_departure


class Command(BaseCommand):
    help = (
        "Write everything that belongs to a workspace as lines of JSON, at one moment. The server "
        "may be running. import_workspace creates a workspace from the file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="WORKSPACE")
        parser.add_argument(
            "--to",
            type=Path,
            metavar="FILE",
            help="default: standard output; with the ending .gz it is compressed",
        )
        parser.add_argument(
            "--secrets",
            action="store_true",
            help="include encrypted secrets of the config registry, salts of webhooks and digests "
            "of tokens, for a server with the same keys",
        )
        parser.add_argument(
            "--replica",
            action="store_true",
            help="read from a server of DATABASE_REPLICA_URLS instead of the primary",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path | None = options["to"]
        moved = find_departure(options["slug"])
        if moved and moved.state == MoveState.REMOVING:
            raise CommandError(
                f"the workspace was moved to the cell {moved.cell}, and its rows are being deleted here. "
                "Export it in that cell"
            )
        try:
            source = replicas.on_replica() if options["replica"] else nullcontext()
            with source, _open(path) as stream:
                header = export_workspace(
                    slug=options["slug"], stream=stream, secrets=options["secrets"]
                )
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}".strip()) from problem
        except FileExistsError as error:
            raise CommandError(
                f"{error.filename} exists: another export writes it, or one was killed. If none is "
                "running, delete it."
            ) from error
        except (
            BrokenPipeError
        ):  # manage.py ends without an error if the reader of standard output has closed it
            raise
        except OSError as error:
            raise CommandError(
                f"cannot write {path or 'to standard output'}: {error.strerror}"
            ) from error
        rows = sum(each.rows for each in header.tables.values())
        self.stderr.write(f"exported {header.workspace}: {rows:,} rows")
        if moved:
            self.stderr.write(
                f"The workspace was moved to the cell {moved.cell}: the file has its state before the "
                "move. To include later changes, export the workspace in that cell."
            )


@contextmanager
def _open(path: Path | None) -> Iterator[BinaryIO]:
    """The stream to write to. A file has the ending .part until it is complete. Only its owner may
    read it."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = draft_of(path)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
