"""`manage.py beat`: one process of the server."""

from __future__ import annotations

from state_admin.management.roles import RoleCommand


class Command(RoleCommand):
    role = "beat"
    help = "Run the scheduler of the sweeps, until SIGTERM. Run it once."
