"""Prints the routes of this cell, or writes the map files of HAProxy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.management.cell_maps import ContradictoryMaps, render_routes, write_maps
from state_admin.services.cells import list_host_routes, list_token_routes
from state_admin.services.errors import Problem


class Command(BaseCommand):
    help = (
        "Print the routes of this cell for HAProxy: which tokens and host names belong to which cell. "
        "Run it in each cell after a workspace was moved."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--output",
            type=Path,
            metavar="FOLDER",
            help="write the routes to FOLDER/cells, and the maps of all cells to FOLDER/tokens.map and "
            "FOLDER/hosts.map",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            maps = {"tokens": list_token_routes(), "hosts": list_host_routes()}
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}") from problem
        folder: Path | None = options["output"]
        if folder is None:
            for name, routes in maps.items():
                self.stdout.write(f"# {name}.map\n{render_routes(routes)}", ending="")
            return
        try:
            changed = write_maps(folder, settings.CELL, maps)
        except ContradictoryMaps as error:
            raise CommandError(f"{error}. The maps were not changed.") from error
        except OSError as error:
            raise CommandError(f"cannot write {error.filename}: {error.strerror}") from error
        names = " and ".join(f"{name}.map" for name in changed)
        self.stdout.write(f"Changed {names}: reload HAProxy." if names else "Nothing has changed.")
