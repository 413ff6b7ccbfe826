"""Manages the members of a workspace, for its admins, and ends the sessions of users.

Operators with a shell use workspaces.add_member. The last admin cannot be removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction

from state_admin.domain.access import Actor, Role
from state_admin.domain.values import Fault
from state_admin.models import Membership, User, UserSession

from . import journal, tokens, users
from .actors import require, require_unrestricted
from .errors import Conflict, Forbidden, Invalid
from .finding import find_row


@dataclass(frozen=True)
class AddedMember:
    """A new member. `link` is the secret of a one-time login link if the user is new, else ""."""

    membership: Membership
    link: str


@dataclass(frozen=True)
class RemovedMember:
    """A former member, and how many of the tokens that they created were revoked."""

    membership: Membership
    revoked: int


def find_member(actor: Actor, member_id: int) -> Membership:
    rows = Membership.objects.visible_to(actor).select_related("user")
    return find_row(rows, "member", pk=member_id)


def add_member(*, actor: Actor, username: str, role: Role, reason: str = "") -> AddedMember:
    """Add a user to the actor's workspace. A user who does not exist is created, and gets a login
    link. The unused links of an existing user stop working.

    Raises Conflict if the user is a member already (see change_role), and Forbidden for a token
    with limits, because members have none.
    """
    require(actor, Role.ADMIN)
    require_unrestricted(actor)
    username = _checked(username)
    with transaction.atomic():
        user, is_new = users.ensure_user(username)
        member, is_member = Membership.objects.get_or_create(
            workspace_id=actor.workspace_id, user=user, defaults={"role": role.value}
        )
        if not is_member:
            raise Conflict(f"already a member: {username}", hint=f"With the role {member.role}.")
        users.cancel_links_of_new_members(user.pk)
        link = users.make_login_link(user) if is_new else ""
        _record(actor, "member.add", member, reason, role=role.value, new_user=is_new)
    return AddedMember(member, link)


def change_role(
    *, actor: Actor, member_id: int, role: Role, expected: Role | None = None, reason: str = ""
) -> Membership:
    """Change the role of a member; with `expected`, only if the member has that role. Raises
    Conflict if the workspace would have no admin left."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        member = _lock_member(actor, member_id, stays_admin=role is Role.ADMIN)
        if expected is not None and not _lock_role(member, expected):
            raise Conflict(f"the role of {member.user.get_username()} was changed in the meantime")
        if member.role != role.value:
            before, member.role = member.role, role.value
            member.save(update_fields=["role"])
            _record(actor, "member.role", member, reason, role=role.value, before=before)
    return member


def remove_member(
    *, actor: Actor, member_id: int, revoke_tokens: bool = False, reason: str = ""
) -> RemovedMember:
    """Remove a member, with immediate effect: every request checks the membership. The user remains, and
    so do the tokens that they created, unless `revoke_tokens`. Raises Conflict as change_role does."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        member = _lock_member(actor, member_id, stays_admin=False)
        Membership.objects.filter(pk=member.pk).delete()
        name = member.user.get_username()
        revoked = tokens.revoke_tokens_of_user(actor, name) if revoke_tokens else []
        detail = {"role": member.role, "revoked_tokens": len(revoked)}
        journal.record(
            actor,
            [journal.Trace("member.remove", key=name, detail=detail), *revoked],
            reason=reason,
        )
    return RemovedMember(member, len(revoked))


def renew_link(*, actor: Actor, member_id: int, reason: str = "") -> str:
    """The secret of a new one-time login link for a member who cannot sign in.

    Raises Forbidden for a member of other workspaces, because the link signs in to all of them, and for
    a superuser, who reads everything on this server.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        member = find_member(actor, member_id)
        guard_account(
            member,
            "A login link would give access to more than this workspace. Ask the operator of the"
            " server to create it.",
        )
        link = users.make_login_link(member.user)
        _record(actor, "member.link", member, reason)
    return link


def guard_account(member: Membership, hint: str) -> None:
    """Raise Forbidden if the account of a member gives access to more than this workspace. Locks it until
    the end of the transaction, so that the user cannot be added to another workspace meanwhile."""
    user = _lock_account(member.user_id)
    if user.is_superuser:
        raise Forbidden("this member is a superuser of the server", hint=hint)
    if Membership.objects.filter(user=user).exclude(pk=member.pk).exists():
        raise Forbidden("this member belongs to other workspaces too", hint=hint)


def end_member_sessions(*, actor: Actor, member_id: int, reason: str = "") -> int:
    """Sign a member out everywhere. Returns the number of ended sessions."""
    require(actor, Role.ADMIN)
    return _end(actor, find_member(actor, member_id).user, reason)


def end_own_sessions(*, actor: Actor, key_digest: str = "", reason: str = "") -> int:
    """End one of the actor's own sessions, or all of them without `key_digest`. Returns the
    number."""
    if actor.kind != "user":
        raise Forbidden("only users have sessions")
    return _end(actor, User.objects.get(pk=actor.id), reason, key_digest)


def _end(actor: Actor, user: User, reason: str, key_digest: str = "") -> int:
    """End sessions of a user. Ending all of them also invalidates unused login links, because they
    would let the same person in again."""
    with transaction.atomic():
        _lock_account(user.pk)  # a request that sets the password gives its session a new key
        rows = UserSession.objects.filter(user=user)
        ended, _ = (rows.filter(session_key=key_digest) if key_digest else rows).delete()
        links = 0
        if not key_digest:
            links = users.cancel_login_links(user)
        if ended or links:
            name = user.get_username()
            trace = journal.Trace("session.end", key=name, detail={"ended": ended})
            journal.record(actor, [trace], reason=reason)
    return ended


def _lock_member(actor: Actor, member_id: int, *, stays_admin: bool) -> Membership:
    """The member, with the rows of all admins locked, so that concurrent changes of roles see each
    other."""
    admins = Membership.objects.filter(workspace_id=actor.workspace_id, role=Role.ADMIN.value)
    admin_ids = list(admins.order_by("pk").select_for_update().values_list("pk", flat=True))
    member = find_member(actor, member_id)
    if admin_ids == [member.pk] and not stays_admin:
        raise Conflict(
            "the last admin cannot be removed",
            hint="Make another member an admin first.",
        )
    return member


def _lock_account(user_id: int) -> User:
    return User.objects.select_for_update(no_key=True).get(pk=user_id)


def _lock_role(member: Membership, role: Role) -> bool:
    """Whether the member has `role`, which cannot change until the end of the transaction."""
    rows = Membership.objects.filter(pk=member.pk, role=role.value)
    return bool(rows.select_for_update(no_key=True).values_list("pk"))


def _checked(username: str) -> str:
    try:
        return str(User._meta.get_field("username").clean(username.strip(), None))
    except ValidationError as refused:
        faults = [Fault("/username", message) for message in refused.messages]
        raise Invalid("the user name is not valid", faults) from refused


def _record(actor: Actor, action: str, member: Membership, reason: str, **detail: object) -> None:
    trace = journal.Trace(action, key=member.user.get_username(), detail=detail)
    journal.record(actor, [trace], reason=reason)
