"""Tables, named constraints and QuerySets: every read lives here, no write does."""

from __future__ import annotations

from .access import ApiToken, LoginAttempt, LoginLink, Membership, Role, User
from .audit import AuditRow
from .changes import Change
from .compactions import Compaction, CompactionKind, CompactionStatus, Trigger
from .entries import Entry, EntryRevision, Operation
from .idempotency import IdempotencyRecord
from .limits import RateBucket, WorkspaceUsage
from .messages import Message, MessageRole, Visibility
from .namespaces import Namespace, NamespaceVersion
from .runs import Origin, Run, RunStatus
from .search import SearchDocument, SearchPosition
from .snapshots import Revision, RevisionKind, StateValue
from .state_keys import Merge, StateKey, StateScope
from .sweeps import Sweep
from .threads import Thread
from .tickets import Ticket, TicketStatus
from .webhooks import DeliveryStatus, Webhook, WebhookDelivery, WebhookSecret, WebhookStatus
from .workspaces import Workspace

__all__ = [
    "ApiToken",
    "AuditRow",
    "Change",
    "Compaction",
    "CompactionKind",
    "CompactionStatus",
    "DeliveryStatus",
    "Entry",
    "EntryRevision",
    "IdempotencyRecord",
    "LoginAttempt",
    "LoginLink",
    "Membership",
    "Merge",
    "Message",
    "MessageRole",
    "Namespace",
    "NamespaceVersion",
    "Operation",
    "Origin",
    "RateBucket",
    "Revision",
    "RevisionKind",
    "Role",
    "Run",
    "RunStatus",
    "SearchDocument",
    "SearchPosition",
    "StateKey",
    "StateScope",
    "StateValue",
    "Sweep",
    "Thread",
    "Ticket",
    "TicketStatus",
    "Trigger",
    "User",
    "Visibility",
    "Webhook",
    "WebhookDelivery",
    "WebhookSecret",
    "WebhookStatus",
    "Workspace",
    "WorkspaceUsage",
]
