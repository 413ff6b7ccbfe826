"""Without audit no write: if audit rows cannot be inserted, no operation succeeds."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from state_admin.models import AuditRow, Change
from state_admin.services import journal
from state_admin.services.quotas import forget_accounts
from tests.builders import Person
from tests.services.faults import fingerprint
from tests.services.test_faults import WORKS, world

__all__ = ["world"]

# A heartbeat and a derived index: neither changes stored data.
UNAUDITED = {"heartbeat", "index"}


@pytest.mark.parametrize("table", ["audit", "changes"])
def test_write__audit_or_feed_insert_fails__is_rolled_back(world: Person, table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT nothing CHECK (false) NOT VALID")
    before = fingerprint()
    happened = []
    for name in sorted(set(WORKS) - UNAUDITED):
        forget_accounts()
        try:
            with transaction.atomic():
                WORKS[name](world.actor)
            happened.append(f"{name}: no error")
        except DatabaseError:
            pass
        if fingerprint() != before:
            happened.append(f"{name}: something stayed")
            before = fingerprint()
    assert happened == []


@pytest.mark.parametrize("kind", ["entry.puts", "entry", ""])
def test_record__undeclared_kind__is_refused(alice: Person, kind: str) -> None:
    before = fingerprint()
    with pytest.raises(ValueError, match=f"undeclared kind of change: {kind}"):
        journal.record(alice.actor, [journal.Trace(kind)])
    assert fingerprint() == before


def test_api__audit_or_feed_insert_fails__is_a_problem_and_nothing_is_stored(alice: Person) -> None:
    alice.api("PUT", "/namespaces/notes", {})
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE audit ADD CONSTRAINT nothing CHECK (false) NOT VALID")
    with transaction.atomic():
        answer = alice.api("PUT", "/state/notes/k", {"value": 1})
        transaction.set_rollback(True)
    assert answer.status_code >= 500
    assert answer["Content-Type"] == "application/problem+json"
    assert alice.api("GET", "/state/notes/k").json()["exists"] is False


def test_record__several_traces__are_a_row_each_with_the_actor(alice: Person) -> None:
    AuditRow.objects.all().delete()
    Change.objects.all().delete()
    traces = [
        journal.Trace("plugin.install", key="x", version=5, detail={"n": 1}),
        journal.Trace("erase"),
    ]
    journal.record(alice.actor, traces, reason="because")
    rows = [(r.action, r.key, r.version, r.reason) for r in AuditRow.objects.order_by("id")]
    assert rows == [("plugin.install", "x", 5, "because"), ("erase", "", 0, "because")]
    assert [r.kind for r in Change.objects.order_by("id")] == ["plugin.install", "erase"]
