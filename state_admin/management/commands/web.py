"""`manage.py web`: one process of the server."""

from __future__ import annotations

from state_admin.management.roles import RoleCommand


class Command(RoleCommand):
    role = "web"
    help = "Run the web server: pages, API and streams, until SIGTERM."
