"""Deletes a workspace."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from msgspec.structs import asdict

from state_admin.services.dry_runs import discard_writes
from state_admin.services.errors import Problem
from state_admin.services.workspace_deletions import delete_workspace


class Command(BaseCommand):
    help = (
        "Delete a workspace with everything in it. It cannot be undone. Its tokens are refused and its name "
        "is free at once; the worker deletes the rows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workspace", help="the name of the workspace")
        parser.add_argument(
            "--contents",
            choices=["delete"],
            default="",
            help="with delete, also if the workspace has entries or threads",
        )
        parser.add_argument("--reason", default="", help="the reason, for the audit log")
        parser.add_argument(
            "--dry-run", action="store_true", help="count the contents, but change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug: str = options["workspace"]
        try:
            with discard_writes() if options["dry_run"] else nullcontext():
                found = delete_workspace(
                    slug=slug, contents=options["contents"], reason=options["reason"]
                )
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}".strip()) from problem
        begin = "Would delete" if options["dry_run"] else "Deleted"
        counts = ", ".join(f"{name} {count:,}" for name, count in asdict(found).items())
        self.stdout.write(f"{begin} the workspace {slug}: {counts}.")
