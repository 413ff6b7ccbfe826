#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    from project.env import BadSetting

    try:
        execute_from_command_line(sys.argv)
    except BadSetting as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(128 + signal.SIGINT)
    except DatabaseError as error:
        from project.startup import explain  # it needs the settings

        if message := explain(error):
            sys.exit(message)
        raise


if __name__ == "__main__":
    main()
