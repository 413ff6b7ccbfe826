"""Turns a token or a user into an Actor, and refuses what an actor may not do."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import NoReturn

from django.conf import settings
from django.db.models.functions import Now

from project import tracing
from state_admin.domain import config
from state_admin.domain.access import Actor, Role
from state_admin.models import ApiToken, Membership, User, hot
from state_admin.models import access as access_models

from . import throttles
from .cells import is_elsewhere
from .errors import Forbidden, Unauthenticated
from .move_problems import WorkspaceMoved
from .throttles import Allowance
from .token_cache import Credential, cache

_FIND = """
SELECT t.id, t.workspace_id, t.name, t.role, t.digest, t.namespaces, t.thread_prefixes,
    t.operator, t.rate_per_minute, t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute',
    w.frozen_at IS NOT NULL, w.moved_to
FROM api_tokens t JOIN workspaces w ON w.id = t.workspace_id
WHERE t.lookup = %(lookup)s AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
"""

_REMEDY = "Create a token on the page Tokens, or with manage.py create_token."


def token_required() -> Unauthenticated:
    return Unauthenticated(
        "a token is required", hint=f"Send Authorization: Bearer ch_…. {_REMEDY}"
    )


def invalid_token() -> Unauthenticated:
    return Unauthenticated(
        "the token is not valid", hint=f"It is unknown, expired or revoked. {_REMEDY}"
    )


def admit_token(
    presented: str, *, request_id: str = "", run_id: str = ""
) -> tuple[Actor, Allowance | None] | None:
    """As actor_of_token, but counts the call, and also returns the remaining rate limit. Raises
    RateLimited, WorkspaceMoved."""
    credential = _credential_of(presented)
    if credential is None:
        return None
    allowance = throttles.spend(credential.token_id, credential.rate_per_minute)
    return _acting(credential, request_id, run_id), allowance


def actor_of_token(presented: str, *, request_id: str = "", run_id: str = "") -> Actor | None:
    """The actor of the token `ch_<lookup>_<secret>`, or None if there is no such active token. Raises
    WorkspaceMoved."""
    credential = _credential_of(presented)
    if credential is None:
        return None
    return _acting(credential, request_id, run_id)


def _acting(credential: Credential, request_id: str, run_id: str) -> Actor:
    return replace(
        credential.actor,
        request_id=request_id,
        run_id=run_id,
        traceparent=tracing.traceparent(),
    )


def _credential_of(presented: str) -> Credential | None:
    """Queries the database at most once in five seconds if the cache is on
    (services/token_cache.py). Raises WorkspaceMoved, which is not cached."""
    whole = access_models.digest(presented) if presented.isascii() else ""
    cached = cache.find(whole)
    if cached is not None:
        return cached
    generation = cache.generation
    credential = _find_credential(presented)
    if credential is not None:
        cache.keep(whole, credential, generation)
    return credential


def cached_credential(presented: str) -> Credential | None:
    """The credential of a token that was used within the last seconds. Does not query the database."""
    return cache.find(access_models.digest(presented)) if presented.isascii() else None


def _find_credential(presented: str) -> Credential | None:
    """One prepared statement. The secret is compared in constant time. The last use is recorded at
    most once a minute, so most calls write nothing."""
    prefix, _, rest = presented.partition("_")
    lookup, _, secret = rest.partition("_")
    if (
        prefix != access_models.TOKEN_PREFIX
        or not lookup
        or not secret
        or not presented.isascii()
        or "\0" in presented
    ):
        return None
    row = hot.fetch_one(_FIND, {"lookup": lookup})
    if row is None:
        return None
    identity, workspace_id, name, role, digest, namespaces, prefixes, operator = row[:8]
    rate, stale_use, frozen, moved_to = row[8:]
    if not hmac.compare_digest(digest, access_models.digest(secret)):
        return None
    if is_elsewhere(moved_to):
        raise WorkspaceMoved(moved_to)
    if stale_use:
        ApiToken.objects.filter(id=identity).update(last_used_at=Now())
    actor = Actor(
        kind="token",
        id=str(identity),
        name=name,
        workspace_id=workspace_id,
        role=Role(role),
        namespaces=tuple(namespaces),
        thread_prefixes=tuple(prefixes),
        operator=operator,
        frozen=frozen,
    )
    return Credential(actor, identity, rate)


def actor_of_row(token: ApiToken) -> Actor:
    """The actor with the present permissions of a token, which need not be live."""
    return Actor(
        kind="token",
        id=str(token.pk),
        name=token.name,
        workspace_id=token.workspace_id,
        role=Role(token.role),
        namespaces=tuple(token.namespaces),
        thread_prefixes=tuple(token.thread_prefixes),
    )


def actor_of_user(
    user: User, workspace_slug: str | None = None, *, request_id: str = ""
) -> Actor | None:
    """The actor of a user in the named workspace, or in their first one. None: not a member, or the
    workspace is in another cell."""
    memberships = Membership.objects.filter(user=user, workspace__moved_to__in=("", settings.CELL))
    memberships = memberships.select_related("workspace")
    if workspace_slug:
        memberships = memberships.filter(workspace__slug=workspace_slug)
    membership = memberships.order_by("id").first()
    return _member(user, membership, request_id) if membership else None


def raise_for_outsider(user: User) -> NoReturn:
    """Raise WorkspaceMoved if the workspaces of `user` are in other cells, and Forbidden if there are
    none."""
    moved = Membership.objects.filter(user=user).exclude(workspace__moved_to="").order_by("id")
    if cell := moved.values_list("workspace__moved_to", flat=True).first():
        raise WorkspaceMoved(cell)
    raise Forbidden(
        "you are not a member of a workspace",
        hint="Ask a workspace admin to add you, then reload this page.",
    )


def actors_of_user(user: User, *, request_id: str = "") -> list[Actor]:
    """The actors of a user, one in each of their workspaces that accepts writes."""
    memberships = Membership.objects.filter(user=user, workspace__frozen_at=None)
    memberships = memberships.select_related("workspace").order_by("id")
    return [_member(user, each, request_id) for each in memberships]


def _member(user: User, membership: Membership, request_id: str) -> Actor:
    return Actor(
        kind="user",
        id=str(user.pk),
        name=user.get_username(),
        workspace_id=membership.workspace_id,
        role=Role(membership.role),
        request_id=request_id,
        traceparent=tracing.traceparent(),
        workspace=membership.workspace.slug,
        frozen=membership.workspace.frozen_at is not None,
    )


def system_actor(workspace_id: int, name: str, *, request_id: str = "") -> Actor:
    """The actor of background work. `name` is the name of the job."""
    return Actor(
        kind="system",
        id=name,
        name=name,
        workspace_id=workspace_id,
        role=Role.ADMIN,
        request_id=request_id,
        traceparent=tracing.traceparent(),
    )


def require(actor: Actor, role: Role) -> None:
    """Raise Forbidden unless `actor` holds `role` or more."""
    if not actor.may(role):
        if actor.kind == "token":
            hint = f"The role of this token is {actor.role.value}. Use a token with a higher role."
        else:
            hint = (
                f"Your role is {actor.role.value}. Ask an admin of the workspace for a higher role."
            )
        raise Forbidden(f"the role {role.value} is required", hint=hint)


def require_unrestricted(actor: Actor, hint: str = "") -> None:
    """Raise Forbidden for a token that is limited to some namespaces or threads."""
    if actor.restricted:
        raise Forbidden("a token without limits to namespaces or threads is required", hint=hint)


def require_operator(actor: Actor) -> None:
    """Raise Forbidden unless `actor` may manage all workspaces."""
    if not actor.operator:
        raise Forbidden(
            "an operator token is required",
            hint="The operator of the server creates one: manage.py create_token --operator.",
        )


def require_open(name: str) -> None:
    """Refuse to write into a namespace of the config registry, whose services keep its secrets out
    of the values (services/config.py)."""
    if kind := config.kind_of(name):
        raise Forbidden(
            f"namespace {name} is reserved",
            hint=f"Write to it through /api/v1/config/{kind}/{{id}}, which encrypts secrets.",
        )
