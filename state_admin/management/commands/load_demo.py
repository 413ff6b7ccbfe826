"""Creates a small demo workspace."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from state_admin.services.demo import WORKSPACE, load_demo


class Command(BaseCommand):
    help = (
        "Create the workspace `demo`: a travel desk with three agents. Changes nothing "
        "if it exists."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if load_demo():
            self.stdout.write(
                f"The workspace {WORKSPACE} is ready. To switch to it, click the name of the "
                "workspace at the top left of the admin."
            )
        else:
            self.stdout.write(f"The workspace {WORKSPACE} already exists and was not changed.")
