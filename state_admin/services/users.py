"""Creates users, and their one-time login links."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.hashers import make_password
from django.db.models.functions import Now

from state_admin.models import LoginLink, User
from state_admin.models.access import digest

LINK_LIFETIME = timedelta(hours=24)


def ensure_user(username: str) -> tuple[User, bool]:
    """The user. If it does not exist, it is created without a password, which is set after a login
    by link."""
    unusable = {"password": make_password(None)}
    return User.objects.get_or_create(username=username, defaults=unusable)


def make_login_link(user: User) -> str:
    """A secret that signs `user` in once, within 24 hours. Only its digest is stored."""
    secret = secrets.token_urlsafe(32)
    LoginLink.objects.create(user=user, digest=digest(secret), expires_at=Now() + LINK_LIFETIME)
    return secret


def cancel_login_links(*users: User) -> int:
    """Make the unused links of these users invalid. Returns their number."""
    return LoginLink.objects.filter(user__in=users, used_at=None).update(used_at=Now())


def cancel_links_of_new_members(*user_ids: int) -> None:
    """Make the unused links of users invalid who become members of another workspace, in the transaction
    that makes them members: admins of their other workspaces may have links, which would sign in to this
    one, too. Locks the accounts until its end, so that these admins create no more (members.guard_account)."""
    accounts = User.objects.filter(pk__in=user_ids).order_by("pk").select_for_update(no_key=True)
    cancel_login_links(*accounts)


def use_login_link(secret: str) -> User | None:
    """The user of this link, or None if it was used, has expired or never existed.

    The row count of a conditional UPDATE decides between concurrent uses.
    """
    link = LoginLink.objects.filter(digest=digest(secret)).select_related("user").first()
    if link is None:
        return None
    used = LoginLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=Now()).update(
        used_at=Now()
    )
    return link.user if used and link.user.is_active else None
