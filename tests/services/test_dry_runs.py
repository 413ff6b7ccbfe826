"""A dry run leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from state_admin.services import quotas
from state_admin.services.dry_runs import discard_writes
from state_admin.services.errors import Conflict
from tests.builders import Person, make_namespace, make_thread, put
from tests.services.faults import fingerprint


def test_discard_writes__rows_notifications_and_usage__are_rolled_back(
    alice: Person, django_capture_on_commit_callbacks: Any
) -> None:
    make_namespace(alice.actor)
    quotas.forget_accounts()
    quotas.set_quota(actor=alice.actor, entries=None, bytes=None, threads=5)
    before = fingerprint()
    with django_capture_on_commit_callbacks() as callbacks, discard_writes():
        put(alice.actor, "notes", "k", 1)
        make_thread(alice.actor, "t1")
        transaction.on_commit(lambda: None)
        assert quotas.room(alice.actor, "threads") == 4
        assert fingerprint() != before
    assert (fingerprint(), callbacks) == (before, [])
    assert quotas.room(alice.actor, "threads") == 5


def test_discard_writes__work_fails__rolls_back_and_raises(alice: Person) -> None:
    quotas.forget_accounts()
    quotas.set_quota(actor=alice.actor, entries=None, bytes=None, threads=5)
    before = fingerprint()

    def fail() -> None:
        with discard_writes():
            make_thread(alice.actor, "t1")
            raise Conflict("no")

    with pytest.raises(Conflict):
        fail()
    assert (fingerprint(), quotas.room(alice.actor, "threads")) == (before, 5)


def test_discard_writes__within_another_transaction__rolls_back_only_its_own(alice: Person) -> None:
    with transaction.atomic():
        make_thread(alice.actor, "kept")
        before = fingerprint()
        with discard_writes():
            make_thread(alice.actor, "t1")
        assert fingerprint() == before
