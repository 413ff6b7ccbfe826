"""The kinds of changes, as used by the change feed, webhooks and the audit log."""

from __future__ import annotations

from typing import Final

from .access import matches_any

_VERBS: Final = {
    "compaction": "apply cancel remove request undo",
    "compaction_policy": "put",
    "config": "rotate",
    "dispatch": "ack cancel claim clear enqueue expire extend nack replay",
    "entry": "delete expire import patch pin put redact restore",
    "identity": "link unlink",
    "mailbox": "ready",
    "member": "add link remove role set",
    "message": "append",
    "namespace": "change register unregister",
    "password": "set",
    "plugin": "install uninstall",
    "revert": "apply cancel finish request",
    "run": "change commit created done lease release renew resume running start stuck tool_calls"
    " waiting",
    "saved_view": "delete put",
    "session": "end start",
    "state_key": "change register unregister",
    "thread": "change create delete fork import interrupt mark restore uninstall",
    "ticket": "cancel open resume",
    "token": "change create revoke rotate",
    "totp": "codes enrol remove reset rotate",
    "webhook": "change create delete disable pause replay resume rotate test",
    "workspace": "change create delete freeze import move quota receive unfreeze",
}

KINDS: Final = frozenset(
    {"erase", *(f"{noun}.{verb}" for noun, verbs in _VERBS.items() for verb in verbs.split())}
)


def kinds_matching(glob: str) -> tuple[str, ...]:
    """The kinds that a glob matches, in order; only `*` is special. () if there are none."""
    return tuple(sorted(kind for kind in KINDS if matches_any((glob,), kind)))
