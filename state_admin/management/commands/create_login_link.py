"""Prints a one-time login link for a member. Works while the server runs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.domain.access import Role
from state_admin.models import User
from state_admin.services.errors import NotFound
from state_admin.services.logins import create_login_url

_MOST_NAMES = 20


class Command(BaseCommand):
    help = (
        "Create a login link for a member. It works once, within 24 hours. "
        "The server may be running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user", required=True, help="name of the member; `admin` is the first one"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(create_login_url(username=options["user"]))
        except NotFound as absent:
            raise CommandError(absent.detail + _name_admins()) from absent


def _name_admins() -> str:
    """Who can let others in, for an operator who knows no name."""
    admins = User.objects.filter(is_active=True, memberships__role=Role.ADMIN).distinct()
    names = list(admins.order_by("username").values_list("username", flat=True)[:_MOST_NAMES])
    return f". Active admins: {', '.join(names)}" if names else ""
