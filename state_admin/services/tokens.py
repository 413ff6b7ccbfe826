"""Makes and revokes API tokens. The secret is shown once and kept only as a digest."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from state_admin.domain import access
from state_admin.domain.access import Actor, Role
from state_admin.models import ApiToken
from state_admin.models.access import digest

from . import journal
from .actors import require
from .errors import Forbidden, Invalid, NotFound
from .token_cache import announce_revocation


def create_token(
    *,
    actor: Actor,
    name: str,
    role: Role,
    namespaces: Sequence[str] = (),
    thread_prefixes: Sequence[str] = (),
    expires_in_seconds: int | None = None,
    rate_per_minute: int | None = None,
    reason: str = "",
) -> tuple[ApiToken, str]:
    """Make a token in the actor's workspace; answers the row and the secret, once.

    Forbidden when the token would be wider than its creator (semantics §10).
    """
    require(actor, Role.ADMIN)
    if not name.strip():
        raise Invalid("a token needs a name", detail="Name the program that will use it.")
    if rate_per_minute is not None and rate_per_minute < 1:
        raise Invalid("a rate limit is at least one call a minute")
    if wider := access.narrower(role, tuple(namespaces), tuple(thread_prefixes), creator=actor):
        raise Forbidden("a token can only narrow what its creator may do", detail="; ".join(wider))
    # Letters and digits only: the parts of a token are joined by underscores.
    lookup, secret = secrets.token_hex(6), secrets.token_hex(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            workspace_id=actor.workspace_id,
            name=name.strip(),
            role=role.value,
            lookup=lookup,
            digest=digest(secret),
            namespaces=list(namespaces),
            thread_prefixes=list(thread_prefixes),
            rate_per_minute=rate_per_minute,
            created_by=actor.name,
            expires_at=Now() + timedelta(seconds=expires_in_seconds)
            if expires_in_seconds
            else None,
        )
        trace = journal.Trace("token.create", key=token.name, detail={"role": role.value})
        journal.record(actor, [trace], reason=reason)
        token.refresh_from_db()
    return token, f"sh_{lookup}_{secret}"


def revoke_token(*, actor: Actor, token_id: int, reason: str = "") -> ApiToken:
    """End a token at once; calling again changes nothing."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        token = ApiToken.objects.visible_to(actor).filter(pk=token_id).first()
        if token is None:
            raise NotFound(f"token not found: {token_id}")
        if ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=Now()):
            announce_revocation()
            journal.record(actor, [journal.Trace("token.revoke", key=token.name)], reason=reason)
        token.refresh_from_db()
    return token
