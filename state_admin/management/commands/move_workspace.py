"""Moves a workspace to another cell."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from project.env import BadSetting, read_environment
from state_admin.models import MoveState
from state_admin.services.errors import Problem
from state_admin.services.workspace_moves import Mover, Sides, expect_workspace


class Command(BaseCommand):
    help = (
        "Move a workspace to another cell. First run the command with --expect in the target. Then run "
        "it in the source, with the database of the target in MOVE_DATABASE_URL. To continue an "
        "interrupted move, run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workspace", help="the name of the workspace")
        what = parser.add_mutually_exclusive_group()
        for option, text in {
            "--expect": "in the target: prepare the move to this cell",
            "--status": "print the state of both sides",
            "--resume": "continue an interrupted move, but do not begin one",
            "--undo": "let the source accept writes again, unless the target has accepted one",
            "--forget": "delete the rows in the source after the move; you cannot undo it afterwards",
        }.items():
            what.add_argument(option, action="store_true", help=text)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._handle(options)
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}".strip()) from problem
        except BadSetting as bad:
            raise CommandError(str(bad)) from bad

    def _handle(self, options: dict[str, Any]) -> None:
        slug: str = options["workspace"]
        if options["expect"]:
            move = expect_workspace(slug)
            self.stdout.write(f"The cell {move.keys['cell']} expects the workspace {slug}.")
            return
        url = read_environment().move_database_url
        if url is None:
            raise CommandError(
                "MOVE_DATABASE_URL is not set. Set it to the database of the target."
            )
        mover = Mover(slug, url, self.stdout.write)
        try:
            if options["status"]:
                self._show(mover.read())
            elif options["undo"]:
                self._show(mover.undo())
            elif options["forget"]:
                self._show(mover.forget())
            else:
                self._show(mover.run(begin=not options["resume"]))
        finally:
            mover.close()

    def _show(self, sides: Sides) -> None:
        source = sides.source
        state = MoveState(source.state).label if source else "accepts writes"
        self.stdout.write(f"source: {state}")
        self.stdout.write(f"target: {MoveState(sides.target.state).label}")
