"""Creates an API token and prints it once. Creates the workspace if it does not exist."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.domain.access import Role
from state_admin.models import Workspace
from state_admin.services.actors import system_actor
from state_admin.services.errors import Problem
from state_admin.services.tokens import create_token
from state_admin.services.workspaces import ensure_workspace

_MOST_NAMES = 5


class Command(BaseCommand):
    help = "Create an API token. Prints the token once; only its digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workspace", default="default", help="created if it does not exist; default: default"
        )
        parser.add_argument("--role", choices=[role.value for role in Role], required=True)
        parser.add_argument("--name", required=True, help="the program that will use it")
        parser.add_argument("--namespace", action="append", default=[], help="glob; repeatable")
        parser.add_argument("--thread-prefix", action="append", default=[], help="repeatable")
        parser.add_argument(
            "--expires-in-days", type=int, help="default: the token does not expire"
        )
        parser.add_argument("--operator", action="store_true", help="may manage all workspaces")
        parser.add_argument(
            "--rate-per-minute", type=int, help="requests per minute; default: unlimited"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["expires_in_days"]
        try:
            workspace, is_new = ensure_workspace(options["workspace"])
            if is_new:
                self.stderr.write(self._announce(workspace))
            _, secret = create_token(
                actor=system_actor(workspace.pk, "operator"),
                name=options["name"],
                role=Role(options["role"]),
                namespaces=options["namespace"],
                thread_prefixes=options["thread_prefix"],
                expires_in_seconds=None if days is None else days * 86_400,
                rate_per_minute=options["rate_per_minute"],
                operator=options["operator"],
            )
        except Problem as problem:
            raise CommandError(f"{problem.detail}. {problem.hint}".strip()) from problem
        self.stdout.write(secret)

    @staticmethod
    def _announce(workspace: Workspace) -> str:
        """With the names of others, because the new one may be misspelled."""
        others = Workspace.objects.present().exclude(pk=workspace.pk).order_by("slug")
        names = list(others.values_list("slug", flat=True)[: _MOST_NAMES + 1])
        if not names:
            return f"Created the workspace {workspace.slug}."
        listed = ", ".join([*names[:_MOST_NAMES], *["…"] * (len(names) > _MOST_NAMES)])
        return f"Created the workspace {workspace.slug}, because it did not exist. Other workspaces: {listed}."
