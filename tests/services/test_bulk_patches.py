"""One patch for many entries: what is written, what is skipped and why, and the dry run."""

from __future__ import annotations

from typing import Any

import pytest

from state_admin.domain import values
from state_admin.domain.access import Role
from state_admin.models import AuditRow, Entry
from state_admin.services import bulk_patches
from state_admin.services.bulk import MOST, SelectedEntry, change_entries
from state_admin.services.bulk_patches import MOST_EXAMPLES, patch_entries, read_patch
from state_admin.services.errors import Conflict, Forbidden, Invalid, QuotaExceeded
from state_admin.services.namespaces import unregister_namespace
from state_admin.services.quotas import set_quota
from tests.builders import Person, make_namespace, make_token, put

STATUS = read_patch('{"status": "open"}')


def select(*keys: str, version: int = 1, namespace: str = "notes") -> list[SelectedEntry]:
    return [SelectedEntry(namespace, key, version) for key in keys]


def value(key: str) -> object:
    return values.load(Entry.objects.get(key=key).value or "null")


def test_patch__entries_that_do_not_fit__are_skipped_with_the_reason(alice: Person) -> None:
    schema = {"properties": {"status": {"enum": ["open", "done"]}}, "type": ["object", "string"]}
    make_namespace(alice.actor, schema=schema, default={})
    put(alice.actor, "notes", "plain", {"n": 1})
    put(alice.actor, "notes", "same", {"status": "open"})
    put(alice.actor, "notes", "later", {"n": 1})
    put(alice.actor, "notes", "later", {"n": 2})
    put(alice.actor, "notes", "text", "words")
    seen = select("plain", "same", "later", "text", "absent")
    result = patch_entries(actor=alice.actor, seen=seen, patch=STATUS, reason="tidy")
    assert [(each.key, each.version) for each in result.done] == [("plain", 2), ("text", 2)]
    assert value("plain") == {"n": 1, "status": "open"}
    assert value("text") == {"status": "open"}  # as RFC 7396 has it
    assert {each.key: each.why for each in result.skipped} == {
        "same": "no change needed",
        "later": "it was written since then, or its namespace is not registered",
        "absent": "the entry no longer exists",
    }
    assert AuditRow.objects.filter(action="entry.patch", reason="tidy").count() == 2
    wrong = patch_entries(
        actor=alice.actor, seen=select("same"), patch=read_patch('{"status": "shut"}')
    )
    assert wrong.done == []
    assert "/status" in wrong.skipped[0].why
    missing = read_patch('[{"op": "remove", "path": "/none"}]')
    refused = patch_entries(actor=alice.actor, seen=select("same"), patch=missing)
    assert refused.skipped[0].why.startswith("the patch cannot be applied")


def test_patch__dry_run__answers_the_same_and_writes_nothing(alice: Person) -> None:
    make_namespace(alice.actor)
    keys = [f"k{number}" for number in range(MOST_EXAMPLES + 2)]
    for key in keys:
        put(alice.actor, "notes", key, {"n": key})
    audit = AuditRow.objects.count()
    tried = patch_entries(actor=alice.actor, seen=select(*keys), patch=STATUS, dry_run=True)
    assert AuditRow.objects.count() == audit
    assert value("k0") == {"n": "k0"}
    assert [each.key for each in tried.examples] == keys[:MOST_EXAMPLES]
    assert tried.examples[0].after == {"n": "k0", "status": "open"}
    done = patch_entries(actor=alice.actor, seen=select(*keys), patch=STATUS)
    assert (done.done, done.skipped, done.examples) == (tried.done, tried.skipped, tried.examples)


def test_patch__expiry_tags_and_pin__stay(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"n": 1}, ttl_seconds=600, tags=["may"], pinned=True)
    before = Entry.objects.get(key="k")
    patch_entries(actor=alice.actor, seen=select("k"), patch=STATUS)
    after = Entry.objects.get(key="k")
    assert (after.expires_at, after.tags, after.pinned) == (before.expires_at, ["may"], True)


