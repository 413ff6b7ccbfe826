"""Creates a workspace from a file."""

from __future__ import annotations

import gzip
import sys
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.services.errors import Problem
from state_admin.services.workspace_imports import WorkspaceImport, import_workspace

_GZIP: Final = b"\x1f"  # the first byte (RFC 1952); JSON never begins with it


class Command(BaseCommand):
    help = (
        "Create a workspace from a file that export_workspace wrote: all of it, or nothing. The "
        "server may be running. Prints which secrets have to be set again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="`-` reads standard input")
        parser.add_argument(
            "--as",
            dest="slug",
            default="",
            metavar="WORKSPACE",
            help="default: the name in the file",
        )
        parser.add_argument(
            "--members",
            action="store_true",
            help="give users with the same names the members' roles and saved views",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            with _open(path) as stream:
                done = import_workspace(
                    stream=stream, slug=options["slug"], members=options["members"]
                )
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}".strip()) from problem
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from error
        self._report(done)

    def _report(self, done: WorkspaceImport) -> None:
        self.stdout.write(f"imported {done.workspace.slug}: {sum(done.rows.values()):,} rows")
        for title, names in {
            "tokens without a secret (rotate or revoke them)": done.tokens,
            "webhooks without a secret (rotate it, then resume)": done.webhooks,
            "secrets of the config registry to write again": done.secrets,
            "members that were not added": done.members,
        }.items():
            if names:
                self.stdout.write(f"{title}: {', '.join(names)}")


def _open(path: Path) -> BinaryIO:
    """The lines of the file. The first byte tells whether it is compressed: standard input has no name,
    and browsers may decompress a download without renaming it. A pipe may not have a second one yet."""
    standard = str(path) == "-"
    file = cast(BufferedReader, sys.stdin.buffer) if standard else path.open("rb")
    return cast(BinaryIO, gzip.open(file)) if file.peek(1)[:1] == _GZIP else file
