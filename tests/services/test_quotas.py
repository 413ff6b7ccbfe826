"""Quotas per workspace."""

from __future__ import annotations

import io
from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from state_admin.models import Workspace
from state_admin.models.limits import measure_usage
from state_admin.models.reverts_sql import WrittenEntry
from state_admin.services import quotas
from state_admin.services.bulk import SelectedEntry
from state_admin.services.bulk_patches import Patch, patch_entries
from state_admin.services.errors import Conflict, QuotaExceeded
from state_admin.services.reverts import revert_entries
from tests.builders import Person, make_namespace, make_thread, put
from tests.services.racing import race

UPDATE = "application/vnd.commonhold.update+json"


@pytest.fixture(autouse=True)
def no_cached_accounts() -> None:
    quotas.forget_accounts()


def set_quota(person: Person, **limits: int) -> None:
    given = {"entries": None, "bytes": None, "threads": None, **limits}
    quotas.set_quota(actor=person.actor, **given)  # type: ignore[arg-type]


def test_entries__quota_reached__refuses_new_ones_and_permits_updates(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=2)
    put(alice.actor, "notes", "a", 1)
    put(alice.actor, "notes", "b", 1)
    answer = alice.api("PUT", "/state/notes/c", {"value": 1})
    assert answer.status_code == 403
    assert answer.json()["detail"] == "quota exceeded: entries"
    assert (answer.json()["limit"], answer.json()["used"]) == (2, 2)
    assert alice.api("PUT", "/state/notes/a", {"value": 2}).status_code == 200
    assert alice.api("GET", "/state/notes/c").json()["exists"] is False


def test_entries__dry_run__uses_no_quota_and_is_refused_beyond_it(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=1, bytes=1000)
    for key in ("a", "b"):
        assert alice.api("PUT", f"/state/notes/{key}?dry_run=true", {"value": 1}).status_code == 200
    assert (quotas.room(alice.actor, "entries"), quotas.room(alice.actor, "bytes")) == (1, 1000)
    assert alice.api("PUT", "/state/notes/a", {"value": 1}).status_code == 201
    assert alice.api("PUT", "/state/notes/b?dry_run=true", {"value": 1}).status_code == 403


