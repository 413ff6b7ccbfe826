#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import select
import signal
import sys


def _reader_has_left() -> bool:
    """Whether standard output is a pipe that nobody reads any more: `manage.py doctor | head -1`."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return bool(poll.poll(0))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    from project.env import BadSetting

    try:
        execute_from_command_line(sys.argv)
        if sys.stdout:  # None, if the descriptor is closed
            sys.stdout.flush()
    except BadSetting as error:
        sys.exit(str(error))
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        # What is not written yet goes nowhere: Python flushes standard output once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
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
