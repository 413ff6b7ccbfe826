"""Bulk changes: each entry at the expected version, or skipped with the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from state_admin.domain.config import Kind
from state_admin.models import AuditRow, Change, EntryRevision
from state_admin.models.browsing import EntryFilter, entry_page
from state_admin.services import bulk, config
from state_admin.services.bulk import ChangedEntry, SelectedEntry, SkippedEntry
from state_admin.services.entry_views import read_entry
from state_admin.services.errors import Forbidden, Invalid
from state_admin.services.namespaces import unregister_namespace
from tests.builders import Person, make_namespace, make_record, put

from .racing import race


@pytest.fixture
def seen(alice: Person) -> list[SelectedEntry]:
    make_namespace(alice.actor, "n")
    for key in ("a", "b", "c"):
        put(alice.actor, "n", key, {"of": key}, tags=["old"])
    return [SelectedEntry("n", key, 1) for key in ("c", "a", "b")]


def tags(alice: Person) -> dict[str, list[str]]:
    return {line.key: list(line.tags) for line in entry_page(alice.actor, EntryFilter(), limit=9)}


def test_tag__many__keeps_values_and_writes_history_audit_and_feed(
    alice: Person, seen: list[SelectedEntry]
) -> None:
    changes = Change.objects.count()
    made = bulk.change_entries(actor=alice.actor, action="tag", seen=seen, tag="vip", reason="why")
    assert made.skipped == []
    assert made.done == [ChangedEntry("n", key, 2, None) for key in ("a", "b", "c")]
    assert tags(alice) == {key: ["old", "vip"] for key in ("a", "b", "c")}
    now = read_entry(actor=alice.actor, namespace="n", key="a")
    assert (now.value, now.version) == ('{"of": "a"}', 2)
    kept = EntryRevision.objects.of_key("n", "a").get(version=2)
    assert (kept.value, kept.reason) == (now.value, "why")
    assert AuditRow.objects.filter(action="entry.patch", reason="why", version=2).count() == 3
    assert Change.objects.count() == changes + 3


def test_change__written_since_deleted_or_unchanged__is_skipped_with_the_reason(
    alice: Person, seen: list[SelectedEntry]
) -> None:
    put(alice.actor, "n", "a", "newer")
    put(alice.actor, "n", "b", "x", tags=["vip"])
    asked = [
        SelectedEntry("n", "a", 1),
        SelectedEntry("n", "b", 2),
        SelectedEntry("n", "no", 1),
        SelectedEntry("no", "a", 1),
    ]
    made = bulk.change_entries(actor=alice.actor, action="tag", seen=asked, tag="vip")
    assert made.done == []
    assert sorted(made.skipped) == [
        SkippedEntry("n", "a", "alice wrote version 2 in the meantime"),
        SkippedEntry("n", "b", "no change needed"),
        SkippedEntry("n", "no", "the entry no longer exists"),
        SkippedEntry("no", "a", "the entry no longer exists"),
    ]


def test_untag__then_expire__returns_the_previous_expiry(
    alice: Person, seen: list[SelectedEntry]
) -> None:
    bulk.change_entries(actor=alice.actor, action="untag", seen=seen, tag="old")
    assert tags(alice)["b"] == []
    until = datetime.now(UTC) + timedelta(hours=1)
    asked = [SelectedEntry("n", "b", 2, until)]
    assert bulk.change_entries(actor=alice.actor, action="expire", seen=asked).done[0][3] is None
    back = bulk.change_entries(
        actor=alice.actor, action="expire", seen=[SelectedEntry("n", "b", 3)]
    )
    assert back.done[0].expired_at == until
    assert read_entry(actor=alice.actor, namespace="n", key="b").expires_at is None


def test_delete__orphans__are_deleted_but_not_tagged(
    alice: Person, seen: list[SelectedEntry]
) -> None:
    unregister_namespace(actor=alice.actor, name="n", entries="retain")
    refused = bulk.change_entries(actor=alice.actor, action="tag", seen=seen[:1], tag="vip")
    assert refused.skipped == [SkippedEntry("n", "c", "its namespace is not registered")]
    made = bulk.change_entries(actor=alice.actor, action="delete", seen=seen)
    assert len(made.done) == 3
    assert entry_page(alice.actor, EntryFilter(), limit=9) == []


def test_change__config_record__is_skipped(alice: Person) -> None:
    make_record(alice.actor, "providers", "openai", {"adapter": "openai"})
    asked = [SelectedEntry("config.providers", "openai", 1)]
    made = bulk.change_entries(actor=alice.actor, action="delete", seen=asked)
    assert made.skipped == [SkippedEntry("config.providers", "openai", "its namespace is reserved")]
    assert config.read_record(actor=alice.actor, kind=Kind.PROVIDERS, identity="openai").exists


def test_change__viewer_and_non_member__change_nothing(
    alice: Person, bob: Person, mallory: Person, seen: list[SelectedEntry]
) -> None:
    with pytest.raises(Forbidden):
        bulk.change_entries(actor=bob.actor, action="delete", seen=seen)
    made = bulk.change_entries(actor=mallory.actor, action="delete", seen=seen)
    assert {each.why for each in made.skipped} == {"the entry no longer exists"}
    assert len(tags(alice)) == 3


@pytest.mark.parametrize("tag", ["", "x" * 65, "a\0"])
def test_tag__invalid__is_refused(tag: str, alice: Person, seen: list[SelectedEntry]) -> None:
    with pytest.raises(Invalid, match="1 to 64"):
        bulk.change_entries(actor=alice.actor, action="tag", seen=seen, tag=tag)


def test_tag__beyond_the_limit__is_skipped(alice: Person) -> None:
    make_namespace(alice.actor, "n")
    put(alice.actor, "n", "a", 1, tags=[str(number) for number in range(bulk.MOST_TAGS)])
    made = bulk.change_entries(
        actor=alice.actor, action="tag", seen=[SelectedEntry("n", "a", 1)], tag="x"
    )
    assert made.skipped == [SkippedEntry("n", "a", "the entry already has the maximum of 32 tags")]


@pytest.mark.django_db(transaction=True)
def test_change__two_concurrent_in_different_order__each_entry_has_one_winner(
    alice: Person,
) -> None:
    make_namespace(alice.actor, "n")
    keys = [f"k{number}" for number in range(30)]
    for key in keys:
        put(alice.actor, "n", key, 1)
    seen = [SelectedEntry("n", key, 1) for key in keys]
    tagged, deleted = race(
        [
            lambda: bulk.change_entries(actor=alice.actor, action="tag", seen=seen, tag="x"),
            lambda: bulk.change_entries(actor=alice.actor, action="delete", seen=seen[::-1]),
        ]
    )
    won = [{each.key for each in outcome.done} for outcome in (tagged, deleted)]
    assert won[0] | won[1] == set(keys)
    assert not won[0] & won[1]
    assert {len(tagged.done) + len(tagged.skipped), len(deleted.done) + len(deleted.skipped)} == {
        30
    }
