"""The commands of manage.py that people are told to run: by the supervisor, and by the sign-in page."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from django.conf import settings

from project.env import BASE_DIR

# The settings by which a command in another terminal finds this server. None is secret.
_LOCATION = ("COMMONHOLD_DATA_DIR", "PORT", "SITE_URL")


def command_line(command: str) -> str:
    """`command` for another terminal, which lacks the environment of this process.

    Without the virtual environment of `make`, the server runs in a container, and so do its commands,
    with its environment.
    """
    if Path(sys.prefix) != BASE_DIR / ".venv":
        return command
    environment = [
        f"{name}={shlex.quote(os.environ[name])} " for name in _LOCATION if os.environ.get(name)
    ]
    if not settings.DATABASES["default"].get("EMBEDDED"):
        environment.append("DATABASE_URL=… ")
    return f"{''.join(environment)}.venv/bin/python {command}"
