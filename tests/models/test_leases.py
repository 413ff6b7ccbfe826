"""Leased rows: which may be claimed, what a claim changes, and who holds the row afterwards; the
querysets and the SQL agree."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from state_admin.models import (
    Compaction,
    DeliveryStatus,
    Revert,
    RevertStatus,
    Thread,
    Webhook,
    WebhookDelivery,
)
from state_admin.models.compactions import CompactionQuerySet, CompactionStatus
from state_admin.models.leases import LeasedQuerySet
from state_admin.models.reverts import RevertQuerySet
from state_admin.models.webhooks import DeliveryQuerySet
from tests.builders import Person

pytestmark = pytest.mark.django_db

_HOUR = timedelta(hours=1)
_TIMES = [(due, lease) for due in (-_HOUR, _HOUR) for lease in (None, -_HOUR, _HOUR)]


def compactions(person: Person) -> CompactionQuerySet:
    """A compaction of every status and time."""
    owner = person.workspace.pk
    states = [(status, *times) for status in CompactionStatus for times in _TIMES]
    threads = Thread.objects.bulk_create(
        Thread(workspace_id=owner, public_id=f"t{number}") for number in range(len(states))
    )
    for thread, (status, due, lease) in zip(threads, states, strict=True):
        Compaction.objects.create(
            workspace_id=owner,
            public_id=f"of-{thread.public_id}",
            kind="context",
            trigger="hand",
            thread=thread,
            requested_by="",
            status=status,
            available_at=Now() + due,
            lease_expires_at=lease and Now() + lease,
        )
    return Compaction.objects.all()


def deliveries(person: Person) -> DeliveryQuerySet:
    """The same for deliveries. They are tests, because only one other delivery per webhook may be
    in progress."""
    hook = Webhook.objects.create(
        workspace=person.workspace,
        public_id="hook",
        created_by="",
        place_xid=0,
        place_id=0,
        place_at=Now(),
    )
    for number, (status, times) in enumerate((s, t) for s in DeliveryStatus for t in _TIMES):
        WebhookDelivery.objects.create(
            webhook=hook,
            public_id=str(number),
            change_xid=0,
            change_id=0,
            test=True,
            status=status,
            next_attempt_at=Now() + times[0],
            lease_expires_at=times[1] and Now() + times[1],
        )
    return WebhookDelivery.objects.all()


def reverts(person: Person) -> RevertQuerySet:
    for number, (status, times) in enumerate((s, t) for s in RevertStatus for t in _TIMES):
        Revert.objects.create(
            workspace=person.workspace,
            public_id=str(number),
            target=str(number),
            status=status,
            available_at=Now() + times[0],
            lease_expires_at=times[1] and Now() + times[1],
        )
    return Revert.objects.all()


@pytest.fixture(params=[compactions, deliveries, reverts])
def rows(request: pytest.FixtureRequest, alice: Person) -> LeasedQuerySet:
    return request.param(alice)


def test_claimable__all_states__are_due_or_have_an_expired_lease(rows: LeasedQuerySet) -> None:
    now = rows.annotate(now=Now()).values_list("now", flat=True)[0]
    expected = {
        row.pk
        for row in rows
        if (row.status in rows.waiting and getattr(row, rows.due) < now)
        or (row.status == rows.working and row.lease_expires_at and row.lease_expires_at < now)
    }
    assert set(rows.claimable().values_list("pk", flat=True)) == expected
    with connection.cursor() as cursor:
        table = rows.model._meta.db_table
        cursor.execute(f"SELECT r.id FROM {table} r WHERE {rows.claimable_sql('r')}")
        assert {pk for (pk,) in cursor.fetchall()} == expected
    assert expected


def test_claim__queryset_and_sql__change_the_same_columns(rows: LeasedQuerySet) -> None:
    first, second = rows.claimable()[:2]
    assert rows.filter(pk=first.pk).update(**rows.claimed(_HOUR)) == 1
    with connection.cursor() as cursor:
        table = rows.model._meta.db_table
        cursor.execute(
            f"UPDATE {table} r SET {rows.claimed_sql('r')} WHERE r.id = %(id)s",
            {"lease": _HOUR, "id": second.pk},
        )
    now = rows.annotate(now=Now()).values_list("now", flat=True)[0]
    for row in rows.filter(pk__in=[first.pk, second.pk]):
        assert (row.status, row.attempts, row.claim) == (rows.working, 1, 1)
        assert timedelta() <= now + _HOUR - row.lease_expires_at < timedelta(minutes=5)
        assert not rows.filter(pk=row.pk).claimable()


def test_held__claimed_again_or_finished__is_lost(rows: LeasedQuerySet) -> None:
    first, second = rows.claimable()[:2]
    for row in (first, second):
        assert not rows.held(row.pk, 1).exists()
        rows.filter(pk=row.pk).update(**rows.claimed(_HOUR))
        assert rows.held(row.pk, 1).exists()
    rows.filter(pk=first.pk).update(**rows.claimed(_HOUR))
    assert not rows.held(first.pk, 1).exists()
    assert rows.held(first.pk, 2).exists()
    rows.filter(pk=second.pk).update(status=rows.waiting[0])
    assert not rows.held(second.pk, 1).exists()
