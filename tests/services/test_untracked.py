"""Namespaces whose entries are not tracked: current values, and nothing else (ADR 20)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from state_admin.models import (
    AuditRow,
    Change,
    Entry,
    EntryRevision,
    Namespace,
    SearchDocument,
    SearchPosition,
)
from state_admin.services import (
    batches,
    bulk,
    clearing,
    entries,
    entry_views,
    indexing,
    maintenance,
    namespaces,
    redactions,
    restores,
    retention,
    search,
    verification,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.bulk import SelectedEntry
from state_admin.services.entries import Precondition
from state_admin.services.errors import Conflict, Gone, Invalid, VersionConflict
from tests.builders import Person, make_namespace, put, raw
from tests.feeding import wait_for_feed
from tests.services.canary import tables_with


@pytest.fixture
def steps(alice: Person) -> Person:
    make_namespace(alice.actor, "steps", tracked=False)
    make_namespace(alice.actor)
    return alice


def traces() -> list[int]:
    """The rows of each table that a write may leave behind."""
    of_steps = {"namespace": "steps", "key__gt": ""}
    return [
        EntryRevision.objects.filter(entry__namespace__name="steps").count(),
        Change.objects.filter(**of_steps).count(),
        AuditRow.objects.filter(**of_steps).count(),
    ]


def keys() -> set[str]:
    return set(Entry.objects.filter(namespace__name="steps").values_list("key", flat=True))


def test_writes__of_every_kind__leave_only_the_entry(steps: Person) -> None:
    actor = steps.actor
    put(actor, "steps", "a", {"n": 1})
    put(actor, "steps", "a", {"n": 2})
    entries.patch_entry(
        actor=actor, namespace="steps", key="a", kind="merge", operations={"more": 1}
    )
    stored = put(actor, "steps", "a", {"n": 3}, precondition=Precondition(3))
    assert stored.version == 4
    with pytest.raises(VersionConflict):
        put(actor, "steps", "a", {"n": 4}, precondition=Precondition(3))
    operations = [BatchOperation("put", "steps", key, raw(1)) for key in "bc"]
    batches.run_batch(actor=actor, operations=operations)
    put(actor, "notes", "a", 1)
    assert keys() == {"a", "b", "c"}
    assert traces() == [0, 0, 0]
    assert EntryRevision.objects.count() == 1


def delete_one(steps: Person) -> int:
    return sum(
        entries.delete_entry(actor=steps.actor, namespace="steps", key=key) > 0 for key in "ab"
    )


def delete_at_versions(steps: Person) -> int:
    operations = [BatchOperation("delete", "steps", key, if_version=1) for key in "ab"]
    return len(batches.run_batch(actor=steps.actor, operations=operations))


def delete_selected(steps: Person) -> int:
    seen = [SelectedEntry("steps", key, 1) for key in "ab"]
    return len(bulk.change_entries(actor=steps.actor, action="delete", seen=seen).done)


def clear(steps: Person) -> int:
    return clearing.clear_matching(actor=steps.actor, namespace="steps")


def expire(steps: Person) -> int:
    Entry.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    maintenance.expire_entries()
    return 2


@pytest.mark.parametrize("delete", [delete_one, delete_at_versions, delete_selected, clear, expire])
def test_deletion__in_any_way__leaves_no_row(
    steps: Person, delete: Callable[[Person], int]
) -> None:
    for key in "ab":
        put(steps.actor, "steps", key, 1)
    assert delete(steps) == 2
    assert keys() == set()
    assert traces() == [0, 0, 0]
    assert put(steps.actor, "steps", "a", 2).version == 1


def test_search_and_restore__do_not_see_the_entries(steps: Person) -> None:
    before = timezone.now()
    put(steps.actor, "steps", "a", "a report")
    kept = put(steps.actor, "notes", "a", "a report")
    for indexed in (False, True):
        found = search.search_entries(actor=steps.actor, text="report")
        assert [hit.entry.namespace.name for hit in found.hits] == ["notes"]
        if not indexed:
            SearchPosition.objects.all().delete()
            indexing.index_entries()
    assert SearchDocument.objects.count() == 1
    restored = restores.restore_entries(actor=steps.actor, at=before, key="a")
    assert [step.namespace for step in restored.first] == ["notes"]
    assert keys() == {"a"}
    assert kept.version == 1


def test_past__of_an_untracked_namespace__is_gone(steps: Person) -> None:
    put(steps.actor, "steps", "a", 1)
    address = {"actor": steps.actor, "namespace": "steps"}
    for refused in (
        partial(restores.restore_entries, at=timezone.now(), **address),
        partial(retention.pin_version, key="a", version=1, pinned=True, **address),
        partial(entry_views.read_past, key="a", at_version=1, **address),
    ):
        with pytest.raises(Gone, match="the namespace steps is untracked and has no history"):
            refused()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pointers", [[], ["/token"]])
def test_redaction__of_an_entry__removes_the_current_value(
    steps: Person, pointers: list[str]
) -> None:
    indexing.index_entries()
    steps.api("PUT", "/state/steps/a", {"value": {"token": "canary7f3a9e"}}, Idempotency_Key="1")
    assert tables_with("canary7f3a9e") == {"entries", "idempotency_records"}
    redact = partial(redactions.redact_entry, actor=steps.actor, namespace="steps", key="a")
    with pytest.raises(Invalid, match="no version has a value at these pointers"):
        redact(reason="leaked", pointers=["/other"])
    done = redact(reason="leaked", pointers=pointers)
    assert (done.version, done.rewritten) == (2, 1)
    assert tables_with("canary7f3a9e") == set()
    assert traces() == [0, 1, 1], "the redaction itself is in the feed and in the audit"
    assert redact(reason="leaked", pointers=pointers).rewritten == 0
    wait_for_feed(steps.actor.workspace_id)
    indexing.index_entries()
    assert SearchDocument.objects.count() == 0


def test_verification__of_entries_without_history__finds_nothing(steps: Person) -> None:
    put(steps.actor, "steps", "a", 1)
    assert verification.verify_state().faults == []


def test_registration__later__keeps_what_was_chosen(steps: Person) -> None:
    actor = steps.actor
    assert make_namespace(actor, "steps", description="again").tracked is False
    for name, tracked in (("steps", True), ("notes", False)):
        for dry_run in (False, True):
            with pytest.raises(
                Conflict, match=f"tracked cannot be changed after the first registration: {name}"
            ):
                namespaces.register_namespace(
                    actor=actor,
                    name=name,
                    schema=raw({}),
                    default=raw(None),
                    tracked=tracked,
                    dry_run=dry_run,
                )
    assert dict(Namespace.objects.open().values_list("name", "tracked")) == {
        "steps": False,
        "notes": True,
    }


def test_api__of_an_untracked_namespace__shows_it_and_keeps_it(alice: Person) -> None:
    created = alice.api("PUT", "/namespaces/steps", {"tracked": False})
    assert (created.status_code, created.json()["tracked"]) == (201, False)
    assert alice.api("PUT", "/namespaces/steps", {"default": 1}).json()["tracked"] is False
    assert alice.api("PUT", "/namespaces/steps", {"tracked": True}).status_code == 409
    alice.api("PUT", "/state/steps/a", {"value": 1})
    assert alice.api("GET", "/history/steps/a").json()["items"] == []


def test_api__wait_for_an_entry_of_an_untracked_namespace__is_refused(steps: Person) -> None:
    put(steps.actor, "steps", "a", 1)

    refused = steps.api("GET", "/state/steps/a?wait=1")

    assert (refused.status_code, refused.json()["parameter"]) == (400, "wait")
    assert steps.api("GET", "/state/steps/a?wait=0").json()["value"] == 1
