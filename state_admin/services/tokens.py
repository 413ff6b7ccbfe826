"""Creates, changes, rotates and revokes API tokens. The secret is shown once; only its digest is stored."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Least, Now
from django.utils import timezone

from state_admin.contract import tokens as contract
from state_admin.domain import access
from state_admin.domain.access import Actor, Role
from state_admin.domain.moments import timestamp
from state_admin.domain.values import Fault
from state_admin.models import ApiToken, Membership
from state_admin.models.access import digest

from . import journal
from .actors import actor_of_row, require, require_operator
from .cells import mark_cell
from .errors import Conflict, Forbidden, Invalid
from .finding import find_row
from .token_cache import announce_change

# How long both secrets of a rotated token may work.
MOST_OVERLAP = timedelta(days=30)


def create_token(
    *,
    actor: Actor,
    name: str,
    role: Role,
    namespaces: Sequence[str] = (),
    thread_prefixes: Sequence[str] = (),
    expires_in_seconds: int | None = None,
    rate_per_minute: int | None = None,
    operator: bool = False,
    reason: str = "",
) -> tuple[ApiToken, str]:
    """Create a token in the actor's workspace. Returns the row and the secret, which is available
    only here.

    Raises Forbidden if the token would have more permissions than its creator, and Invalid if it would
    outlive the token that creates it. An `operator` token may manage all workspaces; it is an admin
    without limits.
    """
    require(actor, Role.ADMIN)
    if operator:
        _check_operator(role, namespaces, thread_prefixes)
        if actor.kind != "system":
            require_operator(actor)
    name = _check_name(name)
    _check_rate(rate_per_minute)
    if expires_in_seconds is not None and not 1 <= expires_in_seconds <= contract.LONGEST_LIFE:
        raise Invalid("a token must be valid for at least 1 second and at most 10 years")
    _check_reach(actor, role, namespaces, thread_prefixes)
    lives = None if expires_in_seconds is None else timedelta(seconds=expires_in_seconds)
    if due := _end_before(actor, Now() + lives if lives else None):
        message = f"the new token must not expire after the token that creates it: {due}"
        raise Invalid(
            "a token cannot outlive the token that creates it",
            [Fault("/expires_in_seconds", message)],
            hint="Set expires_in_seconds to a shorter lifetime, or use a token that does not expire.",
        )
    with transaction.atomic():
        _hold_membership(actor)
        token, secret = _insert(
            actor,
            lives,
            name=name,
            role=role.value,
            namespaces=list(namespaces),
            thread_prefixes=list(thread_prefixes),
            rate_per_minute=rate_per_minute,
            operator=operator,
        )
        trace = journal.Trace("token.create", key=token.name, detail={"role": role.value})
        journal.record(actor, [trace], reason=reason)
    return token, secret


def change_token(
    *, actor: Actor, token_id: int, changes: Mapping[str, Any], reason: str = ""
) -> ApiToken:
    """Change a token, with immediate effect. `changes`: new values by the names of contract.TokenChanges.

    Raises NotFound; Conflict for a token that was rotated or is not active; Forbidden for permissions that the
    actor does not have, and for an operator token unless the actor is an operator; Invalid, also if
    the change adds permissions to a token that expires after that of the actor.
    """
    require(actor, Role.ADMIN)
    with transaction.atomic():
        token = _lock_token(actor, token_id)
        require_active(token)
        if token.operator:
            require_operator(actor)
        changes = dict(changes)
        former = actor_of_row(token)
        if "name" in changes:
            changes["name"] = _check_name(changes["name"])
        before = {name: getattr(token, name) for name in changes}
        changed = {name: value for name, value in changes.items() if value != before[name]}
        for name, value in changed.items():
            setattr(token, name, value)
        reach = Role(token.role), token.namespaces, token.thread_prefixes
        # With more permissions, it is as if the actor had created it.
        if "expires_at" in changed or access.narrower(*reach, creator=former):
            _check_end(actor, token.expires_at)
        _check_rate(token.rate_per_minute)
        if token.operator:
            _check_operator(*reach)
        _check_reach(actor, *reach)
        if changed:
            token.save(update_fields=list(changed))
            announce_change()
            detail = {
                "from": {name: _written(before[name]) for name in sorted(changed)},
                "to": {name: _written(changed[name]) for name in sorted(changed)},
            }
            trace = journal.Trace("token.change", key=token.name, detail=detail)
            journal.record(actor, [trace], reason=reason)
    return token


def require_active(token: ApiToken) -> None:
    """Raise Conflict for a token, read with_state, that was rotated or revoked or has expired."""
    match token.state:
        case "revoked":
            raise Conflict(f"token is revoked: {token.pk}", hint="Create a new token instead.")
        case "expired":
            raise Conflict(f"token has expired: {token.pk}", hint="Create a new token instead.")
        case "rotated":
            raise Conflict(
                f"token is already rotated: {token.pk}", hint="Change its successor instead."
            )


def rotate_token(
    *, actor: Actor, token_id: int, overlap: timedelta, reason: str = ""
) -> tuple[ApiToken, str]:
    """Create a successor with the same name, permissions and lifetime. Returns it and its secret, once.
    The old token remains valid for `overlap`, or until it expires if that is sooner.

    Raises NotFound; Forbidden if the token has more permissions than the actor, or the successor would
    outlive the actor's token, unless that is the one that is rotated; Conflict for a token that was
    rotated before, so that a form sent twice creates one successor, or is not active.
    """
    require(actor, Role.ADMIN)
    if not timedelta(0) <= overlap <= MOST_OVERLAP:
        raise Invalid(f"the overlap must be at most {MOST_OVERLAP.days} days")
    with transaction.atomic():
        _hold_membership(actor)
        # Locked, so that the successor has no permissions that are removed in the meantime.
        old = _lock_token(actor, token_id)
        _check_reach(actor, Role(old.role), old.namespaces, old.thread_prefixes)
        if old.operator:
            require_operator(actor)
        lives = old.expires_at - old.created_at if old.expires_at else None
        itself = actor.kind == "token" and old.pk == int(actor.id)
        if not itself and (due := _end_before(actor, Now() + lives if lives else None)):
            raise Forbidden(
                "the successor would outlive the token that rotates it",
                hint=f"The token of this request expires at {due}. Use one that does not expire.",
            )
        live = ApiToken.objects.live().filter(pk=old.pk, rotated_at=None)
        ends = Least(F("expires_at"), Now() + overlap)  # where one is NULL, the other
        if not live.update(rotated_at=Now(), expires_at=ends):
            old.refresh_from_db()
            state = "already rotated" if old.rotated_at else "no longer active"
            raise Conflict(f"token is {state}: {token_id}", hint="Create a new token instead.")
        token, secret = _insert(
            actor,
            lives,
            name=old.name,
            role=old.role,
            namespaces=old.namespaces,
            thread_prefixes=old.thread_prefixes,
            rate_per_minute=old.rate_per_minute,
            operator=old.operator,
        )
        announce_change()
        detail = {"from": old.lookup, "to": token.lookup, "overlap": overlap.total_seconds()}
        trace = journal.Trace("token.rotate", key=token.name, detail=detail)
        journal.record(actor, [trace], reason=reason)
    return token, secret


def _hold_membership(actor: Actor) -> None:
    """Lock the membership of a user until the end of the transaction, so that a concurrent removal of the
    member also revokes the new token. Before any token is locked, in the order of `remove_member`. Raises
    Forbidden for a former admin."""
    if actor.kind == "user":
        rows = Membership.objects.filter(workspace_id=actor.workspace_id, user_id=int(actor.id))
        if not rows.filter(role=Role.ADMIN.value).select_for_update(no_key=True).exists():
            raise Forbidden("you are no longer an admin of the workspace")


def _insert(actor: Actor, lives: timedelta | None, **fields: Any) -> tuple[ApiToken, str]:
    # No underscores: they separate the parts of a token.
    lookup, secret = mark_cell(secrets.token_hex(6)), secrets.token_hex(32)
    token = ApiToken.objects.create(
        workspace_id=actor.workspace_id,
        lookup=lookup,
        digest=digest(secret),
        created_by=actor.name,
        created_by_kind=actor.kind,
        expires_at=Now() + lives if lives else None,
        **fields,
    )
    token.refresh_from_db()
    return token, token.beginning + secret


def _check_reach(
    actor: Actor, role: Role, namespaces: Sequence[str], thread_prefixes: Sequence[str]
) -> None:
    if wider := access.narrower(role, tuple(namespaces), tuple(thread_prefixes), creator=actor):
        raise Forbidden(
            "a token cannot have more permissions than its creator", hint="; ".join(wider)
        )


def _check_name(name: str) -> str:
    """The name without surrounding white space."""
    name = name.strip()
    if not name:
        raise Invalid(
            "a token must have a name",
            [Fault("/name", "must not be empty")],
            hint="Name the program that will use it.",
        )
    if len(name) > contract.NAME_LENGTH:
        raise Invalid(f"the name of a token must have at most {contract.NAME_LENGTH} characters")
    return name


def _check_rate(per_minute: int | None) -> None:
    if per_minute is not None and not 1 <= per_minute <= contract.MOST_PER_MINUTE:
        raise Invalid(
            f"a rate limit must be from 1 to {contract.MOST_PER_MINUTE:,} requests per minute"
        )


def _check_operator(role: Role, namespaces: Sequence[str], thread_prefixes: Sequence[str]) -> None:
    if role is not Role.ADMIN or namespaces or thread_prefixes:
        fault = Fault("/operator", "needs the role admin, without namespaces and thread_prefixes")
        raise Invalid("an operator token must have the role admin and no limits", [fault])


def _check_end(actor: Actor, ends: datetime | None) -> None:
    """Check the new end of a token that exists."""
    now = timezone.now()
    if ends is not None and not now < ends <= now + timedelta(seconds=contract.LONGEST_LIFE):
        message = "must be in the future, at most 10 years from now"
        raise Invalid(
            "expires_at is not valid",
            [Fault("/expires_at", message)],
            hint="To end the token now, revoke it.",
        )
    if due := _end_before(actor, ends):
        message = f"the token must not expire after the token that changes it: {due}"
        raise Invalid(
            "a token cannot outlive the token that changes it",
            [Fault("/expires_at", message)],
            hint="Set expires_at to an earlier time, or use a token that does not expire.",
        )


def _written(value: Any) -> Any:
    """A value as the audit log has it."""
    return timestamp(value) if isinstance(value, datetime) else value


def _end_before(actor: Actor, ends: Combinable | datetime | None) -> str:
    """When the actor's token expires, if that is before `ends`, the end of another token; or ""."""
    if actor.kind != "token":
        return ""
    creators = ApiToken.objects.filter(pk=actor.id, expires_at__isnull=False)
    if ends is not None:
        creators = creators.filter(expires_at__lt=ends)
    due = creators.values_list("expires_at", flat=True).first()
    return due.astimezone(UTC).isoformat(timespec="seconds") if due else ""


