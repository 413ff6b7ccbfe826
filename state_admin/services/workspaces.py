"""Creates workspaces and adds members, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.db import transaction

from state_admin.domain import scopes
from state_admin.domain.access import Actor, Role
from state_admin.models import Membership, User, Workspace

from . import journal, quotas
from .actors import require_operator, system_actor
from .errors import Invalid
from .finding import checked, find_row
from .namespaces import reserve_namespaces


def check_slug(slug: str) -> None:
    """Raise Invalid for what cannot be the name of a workspace in addresses."""
    checked("workspace name", scopes.check_name, slug)
    if len(slug) > 64:
        raise Invalid("a workspace name has at most 64 characters")


def ensure_workspace(
    slug: str, *, name: str = "", actor: Actor | None = None, reason: str = ""
) -> tuple[Workspace, bool]:
    """The workspace `slug`, created if it does not exist, by an operator or (None) at the shell."""
    if actor is not None:
        require_operator(actor)
    check_slug(slug)
    with transaction.atomic():
        workspace, created = Workspace.objects.get_or_create(
            slug=slug, defaults={"name": name or slug}
        )
        if created:
            shell = system_actor(workspace.pk, "operator")
            creator = acting_in(actor, slug) if actor else shell
            reserve_namespaces(shell)
            trace = journal.Trace("workspace.create", key=slug)
            journal.record(creator, [trace], reason=reason)
    return workspace, created


def find_workspace(actor: Actor, slug: str) -> Workspace:
    """A workspace that the actor may see. Raises NotFound."""
    return find_row(Workspace.objects.visible_to(actor), "workspace", slug=slug)


def change_workspace(
    *, actor: Actor, slug: str, changes: Mapping[str, str | int | None], reason: str = ""
) -> Workspace:
    """Set the name or quotas of a workspace, for an operator: `name`, and `max_entries`,
    `max_bytes` and `max_threads`, of which None removes a limit. Raises NotFound."""
    target = acting_in(actor, slug)
    with transaction.atomic():
        workspace = Workspace.objects.get(pk=target.workspace_id)
        if changes:
            Workspace.objects.filter(pk=workspace.pk).update(**changes)
            trace = journal.Trace("workspace.change", key=slug, detail=dict(changes))
            journal.record(target, [trace], reason=reason)
    quotas.forget_accounts()
    workspace.refresh_from_db()
    return workspace


def acting_in(actor: Actor, slug: str) -> Actor:
    """The operator as an actor of another workspace than that of the token. Raises NotFound."""
    require_operator(actor)
    return replace(actor, workspace_id=find_workspace(actor, slug).pk)


def add_member(*, workspace: Workspace, user: User, role: Role) -> Membership:
    """Give `user` a role in a workspace, or change it. For operators with a shell.

    Unused login links remain valid, unlike those of other new members (users.cancel_links_of_new_members):
    the first admin, a new user, has none, and the demo is often loaded before the link of the first start
    is used. Its members are those of `default`, whose admins are also admins of the demo.
    """
    with transaction.atomic():
        membership, _ = Membership.objects.update_or_create(
            workspace=workspace, user=user, defaults={"role": role.value}
        )
        trace = journal.Trace("member.set", key=user.get_username(), detail={"role": role.value})
        journal.record(system_actor(workspace.pk, "operator"), [trace])
    return membership
