"""`manage.py doctor`: what is wrong with this installation, and what to do."""

from __future__ import annotations

from typing import Any

from state_admin.management.diagnosis import diagnose
from state_admin.management.findings import FindingsCommand


class Command(FindingsCommand):
    help = (
        "Check the installation: files, logs, disks, database version and settings, durability, extensions, "
        "permissions, migrations, clocks, standbys, dead rows, indexes and their bloat, broker, worker, beat, secrets, "
        "webhooks and runs. Says what to do about each problem, and repairs nothing. "
        "Exits with 1 if there is an error."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(diagnose(), as_json=options["json"])