def test_patch__what_the_actor_may_not_write__is_not_written(
    alice: Person, mallory: Person
) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"n": 1})
    make_namespace(mallory.actor)
    foreign = patch_entries(actor=mallory.actor, seen=select("k"), patch=STATUS)
    assert [each.why for each in foreign.skipped] == ["the entry no longer exists"]
    reserved = select("m", namespace="config.models")
    assert [
        each.why for each in patch_entries(actor=alice.actor, seen=reserved, patch=STATUS).skipped
    ] == ["its namespace is reserved"]
    with pytest.raises(Forbidden):
        patch_entries(actor=make_token(alice, Role.VIEWER)[1], seen=select("k"), patch=STATUS)
    unregister_namespace(actor=alice.actor, name="notes", entries="retain")
    gone = patch_entries(actor=alice.actor, seen=select("k"), patch=STATUS)
    assert gone.done == []
    assert len(gone.skipped) == 1
    assert value("k") == {"n": 1}


def test_patch__more_than_the_quota__is_refused_whole(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"n": 1})
    set_quota(actor=alice.actor, entries=None, bytes=100, threads=None)
    large = read_patch(values.dump({"text": "x" * 200}))
    with pytest.raises(QuotaExceeded):
        patch_entries(actor=alice.actor, seen=select("k"), patch=large)
    assert value("k") == {"n": 1}


def test_patch__after_a_bulk_deletion__skips_all(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "k", {"n": 1})
    change_entries(actor=alice.actor, action="delete", seen=select("k"))
    assert patch_entries(actor=alice.actor, seen=select("k"), patch=STATUS).done == []


def test_patch__too_many_entries__is_refused(alice: Person) -> None:
    with pytest.raises(Invalid, match="at most 1,000 entries"):
        patch_entries(actor=alice.actor, seen=select("k") * (MOST + 1), patch=STATUS)


def test_patch__later_transaction_fails__reports_what_was_written(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    for key in ("a", "b", "c"):
        put(alice.actor, "notes", key, {"n": 1})
    monkeypatch.setattr(bulk_patches, "split_by_size", lambda sizes: ([e] for e, _ in sizes))
    genuine = bulk_patches._patch_group

    def fail_on_b(actor: Any, written: Any, patch: Any, reason: str) -> Any:
        if written[0].key == "b":
            raise Conflict("a namespace changed in the meantime; retry")
        return genuine(actor, written, patch, reason)

    monkeypatch.setattr(bulk_patches, "_patch_group", fail_on_b)
    result = patch_entries(actor=alice.actor, seen=select("a", "b", "c"), patch=STATUS)
    assert [each.key for each in result.done] == ["a"]
    assert [each.key for each in result.skipped] == ["b", "c"]
    assert {each.why for each in result.skipped} == {"a namespace changed in the meantime; retry"}
    with pytest.raises(Conflict):
        patch_entries(actor=alice.actor, seen=select("b", "c"), patch=STATUS)


def test_patch__small_values_that_become_large__are_stored_in_parts(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor)
    keys = [f"k{number}" for number in range(5)]
    for key in keys:
        put(alice.actor, "notes", key, {"n": 1})
    monkeypatch.setattr(bulk_patches, "MOST_BYTES", 2_000)
    parts: list[int] = []
    store = bulk_patches.store_together

    def count(actor: Any, puts: Any, *more: Any) -> None:
        parts.append(len(puts))
        store(actor, puts, *more)

    monkeypatch.setattr(bulk_patches, "store_together", count)
    large = read_patch(values.dump({"text": "x" * 1_000}))
    result = patch_entries(actor=alice.actor, seen=select(*keys), patch=large)
    assert [each.key for each in result.done] == keys
    assert parts == [2, 2, 1]
    assert {len(values.dump(value(key))) > 1_000 for key in keys} == {True}
