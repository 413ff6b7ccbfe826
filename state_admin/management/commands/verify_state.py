"""Verifies that every retained snapshot and version is unchanged."""

from __future__ import annotations

import shlex
from itertools import islice
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
            count = 0
            for line in read_digests():
                lines.write(f"{line}\n")
                count += 1
            lines.write(f"end {count}\n")
        draft.replace(write)

    def _compare(self, check: Path | None) -> None:
        compared = 0
        if check is not None:
            compared = _count_digests(check)
            with check.open() as lines:
                verification = verify_state(map(DigestLine.parse, islice(lines, compared)))
        else:
            verification = verify_state()
        words = f"{verification.lines:,} snapshots and versions"
        if check is not None:
            words += f", {compared:,} digests compared, {verification.compacted:,} compacted since, {verification.removed:,} deleted since"
        self.stdout.write(words)
        for fault in verification.faults:
            self.stderr.write(fault)
        if verification.wrong:
            raise CommandError(f"{verification.wrong:,} faults, the first of them above")


def _count_digests(file: Path) -> int:
    """The number of digests of a file, which its last line repeats. ValueError if it does not: the file
    is empty or truncated, or of a version that wrote no such line."""
    before, last = -1, ""
    with file.open() as lines:
        for line in lines:
            before, last = before + 1, line
    if last.split() != ["end", str(before)]:
        name = shlex.quote(str(file))
        raise ValueError(
            "its last line must be the word end and the number of lines before it. Only if an earlier version of "
            f'Commonhold wrote the file, and it is complete, append this line with the command: echo "end $(wc -l < {name})" >> {name}'
        )
    return before
