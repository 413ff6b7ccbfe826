"""Encrypts the secrets of the config registry and of authenticators with the first key. Signing
secrets of webhooks are derived and shared with their receivers, so the command only lists the webhooks
that use a former key."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from state_admin.services import config_secrets, webhook_secrets


class Command(BaseCommand):
    help = (
        "Re-encrypt every secret of the config registry and of authenticators with the "
        "first key of CONFIG_SECRET_KEYS, or with SECRET_KEY if that is not set. List the webhooks whose signing secrets are derived from a former SECRET_KEY."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        parts = {"config": config_secrets.rotate_secrets()}
        if settings.LOGIN_TOTP != "off":
            # Needs the packages of requirements-login.txt.
            from state_admin.services import second_factors

            parts["authenticators"] = second_factors.rotate_secrets()
        for name, done in parts.items():
            self.stdout.write(
                f"{name}: {done.rotated} re-encrypted, {done.current} already used the first key"
            )
        if hooks := list(webhook_secrets.of_former_keys()):
            self.stdout.write(
                f"webhooks: {len(hooks):,} still sign with a secret of a former SECRET_KEY. Rotate their "
                "secrets before you remove that key from SECRET_KEY_FALLBACKS:"
            )
            self.stdout.writelines(f"{hook}\n" for hook in hooks)
        problems = []
        if unreadable := [line for done in parts.values() for line in done.unreadable]:
            problems += ["no configured key decrypts:", *unreadable]
        if frozen := parts["config"].frozen:
            problems += [
                "these workspaces are being moved and refuse writes. Run the command again when their "
                "moves have ended:",
                *frozen,
            ]
        if problems:
            raise CommandError("\n".join(problems))
