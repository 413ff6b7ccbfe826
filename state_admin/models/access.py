"""Users, their membership, API tokens, one-time login links."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Self

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Q, Value, When
from django.db.models.functions import Now

from state_admin.domain.access import Role as DomainRole

from .visibility import WorkspaceWideQuerySet
from .workspaces import Workspace


class Role(models.TextChoices):
    VIEWER = DomainRole.VIEWER.value
    EDITOR = DomainRole.EDITOR.value
    ADMIN = DomainRole.ADMIN.value


def digest(secret: str) -> str:
    """SHA-256 in hex. Needs neither salt nor stretching, because the secrets are 256 random
    bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


class User(AbstractUser):
    """A user. Permissions come from the user's memberships, not from Django's permissions."""

    class Meta(AbstractUser.Meta):
        db_table = "users"
        swappable = "AUTH_USER_MODEL"


class MembershipQuerySet(WorkspaceWideQuerySet["Membership"]):
    pass


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        db_table = "memberships"
        constraints = [
            models.UniqueConstraint(fields=["user", "workspace"], name="memberships_unique"),
        ]


class TokenQuerySet(WorkspaceWideQuerySet["ApiToken"]):
    def live(self) -> Self:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)

    def created_by_user(self, username: str) -> Self:
        """Those that a user created. Users create no operator tokens."""
        kinds = ("user", "")
        return self.filter(created_by=username, created_by_kind__in=kinds, operator=False)

    def with_state(self) -> Self:
        """With `state`: live, rotated (live until it expires, but with a successor), expired or
        revoked."""
        return self.annotate(
            state=Case(
                When(revoked_at__isnull=False, then=Value("revoked")),
                When(expires_at__lte=Now(), then=Value("expired")),
                When(rotated_at__isnull=False, then=Value("rotated")),
                default=Value("live"),
            )
        )


TOKEN_PREFIX = "ch"  # noqa: S105  # public; identifies secrets of Commonhold


class ApiToken(models.Model):
    """An API token, `ch_<lookup>_<secret>`. Only the digest of the secret is stored.

    In a cell, `lookup` begins with the name of the cell in which the token was created
    (services/cells.py).
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=128)
    role = models.CharField(max_length=8, choices=Role.choices)
    lookup = models.CharField(max_length=24, db_collation="C")
    digest = models.CharField(max_length=64)
    # Globs of namespaces and prefixes of thread ids to which the token is limited; empty means all.
    namespaces = ArrayField(models.CharField(max_length=128), default=list, db_default=[])
    thread_prefixes = ArrayField(models.CharField(max_length=128), default=list, db_default=[])
    # May manage all workspaces. Created by a command, or by another operator token.
    operator = models.BooleanField(default=False, db_default=False)
    # Calls per minute; NULL means no limit.
    rate_per_minute = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    # The kind of the actor with that name; "" in tokens that were created before it was recorded.
    created_by_kind = models.CharField(max_length=8, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # When its successor was created; the token remains valid until it expires.
    rotated_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # Of rows that are read with_state.
    state: str

    objects = TokenQuerySet.as_manager()

    class Meta:
        db_table = "api_tokens"
        constraints = [models.UniqueConstraint(fields=["lookup"], name="api_tokens_lookup_unique")]

    @property
    def beginning(self) -> str:
        """The public part of the token, by which users recognize it."""
        return f"{TOKEN_PREFIX}_{self.lookup}_"


class LoginLink(models.Model):
    """A link that signs a user in once. Only its digest is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "login_links"
        constraints = [models.UniqueConstraint(fields=["digest"], name="login_links_digest_unique")]


class LoginAttemptQuerySet(models.QuerySet["LoginAttempt"]):
    def recent(self, window: timedelta) -> Self:
        return self.filter(at__gt=Now() - window)


class LoginAttempt(models.Model):
    """A failed password login, or one in progress; throttling counts these."""

    username = models.CharField(max_length=150, db_collation="C")
    address = models.GenericIPAddressField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    objects = LoginAttemptQuerySet.as_manager()

    class Meta:
        db_table = "login_attempts"
        indexes = [
            # Throttling counts the newest attempts from one address, in all and with one name.
            models.Index(fields=["address", "at"], name="login_attempts_of_address"),
        ]
