"""Tables, named constraints and QuerySets. All reads are defined here; writes are in services."""

from __future__ import annotations

from .access import ApiToken, LoginAttempt, LoginLink, Membership, Role, User
from .audit import AuditRow
from .audit_stream import AuditStream
from .changes import Change
from .compactions import Compaction, CompactionKind, CompactionStatus, Phase, Trigger
from .config import ConfigSecret
from .dispatches import Dispatch, DispatchStatus, Mailbox
from .entries import Entry, EntryRevision, Operation
from .feed_eras import FeedEra
from .idempotency import IdempotencyRecord
from .limits import RateBucket, WorkspaceUsage
from .messages import Message, MessageRole, Visibility
from .model_usage import ModelCircuit, ModelSpending
from .namespaces import Namespace, NamespaceVersion
from .plugins import Plugin
from .policies import CompactionPolicy
from .presence import Presence
from .reads import RunRead
from .reverts import Revert, RevertEntry, RevertStatus
from .runs import Origin, Run, RunStatus
from .saved_views import DefaultView, SavedView, ViewPage
from .search import SearchDocument, SearchPosition
from .sessions import UserSession
from .snapshots import Revision, RevisionKind, StateValue
from .state_keys import Merge, StateKey, StateScope
from .storage import StorageSample
from .sweeps import Sweep
from .threads import Thread
from .tickets import OnExpiry, Ticket, TicketStatus
from .traffic import Traffic
from .webhooks import DeliveryStatus, Webhook, WebhookDelivery, WebhookSecret, WebhookStatus
from .workspace_moves import Arrival, MoveSide, MoveState, WorkspaceMove
from .workspaces import Workspace
from .write_positions import WritePosition
