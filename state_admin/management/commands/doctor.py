"""`manage.py doctor`: what is wrong with this installation, and what to do."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from state_admin.management.diagnosis import Finding, diagnose


class Command(BaseCommand):
    help = (
        "Check the installation: files, database, migrations, clocks, indexes, broker, worker, "
        "beat, secrets, webhooks and runs. Says what to do about each problem, and repairs nothing. "
        "Exits with 1 if there is an error."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        write = self._write_json if options["json"] else self._write_text
        levels = set()
        for finding in diagnose():
            write(finding)
            levels.add(finding.level)
        if "error" in levels:
            sys.exit(1)

    def _write_json(self, finding: Finding) -> None:
        self.stdout.write(json.dumps(finding._asdict()))

    def _write_text(self, finding: Finding) -> None:
        style = {
            "ok": self.style.SUCCESS,
            "warning": self.style.WARNING,
            "error": self.style.ERROR,
        }[finding.level]
        self.stdout.write(f"{style(f'{finding.level:<8}')} {finding.check}: {finding.text}")
        if finding.remedy:
            self.stdout.write(f"         → {finding.remedy}")
