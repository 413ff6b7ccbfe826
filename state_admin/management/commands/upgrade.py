"""Upgrades the database while processes of the previous version serve requests, if that is safe."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from project import broker, startup
from project.env import BadSetting
from state_admin.management.findings import FindingsCommand
from state_admin.management.upgrade_check import check_upgrade


class Command(FindingsCommand):
    help = (
        "Apply the migrations of a new version while processes of the previous one serve requests. "
        "Rehearses them on an empty copy of the schema first, and applies none if a migration would "
        "block a table for too long at its current size, if the previous version could not use the "
        "new schema, or if the disk is too small."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing: report what the migrations would do, and exit with 1 if the upgrade "
            "would be refused",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            broker.check()
            startup.reach_database()
            self.report(check_upgrade(), as_json=options["json"])
            if not options["check"] and startup.migrate():
                self.stderr.write("Migrated the database.")
        except BadSetting as error:
            sys.exit(str(error))
