"""Explains access: what a token or a user may do with a namespace or a thread, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef
from msgspec.structs import replace

from state_admin.contract.access import Explanation
from state_admin.domain import config
from state_admin.domain.access import Actor, Role, matches_any
from state_admin.models import ApiToken, Membership, User, Workspace

from .actors import actor_of_row, require
from .errors import BadRequest
from .tokens import find_token

# The maximum number of members, and of tokens, that are examined.
MOST: Final = 500


@dataclass(frozen=True)
class NamespaceAccess:
    """Who may access a namespace: the number of members by role, and the live tokens, newest first.
    `partly`: there are more members or tokens than MOST."""

    members: Mapping[Role, int]
    tokens: Sequence[ApiToken]
    partly: bool


def read_namespace_access(*, actor: Actor, namespace: str) -> NamespaceAccess:
    """Return all active members, and the tokens whose namespace globs match. Requires the role
    admin."""
    require(actor, Role.ADMIN)
    members = Membership.objects.filter(workspace_id=actor.workspace_id, user__is_active=True)
    roles = list(members.order_by("pk").values_list("role", flat=True)[: MOST + 1])
    tokens = list(ApiToken.objects.visible_to(actor).live().order_by("-pk")[: MOST + 1])
    counted = Counter(roles[:MOST])
    return NamespaceAccess(
        members={role: counted[role.value] for role in reversed(Role) if counted[role.value]},
        tokens=[
            token
            for token in tokens[:MOST]
            if not token.namespaces or matches_any(token.namespaces, namespace)
        ],
        partly=len(roles) > MOST or len(tokens) > MOST,
    )


def administers_all(actor: Actor) -> bool:
    """Whether the user may read everything on this server: an admin of every workspace, or a Django
    superuser."""
    if actor.kind != "user" or not actor.may(Role.ADMIN):
        return False
    theirs = Membership.objects.filter(
        workspace=OuterRef("pk"), user_id=int(actor.id), role=Role.ADMIN.value
    )
    if not Workspace.objects.present().exclude(Exists(theirs)).exists():
        return True
    return User.objects.filter(pk=int(actor.id), is_superuser=True).exists()


def explain_access(
    *,
    actor: Actor,
    token_id: int | None = None,
    username: str | None = None,
    namespace: str = "",
    key: str = "",
    thread_id: str = "",
) -> Explanation:
    """Explain what a token or a member of the actor's workspace may do with the given namespace or
    thread, or in general without one."""
    require(actor, Role.ADMIN)
    if (token_id is None) == (username is None):
        raise BadRequest("exactly one of token_id and username is required", parameter="token_id")
    if token_id is not None:
        explanation = _explain_token(actor, token_id, namespace, thread_id)
    else:
        explanation = _explain_user(actor, username or "")
    if key:
        explanation.reasons.append(
            "permissions do not depend on the key: they apply to the whole namespace"
        )
    if config.kind_of(namespace):
        explanation.reasons.append(
            f"{namespace} is reserved: only admins can write to it, through the config API"
        )
        explanation = replace(explanation, may_write=explanation.may_administer)
    return explanation


def _explain_token(actor: Actor, token_id: int, namespace: str, thread_id: str) -> Explanation:
    token = find_token(actor, token_id)
    caller = actor_of_row(token)
    role = caller.role
    reasons = [_STATES[token.state], f"its role is {role.value}: {_WORDS[role]}"]
    sees = token.state in ("live", "rotated")
    if namespace:
        within = caller.sees_namespace(namespace)
        sees = sees and within
        globs = ", ".join(token.namespaces) or "all namespaces"
        reasons.append(f"{namespace} is {'within' if within else 'outside'} its grant: {globs}")
    if thread_id:
        within = caller.sees_thread(thread_id)
        sees = sees and within
        prefixes = ", ".join(token.thread_prefixes) or "all threads"
        reasons.append(f"{thread_id} is {'within' if within else 'outside'} its grant: {prefixes}")
    return _verdict(token.name, role, sees, reasons)


def _explain_user(actor: Actor, username: str) -> Explanation:
    rows = Membership.objects.visible_to(actor).select_related("user")
    member = rows.filter(user__username=username).first()
    if member is None:
        return Explanation(
            who=username,
            role=None,
            may_read=False,
            may_write=False,
            may_administer=False,
            reasons=[f"{username} is not a member of this workspace"],
        )
    role = Role(member.role)
    reasons = [f"{username} is a member as {role.value}: {_WORDS[role]}"]
    if not member.user.is_active:
        reasons.append("the account is deactivated")
    reasons.append("members are not limited to namespaces or threads")
    return _verdict(username, role, member.user.is_active, reasons)


# By the state of a token (TokenQuerySet.with_state).
_STATES = {
    "revoked": "the token was revoked",
    "expired": "the token has expired",
    "rotated": "the token was rotated and stays valid until its overlap ends",
    "live": "the token is active",
}
_WORDS = {
    Role.VIEWER: "it reads",
    Role.EDITOR: "it reads and writes state, threads, runs and decisions",
    Role.ADMIN: "it does everything in this workspace",
}


def _verdict(who: str, role: Role, sees: bool, reasons: list[str]) -> Explanation:
    return Explanation(
        who=who,
        role=role.value,
        may_read=sees,
        may_write=sees and role.covers(Role.EDITOR),
        may_administer=sees and role.covers(Role.ADMIN),
        reasons=reasons,
    )
