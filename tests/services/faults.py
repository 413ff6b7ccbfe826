"""A database that fails at the nth statement of a service.

The failure is before or after the statement, as with a lost connection or a deadlock. Both kinds of
statements are covered: Django's cursors, and the hand-written ones of models/hot.py.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from state_admin.models import hot
from state_admin.services.quotas import forget_accounts

# All tables to which a write may add rows.
TABLES = (
    "audit",
    "changes",
    "compaction_policies",
    "compactions",
    "config_secrets",
    "dispatches",
    "entries",
    "entry_revisions",
    "idempotency_records",
    "mailboxes",
    "memberships",
    "messages",
    "model_circuits",
    "model_spending",
    "namespace_versions",
    "namespaces",
    "plugins",
    "revisions",
    "runs",
    "search_documents",
    "search_positions",
    "state_keys",
    "state_values",
    "threads",
    "tickets",
    "webhook_deliveries",
    "webhook_secrets",
    "webhooks",
)
# Ids created by the server also occur in the keys of audit rows.
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass
class Faults:
    """Counts statements, and fails at number `at` (1 is the first)."""

    at: int = 0
    behind: bool = False
    seen: int = 0

    def statement(self, sql: str, execute: Callable[[], Any]) -> Any:
        if sql.lstrip().startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            return execute()
        self.seen += 1
        if self.seen != self.at:
            return execute()
        if self.behind:
            execute()
        raise OperationalError("deadlock detected (injected)")


@dataclass
class Bystander:
    """Another connection commits a transaction after each statement, so that the feed's clock
    advances, and optionally begins one that stays open."""

    link: psycopg.Connection[Any]
    open: psycopg.Connection[Any] | None = None

    def statement(self, sql: str, execute: Callable[[], Any]) -> Any:
        answer = execute()
        self.link.execute("SELECT pg_current_xact_id()")
        if self.open is not None and "INSERT INTO" in sql:
            self.open.execute("SELECT pg_current_xact_id()")
        return answer


@contextlib.contextmanager
def failing(faults: Faults | Bystander) -> Iterator[None]:
    """Every statement of this connection goes through `faults`."""

    def django(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return faults.statement(sql, lambda: execute(sql, params, many, context))

    fetch_all = hot.fetch_all

    def by_hand(statement: str, parameters: Any) -> Any:
        return faults.statement(statement, lambda: fetch_all(statement, parameters))

    with pytest.MonkeyPatch.context() as patched, connection.execute_wrapper(django):
        patched.setattr(hot, "fetch_all", by_hand)
        yield


def of_all_tables(queries: Iterable[str], parameters: Sequence[Any] = ()) -> dict[str, str]:
    """One text for each table, read in one round trip."""
    columns = ", ".join(f"({query})" for query in queries)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns}", parameters)
        return dict(zip(TABLES, map(str, cursor.fetchone()), strict=True))


def fingerprint() -> dict[str, str]:
    """The content of the tables, times included."""
    return of_all_tables(
        f"SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} t" for table in TABLES
    )


def outline() -> dict[str, str]:
    """The same without times and ids, which differ each time the work is done."""
    return of_all_tables(
        (
            f"SELECT string_agg(row, ',' ORDER BY row) FROM"
            f" (SELECT regexp_replace((to_jsonb(t) - %s::text[])::text, %s, '', 'g') AS row"
            f" FROM {table} t) rows"
            for table in TABLES
        ),
        [
            parameter
            for table in TABLES
            for parameter in (varying_columns(table), f'"updated_at": [0-9]+|{_UUID}')
        ],
    )


@functools.cache
def varying_columns(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(column_name::text) FROM information_schema.columns"
            " WHERE table_name = %s AND (data_type LIKE 'timestamp%%'"
            " OR data_type IN ('xid8', 'pg_snapshot') OR column_name LIKE '%%id' OR column_name = 'detail')",
            [table],
        )
        columns: list[str] = cursor.fetchone()[0]
        return columns


def fail_everywhere(work: Callable[[], Any], *, is_sampled: bool = False) -> int:
    """Fail `work` at each of its statements, before and after it; a sample fails before one statement
    and after the next. Its effect must be complete (the response was lost) or absent, and the caller
    must get an error. Returns the number of statements."""

    def work_afresh() -> None:
        forget_accounts()  # otherwise it depends on the time whether they are read
        work()

    before = fingerprint()
    with transaction.atomic():  # later runs find the definitions in the cache
        work_afresh()
        transaction.set_rollback(True)
    with transaction.atomic():
        clean = Faults()
        with failing(clean):
            work_afresh()
        assert fingerprint() != before, "the work has no effect to lose"
        whole = outline()
        transaction.set_rollback(True)
    assert fingerprint() == before
    first = random.randrange(2)
    for number in range(1, clean.seen + 1):
        for behind in ((number + first) % 2 == 0,) if is_sampled else (False, True):
            with transaction.atomic():
                with failing(Faults(number, behind)), pytest.raises(OperationalError):
                    work_afresh()
                # A service without its own transaction leaves the rollback to Django's.
                transaction.set_rollback(False)
                after = fingerprint()
                changed = [table for table in TABLES if after[table] != before[table]]
                assert not changed or outline() == whole, (
                    f"statement {number}, behind={behind}: only {changed} stayed"
                )
                transaction.set_rollback(True)
    return clean.seen


@contextlib.contextmanager
def beside_others(*, stay_open: bool = False) -> Iterator[None]:
    """Other transactions commit between the statements of this connection. With `stay_open` one
    begins after its first INSERT, and ends with the block."""
    here = connection.connection.info
    address = {"host": here.host, "port": here.port, "user": here.user, "dbname": here.dbname}
    address["password"] = here.password
    with (
        psycopg.connect(**address, autocommit=True) as link,
        psycopg.connect(**address) as other,
        failing(Bystander(link, other if stay_open else None)),
    ):
        yield
