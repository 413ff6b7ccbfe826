"""Removes the authenticator of a user who lost phone and recovery codes."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from state_admin.models import User
from state_admin.services.actors import actor_of_user, system_actor
from state_admin.services.errors import Problem


class Command(BaseCommand):
    help = (
        "Remove a user's authenticator and recovery codes. The user then signs in with "
        "the password alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.LOGIN_TOTP == "off":
            raise CommandError("LOGIN_TOTP is off: authenticators are not used")
        # Needs the packages of requirements-login.txt.
        from state_admin.services.second_factors import reset

        user = User.objects.filter(username=options["username"]).first()
        actor = actor_of_user(user) if user else None
        if user is None or actor is None:
            raise CommandError(f"user not found: {options['username']}")
        try:
            reset(actor=system_actor(actor.workspace_id, "operator"), user=user)
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(f"{user.get_username()} signs in with the password alone")
