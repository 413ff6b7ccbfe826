"""Prepares the database of an installation whose processes run separately."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from project import broker, migrations, startup
from project.env import BadSetting
from state_admin.services.bootstrap import ensure_first_run


class Command(BaseCommand):
    help = (
        "Prepare the database: apply the migrations, and create the workspace `default`, its "
        "admin and an API token if they do not exist. If `default` was deleted, they are created only "
        "when no other workspace is left. Prints the token when it creates it, and a "
        "login link until the first login. Run it before the processes of each new version; "
        "several at once wait for each other."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing: list the migrations that the database lacks, and exit with 1 if "
            "there are any",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            broker.check()
            startup.reach_database()
            if options["check"]:
                self._check()
                return
            migrated = startup.migrate()
        except BadSetting as error:
            sys.exit(str(error))
        broker.prepare()
        first = ensure_first_run()
        self.stdout.write("Migrated the database." if migrated else "The database is up to date.")
        self.stdout.write(f"Database   {startup.describe_place()}")
        if first.login_url:
            self.stdout.write(f"Log in     {first.login_url}")
        if first.token:
            self.stdout.write(f"API token  {first.token}")

    def _check(self) -> None:
        due = migrations.find_due()
        for migration in due:
            self.stdout.write(str(migration))
        if due:
            sys.exit(1)
        self.stdout.write("The database is up to date.")
