"""`manage.py serve`: all processes of Commonhold, under one supervisor."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from project import supervisor
from project.env import BadSetting
from project.postgres.binaries import ClusterError


class Command(BaseCommand):
    help = "Start PostgreSQL, web, worker and beat; Ctrl-C stops them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--login", action="store_true", help="print a one-time login link for the administrator"
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="start nothing; fail if something else uses the data folder or the port",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        def say(text: str) -> None:
            self.stdout.write(text)
            self.stdout.flush()

        try:
            if options["check"]:
                supervisor.check()
            else:
                supervisor.Supervisor(say, fresh_login=options["login"]).run()
        except (BadSetting, ClusterError) as error:
            sys.exit(str(error))
