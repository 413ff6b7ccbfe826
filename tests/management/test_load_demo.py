"""manage.py load_demo."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from state_admin.domain.access import Role
from state_admin.models import (
    Compaction,
    CompactionStatus,
    ConfigSecret,
    Dispatch,
    Entry,
    Plugin,
    Run,
    RunRead,
    RunStatus,
    SavedView,
    Thread,
    Ticket,
    Traffic,
    Webhook,
    WebhookDelivery,
)
from tests.builders import make_person

pytestmark = pytest.mark.django_db


def load() -> str:
    out = io.StringIO()
    call_command("load_demo", stdout=out)
    return out.getvalue()


def test_load_demo__first_time__creates_every_kind_of_resource() -> None:
    assert "is ready" in load()
    assert Entry.objects.get(key="parent_thread::trip-lisbon").version == 3
    assert Compaction.objects.get().status == CompactionStatus.DONE
    assert Ticket.objects.pending().count() == 1
    assert Run.objects.filter(status=RunStatus.WAITING).count() == 1
    assert Thread.objects.get(public_id="review-lisbon").parent is not None
    assert Thread.objects.get(public_id="trip-lisbon-by-train").forked_from is not None
    assert Plugin.objects.get().name == "loyalty"
    assert sorted(Dispatch.objects.values_list("status", flat=True)) == [
        "Claimed", "DeadLetter", "Queued", "Queued",
    ]  # fmt: skip
    assert Entry.objects.get(key="HAM-OPO").schema_version == 1
    assert Entry.objects.get(namespace__name="winter_campaign").version == 1
    assert Traffic.objects.timed().count() == 2 * 24 * 60 - 1
    assert Traffic.objects.filter(reads__gt=0, writes__gt=0, queued__gt=0).count() > 2_000
    assert set(RunRead.objects.values_list("version", flat=True)) == {0, 1, 3}


def test_load_demo__webhook__is_paused_and_has_sent_nothing() -> None:
    load()
    assert Webhook.objects.get().status == "paused"
    assert not WebhookDelivery.objects.exists()


def test_load_demo__secret__is_not_readable() -> None:
    load()
    provider = Entry.objects.get(key="models-example")
    assert "opens-nothing" not in provider.value
    assert ConfigSecret.objects.count() == 1


def test_load_demo__admin_of_default__becomes_a_member_with_views() -> None:
    make_person("ines", "default", Role.ADMIN)
    load()
    assert set(SavedView.objects.values_list("name", flat=True)) == {
        "May fares", "Trips", "Waiting for us",
    }  # fmt: skip


def test_load_demo__again__changes_nothing() -> None:
    load()
    before = Entry.objects.count(), Thread.objects.count()
    assert "was not changed" in load()
    assert (Entry.objects.count(), Thread.objects.count()) == before
