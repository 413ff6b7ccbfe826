"""The processes of a Commonhold server. `python -m project.processes web|worker|beat` runs one.

Started by the supervisor, each ends together with it, even if that is killed with -9. Started by anything
else, such as a shell that exits, it continues.
"""

from __future__ import annotations

import os
import signal
import sys

from project.parents import die_with_parent

ROLES = ("web", "worker", "beat")


def main(role: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    os.environ["COMMONHOLD_ROLE"] = role
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if supervisor := os.environ.get("COMMONHOLD_SUPERVISOR"):
        die_with_parent()
        if supervisor != str(os.getppid()):  # it ended before the kernel could notify this process
            sys.exit("The supervisor has exited.")
    # Imported late: imports take long, and before die_with_parent this process could outlive its
    # parent.
    from project.env import BadSetting

    try:
        if role == "web":
            # Each process imports only what its role needs.
            from project.server import serve

            serve()
        else:
            # Not in the web process, which does not import Celery at its start.
            from project import celery

            celery.run(role)
    except BadSetting as error:
        sys.exit(str(error))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit(f"usage: python -m project.processes {'|'.join(ROLES)}")
    main(sys.argv[1])
