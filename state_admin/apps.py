"""The one Django app."""

from __future__ import annotations

from django.apps import AppConfig

from project import job_notifications
from state_admin import checks  # noqa: F401  (registers itself)
from state_admin.services import notifications


class StateAdminConfig(AppConfig):
    name = "state_admin"
    verbose_name = "Commonhold"

    def ready(self) -> None:
        notifications.install(job_notifications.notify_worker)
