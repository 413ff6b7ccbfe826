"""Findings, and the commands that print them and exit with 1 if one is an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Literal, NamedTuple

from django.core.management.base import BaseCommand, CommandParser

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The result of one check. `remedy`: what to do; empty if nothing."""

    check: str
    level: Level
    text: str
    remedy: str = ""


class FindingsCommand(BaseCommand):
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def report(self, findings: Iterable[Finding], *, as_json: bool) -> None:
        """Print each finding as soon as it is found. Exit with 1 if one is an error."""
        levels = set()
        for finding in findings:
            if as_json:
                self.stdout.write(json.dumps(finding._asdict()))
            else:
                self._write_text(finding)
            self.stdout.flush()
            levels.add(finding.level)
        if "error" in levels:
            sys.exit(1)

    def _write_text(self, finding: Finding) -> None:
        style = {
            "ok": self.style.SUCCESS,
            "warning": self.style.WARNING,
            "error": self.style.ERROR,
        }[finding.level]
        self.stdout.write(f"{style(f'{finding.level:<8}')} {finding.check}: {finding.text}")
        if finding.remedy:
            self.stdout.write(f"         → {finding.remedy}")
