"""manage.py load_demo."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from state_admin.models import Compaction, CompactionStatus, Entry, Run, RunStatus, Thread, Ticket

pytestmark = pytest.mark.django_db


def load() -> str:
    out = io.StringIO()
    call_command("load_demo", stdout=out)
    return out.getvalue()


def test_load_demo__first_time__shows_every_kind_of_thing() -> None:
    assert "is ready" in load()
    assert Entry.objects.get(key="parent_thread::trip-lisbon").version == 3
    assert Compaction.objects.get().status == CompactionStatus.DONE
    assert Ticket.objects.pending().count() == 1
    assert Run.objects.filter(status=RunStatus.WAITING).count() == 1
    assert Thread.objects.get(public_id="review-lisbon").parent is not None


def test_load_demo__again__changes_nothing() -> None:
    load()
    before = Entry.objects.count(), Thread.objects.count()
    assert "left alone" in load()
    assert (Entry.objects.count(), Thread.objects.count()) == before
