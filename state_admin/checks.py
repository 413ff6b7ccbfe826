"""System checks of the database server: `manage.py check --database default` and `migrate` run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage
from django.db import OperationalError, connections

from project.postgres.session import PRIVATE_LOG, UnsafeServer, find_log_leaks


def check_servers(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E001: the server could lose or misread writes. W001: it may write values to its log."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            connections[alias].ensure_connection()
        except OperationalError as error:
            if not isinstance(error.__cause__, UnsafeServer):
                raise
            found.append(checks.Error(str(error), obj=alias, id="commonhold.E001"))
            continue
        if leaks := find_log_leaks(connections[alias].connection):
            current = ", ".join(f"{name} = {value}" for name, value in sorted(leaks.items()))
            hint = (
                "Let the role of DATABASE_URL change them (GRANT SET ON PARAMETER "
                f"{', '.join(sorted(leaks))} TO …), or set them in postgresql.conf: "
                + ", ".join(f"{name} = {PRIVATE_LOG.get(name, -1)}" for name in sorted(leaks))
            )
            found.append(
                checks.Warning(
                    f"PostgreSQL may write values of statements to its log: {current}.",
                    hint=hint,
                    obj=alias,
                    id="commonhold.W001",
                )
            )
    return found
