"""`manage.py worker`: one process of the server."""

from __future__ import annotations

from state_admin.management.roles import RoleCommand


class Command(RoleCommand):
    role = "worker"
    help = "Run a worker, until SIGTERM. It performs the jobs: compactions, reverts, sweeps and webhooks."