def find_token(actor: Actor, token_id: int) -> ApiToken:
    return find_row(ApiToken.objects.visible_to(actor).with_state(), "token", pk=token_id)


def _lock_token(actor: Actor, token_id: int) -> ApiToken:
    rows = ApiToken.objects.visible_to(actor).with_state().select_for_update(no_key=True)
    return find_row(rows, "token", pk=token_id)


def revoke_token(*, actor: Actor, token_id: int, reason: str = "") -> ApiToken:
    """Revoke a token, with immediate effect. Calling it again has no effect."""
    require(actor, Role.ADMIN)
    with transaction.atomic():
        token = find_token(actor, token_id)
        if ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=Now()):
            announce_change()
            journal.record(actor, [journal.Trace("token.revoke", key=token.name)], reason=reason)
        token.refresh_from_db()
    return token


def tokens_of_user(actor: Actor, username: str) -> QuerySet[ApiToken]:
    """The tokens of the actor's workspace that a user created and that are still valid."""
    rows = ApiToken.objects.visible_to(actor).live().created_by_user(username)
    return rows.order_by("name", "pk")


def revoke_tokens_of_user(actor: Actor, username: str) -> list[journal.Trace]:
    """Revoke the tokens that a user created. Must be called in a transaction, which records what this
    returns: one trace per token."""
    tokens = list(tokens_of_user(actor, username).select_for_update(no_key=True))
    if tokens:
        ApiToken.objects.filter(pk__in=[token.pk for token in tokens]).update(revoked_at=Now())
        announce_change()
    return [journal.Trace("token.revoke", key=token.name) for token in tokens]
