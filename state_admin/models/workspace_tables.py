"""The tables of a workspace, and how each column is copied to another workspace or server.

A column is kept unless it has a rule here: a primary key gets a new number, and a foreign key follows
its row. Rules are SQL over `x`, a row of the table (`exported`) or of the file (`imported`;
models/workspace_copies_sql.py). A test fails for a model that is not here, unless the test says why it is
not copied, and for a column whose name says that it holds a number or a secret of this server and that
has no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import models

from .access import ApiToken, Membership, User
from .audit import AuditRow
from .changes import Change
from .compactions import Compaction
from .config import ConfigSecret
from .dispatches import Dispatch, Mailbox
from .entries import Entry, EntryRevision
from .limits import WorkspaceUsage
from .messages import Message
from .model_usage import ModelCircuit, ModelSpending
from .namespaces import Namespace, NamespaceVersion
from .plugins import Plugin
from .policies import CompactionPolicy
from .reads import RunRead
from .reverts import Revert, RevertEntry
from .runs import Run
from .saved_views import DefaultView, SavedView
from .snapshots import Revision, StateValue
from .state_keys import StateKey
from .storage import StorageSample
from .threads import Thread
from .tickets import Ticket
from .traffic import Traffic
from .webhooks import Webhook, WebhookDelivery, WebhookSecret
from .workspaces import Workspace

# The staging table of a table (models/workspace_copies_sql.py).
STAGING: Final = "import_{}"


@dataclass(frozen=True)
class Column:
    """The rule of a column: its value in the file and in the copy. "": `x` and the column's name.
    `refers`: the number of a row of this model, which follows the row. `secret`: NULL in a file without
    secrets."""

    exported: str = ""
    imported: str = ""
    refers: type[models.Model] | None = None
    secret: bool = False


@dataclass(frozen=True)
class Table:
    """A table. `owner`: the rows through which a row belongs to the workspace, if it has no column
    `workspace_id`. `order`: the columns by which the rows are sorted in the file, in which order they
    get new numbers; (): those of the primary key.

    `of_members`: the rows belong to users, and are imported on request. `secret`: the table is empty in
    a file without secrets. `stored` False: a service stores the rows.
    """

    model: type[models.Model]
    owner: tuple[type[models.Model], ...] = ()
    columns: Mapping[str, Column] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    of_members: bool = False
    secret: bool = False
    stored: bool = True
    # SQL over `x` and the rows that it refers to, which are named as its columns.
    condition: str = "true"

    @property
    def name(self) -> str:
        return self.model._meta.db_table

    @property
    def staging(self) -> str:
        return STAGING.format(self.name)

    @property
    def fields(self) -> dict[str, models.Field[Any, Any]]:
        """The fields by the names of their columns."""
        return {str(each.column): each for each in self.model._meta.concrete_fields if each.column}

    @property
    def numbered(self) -> bool:
        """Whether rows have a number of their own, the column `id`."""
        return isinstance(self.model._meta.pk, models.AutoField)

    @property
    def required(self) -> set[str]:
        """The columns that every file has; later versions may have added the others, which have a
        default."""
        return {
            name
            for name, each in self.fields.items()
            if each.primary_key
            or each.is_relation
            or not (each.null or each.has_default() or each.has_db_default())
        }

    def rule(self, column: str) -> Column:
        given = self.fields[column]
        if column in self.columns:
            return self.columns[column]
        if isinstance(given, models.AutoField):
            return Column(imported="x.new_id")
        if not isinstance(given, models.ForeignKey):
            return Column()
        if given.related_model is User:
            return _user(column)
        return Column(refers=given.related_model)


_USERS: Final = User._meta.db_table


def _user(column: str) -> Column:
    """A user is the one with the same name."""
    return Column(
        exported=f"(SELECT u.username FROM {_USERS} u WHERE u.id = x.{column})",
        imported=f"(SELECT u.id FROM {_USERS} u WHERE u.username = x.{column})",
    )


def _public_id(table: str) -> Column:
    """An id that is unique on the server: kept unless the server has it."""
    taken = f"EXISTS (SELECT FROM {table} t WHERE t.public_id = x.public_id)"
    return Column(imported=f"CASE WHEN {taken} THEN gen_random_uuid()::text ELSE x.public_id END")


# All changes of the file get one position, that of the transaction that imports them, and keep their
# order by their numbers. Nobody can see the copy earlier, so nothing in it has a later position.
_CLOCK: Final = "(SELECT feed_xid())"


def _change_before(xid: str, number: str) -> str:
    """The new number of the newest change up to a position of the source, or 0."""
    changes = STAGING.format(Change._meta.db_table)
    return (
        f"coalesce((SELECT c.new_id FROM {changes} c"
        f" WHERE (c.xid, c.id) <= (x.{xid}::text::xid8, x.{number})"
        " ORDER BY c.xid DESC, c.id DESC LIMIT 1), 0)"
    )


# A token stays valid if the file has its digest and the server does not have the token.
_LOOKUP_IS_NEW: Final = (
    "(x.digest IS NULL OR EXISTS (SELECT FROM api_tokens t WHERE t.lookup = x.lookup))"
)

# The position of a search in the audit log consists of numbers of the source: the copy begins again. That of
# a search in the entries is a name.
REVERT_PROGRESS: Final = "x.progress - '{near,up,down,low,found}'::text[]"

# The job writes with the permissions of its token, which has a new number. A user is found by name.
_REVERT_ACTOR: Final = (
    "CASE WHEN x.actor_kind = 'token' THEN coalesce((SELECT t.new_id::text"
    f" FROM {STAGING.format(ApiToken._meta.db_table)} t WHERE t.id::text = x.actor_id), '0')"
    " ELSE x.actor_id END"
)

# In the order in which they refer to each other.
TABLES: Final = (
    Table(
        Workspace,
        columns={
            # A copy accepts writes, and is where it was imported.
            "frozen_at": Column(imported="NULL::timestamptz"),
            "moved_to": Column(imported="''"),
            "deleted_slug": Column(imported="''"),
        },
    ),
    Table(Membership, of_members=True, condition=f"{_user('user_id').imported} IS NOT NULL"),
    Table(
        ApiToken,
        columns={
            "lookup": Column(
                imported=f"CASE WHEN {_LOOKUP_IS_NEW} THEN right(gen_random_uuid()::text, 12)"
                " ELSE x.lookup END"
            ),
            "digest": Column(
                secret=True, imported=f"CASE WHEN {_LOOKUP_IS_NEW} THEN '' ELSE x.digest END"
            ),
            # An operator token manages all workspaces of a server; a file must not create one.
            "operator": Column(imported="false"),
        },
    ),
    Table(Plugin),
    Table(Namespace),
    Table(NamespaceVersion, owner=(Namespace,)),
    Table(StateKey),
    Table(CompactionPolicy),
    Table(Entry, owner=(Namespace,)),
    Table(EntryRevision, owner=(Entry, Namespace), columns={"xid": Column()}),
    Table(
        ConfigSecret,
        owner=(Entry, Namespace),
        columns={"ciphertext": Column(secret=True), "key_id": Column()},
        stored=False,
    ),
    Table(Thread),
    Table(Run),
    Table(Revision, owner=(Thread,)),
    Table(StateValue, owner=(Thread,)),
    Table(Message, owner=(Thread,)),
    Table(RunRead),
    Table(Ticket),
    Table(Dispatch, columns={"claim_digest": Column()}),
    Table(Mailbox, columns={"next_id": Column(refers=Dispatch)}),
    Table(Compaction),
    Table(
        Revert,
        columns={
            "progress": Column(imported=REVERT_PROGRESS),
            "actor_id": Column(imported=_REVERT_ACTOR),
        },
    ),
    Table(RevertEntry),
    Table(Change, columns={"xid": Column(imported=_CLOCK)}, order=("xid", "id")),
    # Numbered by the INSERT, and not before: the audit stream passes an id once no statement that can
    # assign a lower one is open (models/audit_stream.py).
    Table(
        AuditRow,
        columns={"id": Column(imported="nextval(pg_get_serial_sequence('audit', 'id'))")},
    ),
    Table(
        Webhook,
        columns={
            "public_id": _public_id("webhooks"),
            "place_xid": Column(imported=f"{_CLOCK}::text::bigint"),
            "place_id": Column(imported=_change_before("place_xid", "place_id")),
        },
    ),
    Table(
        WebhookSecret,
        owner=(Webhook,),
        columns={"salt": Column(), "key_id": Column()},
        secret=True,
    ),
    Table(
        WebhookDelivery,
        owner=(Webhook,),
        columns={
            "public_id": _public_id("webhook_deliveries"),
            "change_xid": Column(
                imported=f"CASE WHEN x.change_id = 0 THEN 0 ELSE {_CLOCK}::text::bigint END"
            ),
            "change_id": Column(imported=_change_before("change_xid", "change_id")),
        },
    ),
    Table(SavedView, of_members=True, condition=f"{_user('owner_id').imported} IS NOT NULL"),
    Table(
        DefaultView,
        of_members=True,
        condition=f"{_user('user_id').imported} IS NOT NULL"
        " AND EXISTS (SELECT FROM saved_views v WHERE v.id = view_id.new_id)",
    ),
    Table(WorkspaceUsage),
    Table(StorageSample),
    Table(Traffic),
    Table(ModelSpending),
    Table(ModelCircuit),
)

# The oldest migration whose files can be imported. A migration that changes more than models.Field
# defaults describe must raise it (a test says so), because files are not migrated.
OLDEST_MIGRATION: Final = "0005_untracked_namespaces"
