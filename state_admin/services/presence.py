"""Says who else has the editor of an entry open."""

from __future__ import annotations

from state_admin.domain import config
from state_admin.domain.access import Actor, Role
from state_admin.models import presence
from state_admin.models.presence import ActiveEditor

from .actors import require
from .namespaces import find_definition


def announce_editing(*, actor: Actor, namespace: str, key: str) -> list[ActiveEditor]:
    """Keep for a minute that the actor edits an entry; answers the others who do. NotRegistered.

    Like a heartbeat it leaves no trail (docs/adr/0008-heartbeats-leave-no-audit-row.md): it
    changes nothing that anybody reads but as this hint.
    """
    require(actor, Role.ADMIN if config.kind_of(namespace) else Role.EDITOR)
    find_definition(actor, namespace)
    return presence.announce(
        workspace_id=actor.workspace_id, user_id=int(actor.id), namespace=namespace, key=key
    )
