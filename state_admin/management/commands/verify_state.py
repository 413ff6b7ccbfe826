"""Verifies that every retained snapshot and version is unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.domain.digests import DigestLine
from state_admin.management.drafts import draft_of
from state_admin.services.verification import read_digests, verify_state


class Command(BaseCommand):
    help = (
        "Check the consistency of the stored data. --write stores a digest of every "
        "snapshot and version; --check compares with it. Fails and lists the faults."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        digests = parser.add_mutually_exclusive_group()
        digests.add_argument("--write", type=Path, metavar="FILE")
        digests.add_argument("--check", type=Path, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._verify(options["write"], options["check"])
        except OSError as error:
            name = error.filename or options["write"] or options["check"]  # a full disk names none
            raise CommandError(f"cannot use {name}: {error.strerror}") from error
        except ValueError as error:
            raise CommandError(
                f"{options['check']} is not a file that --write wrote: {error}"
            ) from error

    def _verify(self, write: Path | None, check: Path | None) -> None:
        if write is None:
            self._compare(check)
            return
        # Lines that a file lacks count as written later, so an incomplete file would pass every check.
        draft = draft_of(write)
        with draft.open("w") as lines:
            self._compare(None)
            lines.writelines(f"{line}\n" for line in read_digests())
        draft.replace(write)

    def _compare(self, check: Path | None) -> None:
        if check is not None:
            with check.open() as lines:
                verification = verify_state(map(DigestLine.parse, lines))
        else:
            verification = verify_state()
        words = f"{verification.lines:,} snapshots and versions"
        if check is not None:
            words += f", {verification.compacted:,} compacted since, {verification.removed:,} deleted since"
        self.stdout.write(words)
        for fault in verification.faults:
            self.stderr.write(fault)
        if verification.wrong:
            raise CommandError(f"{verification.wrong:,} faults, the first of them above")
