"""The manage.py commands that the supervisor and the sign-in page print."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from django.conf import settings

from project.env import BASE_DIR

# The settings by which a command in another terminal finds this server. They contain no secrets.
_LOCATION = ("COMMONHOLD_DATA_DIR", "PORT", "SITE_URL")
_DEFAULT_DATA_DIR = str(BASE_DIR / ".data")


def command_line(command: str) -> str:
    """`command` for another terminal, which lacks the environment of this process.

    Without the virtual environment of `make`, the server runs in a container, and so do its commands,
    with its environment.
    """
    if Path(sys.prefix) != BASE_DIR / ".venv":
        return command
    environment = [
        f"{name}={shlex.quote(value)} "
        for name in _LOCATION
        if (value := os.environ.get(name)) and value != _DEFAULT_DATA_DIR
    ]
    if not settings.DATABASES["default"].get("EMBEDDED"):
        environment.append("DATABASE_URL=… ")
    return f"{''.join(environment)}.venv/bin/python {command}"
