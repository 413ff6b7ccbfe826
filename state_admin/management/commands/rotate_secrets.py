"""Encrypts the secrets of the config registry with the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from state_admin.services.config_secrets import rotate_secrets


class Command(BaseCommand):
    help = "Encrypt every secret of the config registry with the first of CONFIG_SECRET_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        done = rotate_secrets()
        self.stdout.write(f"{done.rotated} encrypted anew, {done.current} had the newest key")
        if done.unreadable:
            raise CommandError("no configured key opens:\n" + "\n".join(done.unreadable))
