"""Makes workspaces and says who belongs to them."""

from __future__ import annotations

from django.db import transaction

from state_admin.domain import scopes
from state_admin.domain.access import Role
from state_admin.models import Membership, User, Workspace

from . import journal
from .actors import system_actor
from .errors import Invalid
from .namespaces import reserve_namespaces


def ensure_workspace(slug: str) -> tuple[Workspace, bool]:
    """The workspace `slug`, made if it is not there. For operators at the shell, not for the API."""
    try:
        scopes.check_name(slug)
    except scopes.BadName as bad:
        raise Invalid(f"invalid workspace name: {bad}") from bad
    if len(slug) > 64:
        raise Invalid("a workspace name has at most 64 characters")
    with transaction.atomic():
        workspace, created = Workspace.objects.get_or_create(slug=slug, defaults={"name": slug})
        if created:
            actor = system_actor(workspace.pk, "operator")
            reserve_namespaces(actor)
            journal.record(actor, [journal.Trace("workspace.create", key=slug)])
    return workspace, created


def add_member(*, workspace: Workspace, user: User, role: Role) -> Membership:
    """Give `user` a role in a workspace, or change it. For operators at the shell."""
    with transaction.atomic():
        membership, _ = Membership.objects.update_or_create(
            workspace=workspace, user=user, defaults={"role": role.value}
        )
        trace = journal.Trace("member.set", key=user.get_username(), detail={"role": role.value})
        journal.record(system_actor(workspace.pk, "operator"), [trace])
    return membership
