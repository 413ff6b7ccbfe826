#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from project.env import BadSetting
    from project.postgres.session import UnsafeServer

    try:
        execute_from_command_line(sys.argv)
    except BadSetting as error:
        sys.exit(str(error))
    except OperationalError as error:
        if not isinstance(error.__cause__, UnsafeServer):
            raise
        sys.exit(str(error))


if __name__ == "__main__":
    main()
