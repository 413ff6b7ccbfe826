"""What a fresh installation needs before anyone can use it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

from state_admin.domain.access import Role
from state_admin.models import ApiToken, User

from .actors import system_actor
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
    """Create the workspace `default`, its first admin and a token, if they do not exist.

    Returns a login link if no user has ever signed in, or if `fresh_login` is set.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('commonhold first run'))")
        workspace, _ = ensure_workspace(FIRST_WORKSPACE)
        token = None
        if not ApiToken.objects.filter(workspace=workspace).exists():
            actor = system_actor(workspace.pk, "operator")
            _, token = create_token(actor=actor, name="first token", role=Role.ADMIN)
        admin, created = ensure_user(FIRST_ADMIN)
        if created:
            add_member(workspace=workspace, user=admin, role=Role.ADMIN)
        login_url = None
        if fresh_login or not User.objects.exclude(last_login=None).exists():
            login_url = create_login_url(username=FIRST_ADMIN)
    return FirstRun(login_url, token)
