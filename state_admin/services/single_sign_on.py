"""Which users may sign in through the provider of single sign-on. Imported only if one is
configured.

The `issuer` and `subject` of an identity name one person permanently. Its e-mail address counts
only as long as the provider says that it is verified (docs/adr/0014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from project.login import SingleSignOn
from state_admin.domain.access import Actor
from state_admin.models import Membership, User, Workspace

from . import journal
from .actors import actor_of_user, system_actor
from .errors import Conflict, Forbidden, Invalid

_LONGEST_NAME = 150


@dataclass(frozen=True)
class Identity:
    """The person that the provider vouches for. `email` is lower-case, and "" unless it is
    verified."""

    issuer: str
    subject: str
    email: str


def admit(identity: Identity, *, request_id: str = "") -> User:
    """The member with this identity: linked before, or with its e-mail address as name or address,
    which links them now. Raises Forbidden for all others, unless the deployment accepts new users
    of the domain (OIDC_NEW_DOMAINS)."""
    accounts = SocialAccount.objects.filter(provider=identity.issuer, uid=identity.subject)
    linked = accounts.select_related("user").first()
    user = linked.user if linked else _of_address(identity.email)
    if user is None:
        return _make_member(identity, request_id)
    if not user.is_active or not Membership.objects.filter(user=user).exists():
        raise _stranger(identity)
    if linked is None:
        actor = actor_of_user(user, request_id=request_id)
        if actor is None:
            raise _stranger(identity)
        link(actor=actor, identity=identity)
    return user


def link(*, actor: Actor, identity: Identity) -> None:
    """Let the actor, a user, sign in with this identity from now on. Raises Conflict if it belongs
    to another user, or the actor has another identity of the provider."""
    if actor.kind != "user":
        raise Forbidden("only users can sign in")
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=actor.id)
        existing = SocialAccount.objects.filter(user=user, provider=identity.issuer).first()
        if existing is not None and existing.uid != identity.subject:
            raise Conflict(
                "another account of the provider is already linked",
                hint="Unlink that one first, under Sign-in methods.",
            )
        account, is_new = SocialAccount.objects.get_or_create(
            provider=identity.issuer, uid=identity.subject, defaults={"user": user}
        )
        if account.user_id != user.pk:
            raise Conflict("the account of the provider is linked to another user")
        if is_new:
            _record(actor, "identity.link", user.get_username(), issuer=identity.issuer)


def unlink(*, actor: Actor, issuer: str) -> None:
    """Remove the actor's identities at a provider. Raises Invalid if the user has no password."""
    user = User.objects.get(pk=actor.id)
    if not user.has_usable_password():
        raise Invalid(
            "set a password first", hint="Without a password you could not sign in again."
        )
    with transaction.atomic():
        gone, _ = SocialAccount.objects.filter(user=user, provider=issuer).delete()
        if gone:
            _record(actor, "identity.unlink", user.get_username(), issuer=issuer)


def is_linked(user: User, issuer: str) -> bool:
    return bool(SocialAccount.objects.filter(user=user, provider=issuer).exists())


def _of_address(email: str) -> User | None:
    """The only user with this address. The database ignores more differences between letters than
    it should (a dotless i), so the comparison is repeated here. With two users, none is chosen."""
    if not email:
        return None
    users = [
        user
        for user in User.objects.filter(Q(username__iexact=email) | Q(email__iexact=email))[:10]
        if email in (user.get_username().lower(), user.email.lower())
    ]
    if len(users) > 1:
        raise Forbidden(
            "more than one member has this e-mail address",
            hint="Sign in with your password and link the account under Sign-in methods.",
        )
    return users[0] if users else None


def _make_member(identity: Identity, request_id: str) -> User:
    """A new user in the workspace for new users. Raises Forbidden. Never an existing user, because
    another person may know its password."""
    sso = cast(SingleSignOn, settings.OIDC)
    name, _, domain = identity.email.rpartition("@")
    if not name or domain not in sso.domains or len(identity.email) > _LONGEST_NAME:
        raise _stranger(identity)
    workspace = Workspace.objects.filter(slug=sso.workspace).first()
    if workspace is None:
        raise Forbidden(
            "new users cannot sign in yet",
            hint=(
                f"The workspace {sso.workspace} does not exist. Contact the operator of the server."
            ),
        )
    actor = system_actor(workspace.pk, "single sign-on", request_id=request_id)
    with transaction.atomic():
        user, is_new = User.objects.get_or_create(
            username=identity.email, defaults={"email": identity.email, "password": "!"}
        )
        account, _ = SocialAccount.objects.get_or_create(
            provider=identity.issuer, uid=identity.subject, defaults={"user": user}
        )
        if account.user_id != user.pk:
            raise _stranger(identity)
        if is_new:
            Membership.objects.create(user=user, workspace=workspace, role=sso.role)
            detail = {"role": sso.role, "new_user": True, "issuer": identity.issuer}
            _record(actor, "member.add", user.get_username(), **detail)
    return user


def _stranger(identity: Identity) -> Forbidden:
    detail = "Ask an admin of a workspace to add you as a member"
    if identity.email:
        return Forbidden(
            "you are not a member of any workspace", hint=f"{detail}, as {identity.email}."
        )
    return Forbidden(
        "you are not a member of any workspace",
        hint=f"{detail}. If you are one, sign in another way and link your account under "
        "Sign-in methods: the provider does not say that your e-mail address is verified.",
    )


def _record(actor: Actor, action: str, name: str, **detail: object) -> None:
    journal.record(actor, [journal.Trace(action, key=name, detail=detail)])
