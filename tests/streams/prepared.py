"""`python -m tests.streams.prepared`: a database with a workspace, in COMMONHOLD_DATA_DIR.

Prints the workspace's id, an unrestricted token and one restricted to `team.*`, as JSON.
"""

from __future__ import annotations

import json
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.core.management import call_command

from state_admin.domain.access import Role
from state_admin.services.actors import system_actor
from state_admin.services.tokens import create_token
from state_admin.services.workspaces import ensure_workspace
from tests.builders import make_namespace

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    workspace, _ = ensure_workspace("feed")
    actor = system_actor(workspace.pk, "preparation")
    for name in ("notes", "team.x"):
        make_namespace(actor, name)
    _, whole = create_token(actor=actor, name="whole", role=Role.ADMIN)
    _, narrow = create_token(actor=actor, name="narrow", role=Role.VIEWER, namespaces=["team.*"])
    print(json.dumps({"workspace": workspace.pk, "whole": whole, "narrow": narrow}))  # noqa: T201
