"""Begins a new era of the change feed's clock."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from state_admin.models.feed_eras import begin_era


class Command(BaseCommand):
    help = (
        "Expire the cursors of the change feed that are newer than the newest change. Needed "
        "only after a copy of PostgreSQL's files, such as a snapshot of a volume, was put in "
        "place of newer files: the server recognizes other restores and failovers itself."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        begin_era()
        self.stdout.write(
            "Readers of the change feed that have read changes which this database does not "
            "contain get 410. All others continue."
        )