def test_bytes__quota_reached__refuses_growth(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", "x" * 100)
    measure_usage()
    set_quota(alice, bytes=150)
    assert alice.api("PUT", "/state/notes/a", {"value": "x" * 90}).status_code == 200
    assert alice.api("PUT", "/state/notes/b", {"value": "x" * 90}).status_code == 403


def test_bytes__one_entry_written_again__counts_the_difference(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, bytes=250)
    for number in range(5):
        put(alice.actor, "notes", "a", "x" * 98)
        put(alice.actor, "notes", "a", "x" * (90 + number))
        change = {"op": "set", "path": "", "value": "y" * 98}
        answer = alice.api("PATCH", "/state/notes/a", change, content_type=UPDATE)
        assert answer.status_code == 200
    assert alice.api("PUT", "/state/notes/b", {"value": "x" * 98}).status_code == 201
    refused = alice.api("PUT", "/state/notes/c", {"value": "x" * 98})
    assert (refused.status_code, refused.json()["used"]) == (403, 200)


def test_bytes__untracked_entry_written_again__counts_the_difference(alice: Person) -> None:
    make_namespace(alice.actor, "cache", tracked=False)
    set_quota(alice, bytes=250)
    for size in (98, 98, 48, 98):
        put(alice.actor, "cache", "a", "x" * size)
    assert quotas.room(alice.actor, "bytes") == 150


@pytest.mark.parametrize("tracked", [True, False])
def test_entries__created_and_deleted__use_no_quota(alice: Person, tracked: bool) -> None:
    make_namespace(alice.actor, "locks", tracked=tracked)
    set_quota(alice, entries=2, bytes=100)
    for number in range(5):
        put(alice.actor, "locks", str(number), "x" * 98)
        assert alice.api("DELETE", f"/state/locks/{number}").status_code == 204
    assert alice.api("DELETE", "/state/locks/1").status_code == 204
    assert (quotas.room(alice.actor, "entries"), quotas.room(alice.actor, "bytes")) == (2, 100)


def test_entries__write_refused_by_its_precondition__uses_no_quota(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=2, bytes=100)
    answer = alice.api("PUT", "/state/notes/a", {"value": 1}, If_Match='"3"')
    assert answer.status_code == 412
    assert (quotas.room(alice.actor, "entries"), quotas.room(alice.actor, "bytes")) == (2, 100)


@pytest.mark.django_db(transaction=True)
def test_quotas__concurrent_requests__store_exactly_as_many_as_permitted(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=5, threads=5)
    measure_usage()

    def create(number: int) -> list[int]:
        entry = alice.api("PUT", f"/state/notes/{number}", {"value": 1})
        return [entry.status_code, alice.api("POST", "/threads", {"id": str(number)}).status_code]

    answers = race([partial(create, number) for number in range(16)])

    for statuses in zip(*answers, strict=True):
        assert Counter(statuses) == {201: 5, 403: 11}


def test_threads__quota_reached__refuses_new_ones_but_not_repeats(alice: Person) -> None:
    set_quota(alice, threads=1)
    make_thread(alice.actor, "t1")
    make_thread(alice.actor, "t1")
    with pytest.raises(QuotaExceeded, match="quota exceeded: threads"):
        make_thread(alice.actor, "t2")


def test_batch__beyond_the_quota__stores_nothing(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=2)
    operations = [{"op": "put", "namespace": "notes", "key": k, "value": 1} for k in "abc"]
    assert alice.api("POST", "/state/batch", {"operations": operations}).status_code == 403
    assert alice.api("GET", "/state/notes").json()["items"] == []


def test_batch__refused_after_writes__uses_no_quota(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "z", 1)
    set_quota(alice, entries=5, bytes=1000)
    rooms = [quotas.room(alice.actor, "entries"), quotas.room(alice.actor, "bytes")]
    operations = [{"op": "put", "namespace": "notes", "key": k, "value": 1} for k in "abc"]
    stale = {"op": "put", "namespace": "notes", "key": "z", "value": 2, "if_version": 9}
    body = {"operations": [*operations, stale]}
    assert alice.api("POST", "/state/batch", body).status_code == 412
    assert [quotas.room(alice.actor, "entries"), quotas.room(alice.actor, "bytes")] == rooms


@pytest.mark.parametrize("kind", ["patch", "revert"])
def test_bulk__namespace_changed_meanwhile__uses_no_quota(
    alice: Person, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", {"text": "x" * 100})
    put(alice.actor, "notes", "a", {})
    set_quota(alice, bytes=1000)
    room, take = quotas.room(alice.actor, "bytes"), quotas.take

    def take_and_change(*args: Any, **options: Any) -> None:
        take(*args, **options)
        make_namespace(alice.actor, schema={"type": "object"}, default={})

    monkeypatch.setattr(quotas, "take", take_and_change)
    seen, patch = SelectedEntry("notes", "a", 2), Patch("merge", {"text": "y" * 100})
    works = {
        "patch": partial(patch_entries, actor=alice.actor, seen=[seen], patch=patch),
        "revert": partial(
            revert_entries, actor=alice.actor, written=[WrittenEntry("notes", "a", 2, 2)]
        ),
    }
    with pytest.raises(Conflict, match="a namespace changed in the meantime"):
        works[kind]()
    assert quotas.room(alice.actor, "bytes") == room


def test_undo_additions__inner_block_succeeds_and_outer_fails__undoes_both(alice: Person) -> None:
    def fail() -> None:
        with quotas.undo_additions():
            with quotas.undo_additions():
                quotas.add_usage(alice.actor, entries=1)
            quotas.add_usage(alice.actor, entries=2)
            raise ValueError("outer")

    set_quota(alice, entries=5)
    with pytest.raises(ValueError, match="outer"):
        fail()
    assert quotas.room(alice.actor, "entries") == 5


@pytest.mark.django_db(transaction=True)
def test_undo_additions__measured_meanwhile__leaves_the_room_that_there_is(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_quota(alice, entries=2)
    assert quotas.room(alice.actor, "entries") == 2
    with quotas.undo_additions() as undo:
        quotas.take(alice.actor, entries=1)
        monkeypatch.setattr(quotas, "_FRESH", 0.0)
        measure_usage()
        assert quotas.room(alice.actor, "entries") == 2
        undo()
    assert quotas.room(alice.actor, "entries") == 2


def test_measurement__after_deletes__frees_quota(alice: Person) -> None:
    make_namespace(alice.actor)
    set_quota(alice, entries=1)
    put(alice.actor, "notes", "a", 1)
    alice.api("DELETE", "/state/notes/a")
    measure_usage()
    quotas.forget_accounts()
    put(alice.actor, "notes", "b", 1)


def test_quota__other_workspace__is_not_affected(alice: Person, mallory: Person) -> None:
    set_quota(alice, entries=0)
    make_namespace(mallory.actor)
    put(mallory.actor, "notes", "a", 1)


def test_usage__page__shows_use_and_limits(alice: Person, bob: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "a", 1)
    make_thread(alice.actor)
    set_quota(alice, entries=10)
    measure_usage()
    usage = bob.api("GET", "/usage").json()
    assert (usage["entries"], usage["threads"], usage["bytes"]) == (1, 1, 1)
    assert usage["limits"] == {"entries": 10, "bytes": None, "threads": None}


def test_set_quota__command__sets_and_removes(alice: Person) -> None:
    call_command("set_quota", "--workspace", "acme", "--entries", "5", stdout=io.StringIO())
    assert Workspace.objects.get(slug="acme").max_entries == 5
    call_command("set_quota", "--workspace", "acme", stdout=io.StringIO())
    assert Workspace.objects.get(slug="acme").max_entries is None


def test_set_quota__unknown_workspace_or_negative__is_one_sentence(alice: Person) -> None:
    with pytest.raises(CommandError, match="workspace not found: nowhere"):
        call_command("set_quota", "--workspace", "nowhere")
    with pytest.raises(CommandError, match="an integer from 0"):
        call_command("set_quota", "--workspace", "acme", "--entries", "-1")
