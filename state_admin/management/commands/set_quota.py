"""Sets the quotas of a workspace."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.models import Workspace
from state_admin.services.actors import system_actor
from state_admin.services.errors import Problem
from state_admin.services.quotas import set_quota


class Command(BaseCommand):
    help = "Set the quotas of a workspace. An omitted quota is unlimited."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--entries", type=int)
        parser.add_argument("--bytes", type=int)
        parser.add_argument("--threads", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"workspace not found: {options['workspace']}")
        limits = {what: options[what] for what in ("entries", "bytes", "threads")}
        try:
            set_quota(actor=system_actor(workspace.pk, "operator"), **limits)
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        text = ", ".join(
            f"{what} {'unlimited' if limit is None else limit}" for what, limit in limits.items()
        )
        self.stdout.write(f"{workspace.slug}: {text}")
