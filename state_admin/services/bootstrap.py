"""What a fresh installation needs before anyone can use it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from django.db import connection, transaction

from state_admin.domain.access import Role
from state_admin.models import ApiToken, User, Workspace

from .actors import system_actor
from .errors import NotFound
from .logins import create_login_url
from .tokens import create_token
from .users import ensure_user
from .workspaces import add_member, ensure_workspace

FIRST_WORKSPACE = "default"
FIRST_ADMIN = "admin"
LOGIN_LINK_COMMAND = f"manage.py create_login_link --user {FIRST_ADMIN}"


@dataclass(frozen=True)
class FirstRun:
    """The secrets to print at the shell. None: not created."""

    login_url: str | None
    token: str | None


def ensure_first_run(*, fresh_login: bool = False) -> FirstRun:
    """Create the workspace `default`, its first admin and a token, if they do not exist. If an operator
    has deleted `default`, it is created again only if no other workspace is left.

    Returns a login link if no user has ever signed in, or if `fresh_login` is set, unless the first
    admin is no longer a member of a workspace.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('commonhold first run'))")
        token = None if _is_default_deleted() else _ensure_default()
        login_url = None
        if fresh_login or not User.objects.exclude(last_login=None).exists():
            with contextlib.suppress(NotFound):
                login_url = create_login_url(username=FIRST_ADMIN)
    return FirstRun(login_url, token)


def _is_default_deleted() -> bool:
    """Whether the first run has created `default`, which was deleted, and another workspace is left.
    Without a user there was no first run: a command created the other workspace."""
    workspaces = Workspace.objects.present()
    if workspaces.filter(slug=FIRST_WORKSPACE).exists():
        return False
    return workspaces.exists() and User.objects.exists()


def _ensure_default() -> str | None:
    """Create what is missing. Returns the secret of the token if it was created."""
    workspace, is_new = ensure_workspace(FIRST_WORKSPACE)
    token = None
    if not ApiToken.objects.filter(workspace=workspace).exists():
        actor = system_actor(workspace.pk, "operator")
        _, token = create_token(actor=actor, name="first token", role=Role.ADMIN)
    admin, created = ensure_user(FIRST_ADMIN)
    if created or is_new:
        add_member(workspace=workspace, user=admin, role=Role.ADMIN)
    return token
