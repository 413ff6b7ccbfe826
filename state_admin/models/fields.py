"""Column types PostgreSQL has and Django lacks: byte-exact `json`, and `xid8`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Func

if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:  # has no type parameters at run time
    Field = models.Field


class _Cast(Field):
    """A column of the type `column_type`, read as the type `read_as`, and sent as `sent_as`."""

    column_type = read_as = sent_as = ""

    def db_type(self, connection: Any) -> str:
        return self.column_type

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        return f"{sql}::{self.read_as}", params

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return f"%s::{self.sent_as}"


class RawJSON(_Cast):
    """A `json` column read and written as text, byte for byte.

    `jsonb` would reorder keys, expand 1e400 and drop 1.0, but numbers must keep their text. SQL
    NULL means "no value"; the JSON value null is the text `null`.
    """

    # psycopg would parse json into Python objects and lose the text.
    column_type, read_as, sent_as = "json", "text", "json"

    def get_internal_type(self) -> str:
        return "TextField"


class Xid8(_Cast):
    """A 64-bit transaction id, the type of the change feed's clock."""

    column_type, read_as, sent_as = "xid8", "text::bigint", "text::xid8"


class PgSnapshot(_Cast):
    """A snapshot of PostgreSQL: which transactions were visible
    (docs/adr/0009-context-at-a-step.md)."""

    column_type, read_as, sent_as = "pg_snapshot", "text", "text::pg_snapshot"


class CurrentSnapshot(Func):
    """As in migration 0001; replaced by FeedSnapshot."""

    template = "pg_current_snapshot()"
    output_field = PgSnapshot()


class CurrentXid(Func):
    """The id of the current transaction, in this server."""

    template = "pg_current_xact_id()"
    output_field = Xid8()


class FeedXid(Func):
    """The id of the current transaction, increasing across servers (models/feed_eras.py)."""

    template = "feed_xid()"
    output_field = Xid8()


class FeedSnapshot(Func):
    """The snapshot of the statement, with ids as FeedXid has them."""

    template = "feed_snapshot()"
    output_field = PgSnapshot()


class FeedClock(Func):
    """The change feed's clock in the snapshot of the statement (models/changes.py), so that all rows of
    a statement have the same. A statement that waits for locks uses the SQL function feed_clock()
    instead, which is evaluated when it is called."""

    template = "feed_statement_clock()"
    output_field = Xid8()
