"""Imports recorded conversations, one JSON object per line, as threads with runs and state."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from state_admin.services.actors import system_actor
from state_admin.services.errors import Problem
from state_admin.services.transcripts import import_transcript, read_line
from state_admin.services.workspaces import ensure_workspace


class Command(BaseCommand):
    help = (
        'Import lines {"episode": …, "messages": […]} of OpenAI-style chats. Repeating '
        "the import changes nothing. Invalid lines are reported and skipped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--workspace", default="default", help="created if it does not exist; default: default"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from error
        workspace, is_new = ensure_workspace(options["workspace"])
        if is_new:
            self.stderr.write(f"Created the workspace {workspace.slug}.")
        actor = system_actor(workspace.pk, "import")
        began = time.monotonic()
        threads = messages = appended = broken = 0
        with tqdm(total=len(lines), unit="thread", disable=not sys.stderr.isatty()) as bar:
            for number, line in enumerate(lines, start=1):
                bar.update()
                if not line.strip():
                    continue
                try:
                    episode, log = read_line(line)
                    appended += import_transcript(actor=actor, episode=episode, log=log)
                except Problem as problem:
                    broken += 1
                    with bar.external_write_mode():
                        self.stderr.write(f"line {number}: {_words(problem)}")
                    continue
                threads += 1
                messages += len(log)
        self.stdout.write(
            f"Imported into the workspace {workspace.slug}, in {time.monotonic() - began:.1f} s: "
            f"threads: {threads}, messages: {messages} ({appended} new)"
        )
        if broken:
            raise CommandError(f"{broken} of {len(lines)} lines were not imported, see above")


def _words(problem: Problem) -> str:
    """Return a problem in one line: its message, its hint, and its errors with their places."""
    errors = problem.data.get("errors") or []
    places = "; ".join(f"{e['pointer'] or '/'}: {e['message']}" for e in errors[:3])
    return ". ".join(part for part in (problem.detail, problem.hint, places) if part)
