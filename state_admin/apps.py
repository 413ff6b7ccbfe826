"""The one Django app."""

from __future__ import annotations

from django.apps import AppConfig


class StateAdminConfig(AppConfig):
    name = "state_admin"
    verbose_name = "Commonhold"

    def ready(self) -> None:
        from project import broker
        from state_admin import checks  # noqa: F401  (registers itself)
        from state_admin.services import notifications

        notifications.install(broker.notify_worker)
