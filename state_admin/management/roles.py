"""The commands that run one process of the server."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

from django.core.management.base import BaseCommand

from project.env import BASE_DIR


class RoleCommand(BaseCommand):
    """Replaces this process with one of the role, which imports only what the role needs."""

    role: ClassVar[str]
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        os.chdir(BASE_DIR)
        os.execv(sys.executable, [sys.executable, "-m", "project.processes", self.role])  # noqa: S606
