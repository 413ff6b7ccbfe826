"""On-Conflict: merge, while others write the same entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from state_admin.models import Namespace, entries_sql
from state_admin.services.entries import Precondition, delete_entry, patch_entry
from state_admin.services.errors import VersionConflict
from tests.builders import TEAM_SCHEMA, Person, make_namespace, put

pytestmark = pytest.mark.django_db


def test_put__merged_with_concurrent_writes__is_valid_under_the_schema(alice: Person) -> None:
    make_namespace(alice.actor, schema=TEAM_SCHEMA, default={})
    put(alice.actor, "notes", "k", {"goal": "a"})
    put(alice.actor, "notes", "k", {"goal": "a", "count": 1})
    done = put(alice.actor, "notes", "k", {"goal": "b"}, precondition=Precondition(1, merge=True))
    assert (done.value, done.version) == ('{"goal":"b","count":1}', 3)
    assert done.exists is True
    assert done.actor == "alice"


def test_put__merged_while_others_write_ten_times__succeeds(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(alice.actor, default={})
    put(alice.actor, "notes", "k", {"mine": 0})
    others = iter(range(10))
    replace_entry = entries_sql.replace_entry

    def replace_later(parameters: Mapping[str, Any]) -> entries_sql.WrittenEntry | None:
        number = next(others, None)
        if number is not None:
            put(alice.actor, "notes", "k", {"mine": 0, "theirs": number})
        return replace_entry(parameters)

    monkeypatch.setattr(entries_sql, "replace_entry", replace_later)

    done = put(alice.actor, "notes", "k", {"mine": 1}, precondition=Precondition(1, merge=True))

    assert done.value == '{"mine":1,"theirs":9}'


def test_patch__merged_with_the_creation__starts_from_the_newest_default(alice: Person) -> None:
    make_namespace(alice.actor, default={"count": 1})
    put(alice.actor, "notes", "k", {"count": 2, "theirs": 1})
    # Another process changed the default; this one has cached the former definition.
    Namespace.objects.update(default='{"count": 2}', schema_version=2)

    done = patch_entry(
        actor=alice.actor,
        namespace="notes",
        key="k",
        kind="update",
        operations={"op": "add", "path": "/count", "value": 1},
        precondition=Precondition(0, merge=True),
    )

    assert done.entry.value == '{"count":3,"theirs":1}'


def test_delete__merged_with_the_creation__starts_from_the_newest_default(alice: Person) -> None:
    """The value of the entry is the former default: only with that one it counts as unchanged."""
    make_namespace(alice.actor, default={"count": 1})
    put(alice.actor, "notes", "k", {"count": 1})
    Namespace.objects.update(default='{"count": 2}', schema_version=2)

    with pytest.raises(VersionConflict):
        delete_entry(
            actor=alice.actor,
            namespace="notes",
            key="k",
            precondition=Precondition(0, merge=True),
        )
