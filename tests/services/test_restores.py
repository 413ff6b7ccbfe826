"""Restoring many entries to a point in time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from state_admin.contract.restores import Restoration
from state_admin.domain.scopes import ScopeKind
from state_admin.models import AuditRow, Change, Entry, EntryRevision, Namespace
from state_admin.services import entries, namespaces, quotas, restores
from state_admin.services.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NotRegistered,
    QuotaExceeded,
)
from state_admin.services.restores import restore_entries
from tests.builders import Person, make_namespace, make_token, put
from tests.services.racing import race

# now() is constant within a transaction.
pytestmark = pytest.mark.django_db(transaction=True)


def now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def state(namespace: str = "notes") -> dict[str, str | None]:
    rows = Entry.objects.live().filter(namespace__name=namespace)
    return dict(rows.values_list("key", "value"))


def steps(report: Restoration) -> list[tuple[str, str]]:
    return [(step.key, step.action) for step in report.first]


def counts(report: Restoration) -> tuple[int, int, int, int]:
    return report.changed, report.created, report.deleted, report.refused


@pytest.fixture
def moment(alice: Person) -> datetime:
    """A point in time, after which the entries changed, gone and made were changed; same was
    not."""
    actor = alice.actor
    make_namespace(actor)
    for key in ("changed", "gone", "same", "spaced"):
        put(actor, "notes", key, {"v": 1})
    at = now()
    put(actor, "notes", "changed", {"v": 2})
    entries.delete_entry(actor=actor, namespace="notes", key="gone")
    put(actor, "notes", "made", {"v": 3})
    put(actor, "notes", "brief", {"v": 4})
    entries.delete_entry(actor=actor, namespace="notes", key="brief")
    put(actor, "notes", "spaced", {"v": 1})
    return at


def test_restore__namespace_to_a_time__has_a_preview_and_creates_versions(
    alice: Person, moment: datetime
) -> None:
    before = state()
    expected = [("changed", "change"), ("gone", "create"), ("made", "delete")]
    told = restore_entries(actor=alice.actor, at=moment, namespace="notes", dry_run=True)
    assert steps(told) == expected
    assert counts(told) == (1, 1, 1, 0)
    assert state() == before
    trail = Change.objects.count(), AuditRow.objects.count()
    done = restore_entries(actor=alice.actor, at=moment, namespace="notes", reason="oops")
    assert (steps(done), counts(done)) == (expected, counts(told))
    assert state() == dict.fromkeys(("changed", "gone", "same", "spaced"), '{"v": 1}')
    made = EntryRevision.objects.filter(operation="restore").order_by("entry__key")
    assert list(made.values_list("entry__key", "version", "value", "reason")) == [
        ("changed", 3, '{"v": 1}', "oops"),
        ("gone", 3, '{"v": 1}', "oops"),
        ("made", 2, None, "oops"),
    ]
    assert (Change.objects.count(), AuditRow.objects.count()) == (trail[0] + 3, trail[1] + 3)
    again = restore_entries(actor=alice.actor, at=moment, namespace="notes")
    assert (steps(again), counts(again)) == ([], (0, 0, 0, 0))


def test_restore__and_back_again__is_unchanged(alice: Person, moment: datetime) -> None:
    before, then = state(), now()
    restore_entries(actor=alice.actor, at=moment, namespace="notes")
    assert state() != before
    restore_entries(actor=alice.actor, at=then, namespace="notes")
    assert state() == before


@pytest.mark.parametrize(
    ("filters", "touched"),
    [
        ({"key": "changed"}, ["changed"]),
        ({"prefix": "g"}, ["gone"]),
        ({"namespace": "notes", "prefix": "ma"}, ["made"]),
        ({"scope_kind": ScopeKind.CUSTOM}, ["changed", "gone", "made"]),
        ({"scope_kind": ScopeKind.THREAD}, []),
    ],
)
def test_restore__filters__are_applied(
    alice: Person, moment: datetime, filters: dict[str, Any], touched: list[str]
) -> None:
    report = restore_entries(actor=alice.actor, at=moment, dry_run=True, **filters)
    assert [step.key for step in report.first] == touched


def test_restore__expired_entries__count_as_absent_then_and_now(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "ran out", 1, ttl_seconds=3600)
    at = now()
    # It expired since, and no sweep has run.
    Entry.objects.update(expires_at=at + timedelta(microseconds=1))
    report = restore_entries(actor=alice.actor, at=at, key="ran out")
    assert steps(report) == [("ran out", "create")]
    assert state() == {"ran out": "1"}
    EntryRevision.objects.filter(version=1).update(expires_at=at - timedelta(seconds=1))
    assert steps(restore_entries(actor=alice.actor, at=at, key="ran out")) == [
        ("ran out", "delete")
    ]


def test_restore__invalid_values__are_reported_and_skipped(alice: Person, moment: datetime) -> None:
    put(alice.actor, "notes", "changed", {"v": "now text"})
    put(alice.actor, "notes", "gone", {"v": "now text"})
    make_namespace(alice.actor, schema={"properties": {"v": {"type": "string"}}}, default={})
    EntryRevision.objects.filter(entry__key="gone", version__lte=2).delete()
    before = state()
    report = restore_entries(actor=alice.actor, at=moment, namespace="notes")
    assert counts(report) == (0, 0, 1, 2)
    problems = {step.key: str(step.reason) for step in report.first if step.action == "refuse"}
    assert "does not satisfy the schema" in problems["changed"]
    assert "removed by history compaction" in problems["gone"]
    assert state() == {key: value for key, value in before.items() if key != "made"}


def test_restore__refused_entries__make_no_room_in_the_quota(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "refused", 1)
    put(alice.actor, "notes", "restored", "x" * 100)
    at = now()
    put(alice.actor, "notes", "refused", "y" * 100)
    entries.delete_entry(actor=alice.actor, namespace="notes", key="restored")
    make_namespace(alice.actor, schema={"type": ["string", "null"]}, default=None)
    quotas.set_quota(actor=alice.actor, entries=None, bytes=150, threads=None)
    with pytest.raises(QuotaExceeded):
        restore_entries(actor=alice.actor, at=at, namespace="notes")


def test_restore__schema_widened_after_caching__restores(alice: Person, moment: datetime) -> None:
    """Another process widened the namespace; this one has cached the narrow definition."""
    narrow = {"properties": {"v": {"type": "string"}}}
    make_namespace(alice.actor, schema=narrow, default={})
    namespaces.find_definition(alice.actor, "notes")
    Namespace.objects.update(schema="{}", schema_version=3)
    report = restore_entries(actor=alice.actor, at=moment, scope_kind=ScopeKind.CUSTOM)
    assert counts(report) == (1, 1, 1, 0)
    assert Entry.objects.get(key="changed").schema_version == 3


def test_restore__inaccessible_or_unregistered__restores_nothing(
    alice: Person, bob: Person, moment: datetime
) -> None:
    _, narrow = make_token(alice, namespaces=["else.*"])
    assert restore_entries(actor=narrow, at=moment, prefix="m").first == []
    with pytest.raises(NotRegistered):
        restore_entries(actor=narrow, at=moment, namespace="notes")
    with pytest.raises(Forbidden):
        restore_entries(actor=bob.actor, at=moment, namespace="notes")
    with pytest.raises(BadRequest):
        restore_entries(actor=alice.actor, at=moment)
    with pytest.raises(Invalid):
        restore_entries(actor=alice.actor, at=now() + timedelta(hours=1), namespace="notes")
    namespaces.unregister_namespace(actor=alice.actor, name="notes", entries="retain")
    assert restore_entries(actor=alice.actor, at=moment, prefix="m").first == []


def test_restore__too_many__requires_filters(
    alice: Person, moment: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "MOST", 3)
    with pytest.raises(Invalid) as error:
        restore_entries(actor=alice.actor, at=moment, namespace="notes")
    assert "filter by namespace" in error.value.hint


def test_restore__concurrent_writers__creates_each_version_once(
    alice: Person, moment: datetime
) -> None:
    outcomes = race(
        [
            lambda: restore_entries(actor=alice.actor, at=moment, namespace="notes"),
            lambda: restore_entries(actor=alice.actor, at=moment, namespace="notes"),
            lambda: put(alice.actor, "notes", "gone", {"v": 9}),
        ]
    )
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    for entry in Entry.objects.all():
        newest = EntryRevision.objects.filter(entry=entry).order_by("-version")[0]
        assert (newest.version, newest.value) == (entry.version, entry.value)
    assert EntryRevision.objects.filter(entry__key="changed", operation="restore").count() == 1


def test_api__restore_to_a_time__reports_its_effect(alice: Person, moment: datetime) -> None:
    body = {"namespace": "notes", "at": moment.isoformat()}
    told = alice.api("POST", "/restore?dry_run=true", body).json()
    assert (told["changed"], told["created"], told["deleted"], told["refused"]) == (1, 1, 1, 0)
    assert told["first"][0] == {
        "namespace": "notes", "key": "changed", "action": "change", "version": 2, "then_version": 1
    }  # fmt: skip
    assert alice.api("POST", "/restore", body).json()["changed"] == 1
    assert alice.api("POST", "/restore?dry_run=true", body).json()["first"] == []
    for wrong, status in (
        ({"at": moment.isoformat()}, 400),
        ({"namespace": "notes", "at": "yesterday"}, 422),
        ({"namespace": "notes", "at": "2026-01-01T00:00:00"}, 422),
        ({"namespace": "notes"}, 422),
        (b'{"prefix": "\\ud800", "at": "2026-01-01T00:00:00Z"}', 422),
        (b'{"namespace": "\\ud800", "at": "2026-01-01T00:00:00Z"}', 422),
    ):
        assert alice.api("POST", "/restore", wrong).status_code == status, wrong
