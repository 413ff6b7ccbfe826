"""The one Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import Tags, register

from project import job_notifications
from state_admin.checks import check_servers
from state_admin.services import notifications


class StateAdminConfig(AppConfig):
    name = "state_admin"
    verbose_name = "Commonhold"

    def ready(self) -> None:
        register(check_servers, Tags.database)
        notifications.install(job_notifications.notify_worker)
