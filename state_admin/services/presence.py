"""Records which users have the editor of an entry, a namespace or a policy open."""

from __future__ import annotations

from state_admin.domain import config
from state_admin.domain.access import Actor, Role
from state_admin.models import presence
from state_admin.models.presence import ActiveEditor

from .actors import require
from .namespaces import find_definition
from .policies import Scope, read_policy, role_of


def announce_editing(*, actor: Actor, namespace: str, key: str) -> list[ActiveEditor]:
    """Record, for a minute, that the actor is editing an entry, or the namespace itself if `key` is
    empty. Returns the other users who are.

    Writes no audit row, like a heartbeat (docs/adr/0008-heartbeats-leave-no-audit-row.md). Raises
    NotRegistered.
    """
    require(actor, Role.ADMIN if config.kind_of(namespace) or not key else Role.EDITOR)
    find_definition(actor, namespace)
    return presence.announce(actor, namespace, key)


def announce_editing_policy(*, actor: Actor, scope: Scope, name: str) -> list[ActiveEditor]:
    """As announce_editing, for the policy of a scope. Raises NotFound."""
    require(actor, role_of(scope))
    read_policy(actor=actor, scope=scope, name=name)
    # The name of a namespace contains no slash.
    return presence.announce(actor, f"policies/{scope}", name)
