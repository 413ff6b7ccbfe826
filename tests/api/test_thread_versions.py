"""The version of a thread: which changes increment it, and what If-Match prevents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from state_admin.models import AuditRow
from state_admin.services import threads
from state_admin.services.errors import VersionConflict
from tests.builders import (
    Person,
    append,
    commit,
    make_namespace,
    make_run,
    make_state_key,
    make_thread,
    put,
    raw,
)
from tests.services.racing import race, split

MERGE = "application/merge-patch+json"


@pytest.fixture
def thread(alice: Person) -> Person:
    make_thread(alice.actor, "t1", metadata=raw({"a": 1, "nested": {"x": 1}}))
    return alice


def etag(person: Person) -> str:
    read = person.api("GET", "/threads/t1")
    assert read["ETag"] == f'"{read.json()["version"]}"'
    tag: str = read["ETag"]
    return tag


def metadata(person: Person) -> Any:
    return person.api("GET", "/threads/t1").json()["metadata"]


def merge(person: Person, body: Any, **headers: str) -> Any:
    return person.api("PATCH", "/threads/t1", body, content_type=MERGE, **headers)


# The version ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"title": "x"},
        {"metadata": {}},
        {"resource_id": "user-1"},
        {"parent_thread_id": "above"},
        {"compaction_policy": {"min_gain_tokens": 5}},
    ],
)
def test_version__each_field_of_a_patch__increments_it(thread: Person, body: Any) -> None:
    make_thread(thread.actor, "above")
    before = etag(thread)
    changed = thread.api("PATCH", "/threads/t1", body)
    assert changed["ETag"] == etag(thread) == '"2"' != before


def test_version__parent_deleted__increments_it(alice: Person) -> None:
    make_thread(alice.actor, "above")
    make_thread(alice.actor, "t1", parent_thread_id="above")
    before = etag(alice)
    alice.api("DELETE", "/threads/above?children=detach")
    assert etag(alice) != before


def test_version__agent_protocol_and_erasure_of_the_parent__increment_it(alice: Person) -> None:
    make_namespace(alice.actor)
    put(alice.actor, "notes", "thread::above", 1)
    make_thread(alice.actor, "above", resource_id="person-1")
    make_thread(alice.actor, "t1", parent_thread_id="above")
    assert etag(alice) == '"1"'
    alice.api("PATCH", "/agent-protocol/threads/t1", {"metadata": {"b": 1}})
    assert etag(alice) == '"2"'
    erased = alice.api("POST", "/erase", {"resource_id": "person-1", "reason": "asked for"})
    assert erased.status_code == 200, erased.content
    assert etag(alice) == '"3"'


def test_version__commits_messages_and_runs__do_not_change_it(thread: Person) -> None:
    make_state_key(thread.actor, "plan")
    before = etag(thread)
    make_run(thread.actor, "t1", "r1")
    commit(thread.actor, "r1", {"plan": 1})
    append(thread.actor, "t1", {"role": "user", "content": "hi"})
    assert etag(thread) == before
    assert thread.api("GET", "/threads/t1/state")["ETag"] == '"2"'


def test_version__created_and_forked__is_the_etag(thread: Person) -> None:
    created = thread.api("POST", "/threads", {"id": "t2"})
    assert (created["ETag"], created.json()["version"]) == ('"1"', 1)
    thread.api("PATCH", "/threads/t1", {"title": "x"})
    assert thread.api("POST", "/threads/t1/fork", {})["ETag"] == '"1"'


# If-Match ------------------------------------------------------------------------------------------


def test_patch__stale_if_match__is_412_with_both_versions_and_changes_nothing(
    thread: Person,
) -> None:
    seen = etag(thread)
    assert (
        thread.api("PATCH", "/threads/t1", {"metadata": {"a": 2}}, If_Match=seen).status_code == 200
    )
    audited = AuditRow.objects.count()
    refused = thread.api("PATCH", "/threads/t1", {"metadata": {"b": 2}}, If_Match=seen)
    assert (refused.status_code, refused["ETag"]) == (412, '"2"')
    assert (refused.json()["expected"], refused.json()["actual"]) == (1, 2)
    assert "version conflict: expected 1, actual 2" in refused.json().values()
    assert metadata(thread) == {"a": 2}
    assert AuditRow.objects.count() == audited


def test_patch__current_if_match__succeeds_while_agents_commit(thread: Person) -> None:
    seen = etag(thread)
    make_run(thread.actor, "t1", "r1")
    assert thread.api("PATCH", "/threads/t1", {"title": "x"}, If_Match=seen).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_race__writers_of_one_version__one_wins(alice: Person) -> None:
    make_thread(alice.actor, "t1")

    def write(number: int) -> Any:
        return threads.change_thread(
            actor=alice.actor, thread_id="t1", metadata=raw({"n": number}), expected_version=1
        )

    works: list[Callable[[], Any]] = [partial(write, number) for number in range(6)]
    won, lost = split(race(works))
    assert len(won) == 1
    assert all(isinstance(problem, VersionConflict) for problem in lost)
    assert (won[0].version, metadata(alice)) == (2, {"n": int(won[0].metadata[5:-1])})


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_delete__stale_if_match__is_412_and_deletes_nothing(thread: Person, query: str) -> None:
    seen = etag(thread)
    thread.api("PATCH", "/threads/t1", {"title": "x"})
    assert thread.api("DELETE", f"/threads/t1{query}", If_Match=seen).status_code == 412
    assert etag(thread) == '"2"'
    assert thread.api("DELETE", f"/threads/t1{query}", If_Match='"2"').status_code in (200, 204)


def test_delete__state_moved_on__is_409_with_expected_revision(thread: Person) -> None:
    make_run(thread.actor, "t1", "r1")
    refused = thread.api("DELETE", "/threads/t1?expected_revision=0")
    assert refused.status_code == 409
    assert "revision conflict: expected 0, actual 1" in refused.json().values()
    assert thread.api("DELETE", "/threads/t1?expected_revision=1").status_code == 204


# Merge patches -------------------------------------------------------------------------------------


def test_merge_patch__of_metadata__merges_and_null_removes(thread: Person) -> None:
    changed = merge(thread, {"metadata": {"a": None, "b": 1, "nested": {"y": 2}}})
    assert changed.status_code == 200
    assert changed.json()["metadata"] == {"b": 1, "nested": {"x": 1, "y": 2}} == metadata(thread)


def test_patch__plain_json__replaces_metadata_and_keeps_null(thread: Person) -> None:
    assert thread.api("PATCH", "/threads/t1", {"metadata": {"b": None}}).status_code == 200
    assert metadata(thread) == {"b": None}


def test_merge_patch__stale_if_match__is_412(thread: Person) -> None:
    merge(thread, {"title": "x"})
    assert merge(thread, {"metadata": {"b": 1}}, If_Match='"1"').status_code == 412
    assert "b" not in metadata(thread)


def test_merge_patch__numbers__keep_their_spelling(thread: Person) -> None:
    thread.api("PATCH", "/threads/t1", b'{"metadata": {"n": 1.10, "big": 123456789012345678901}}')
    merge(thread, {"metadata": {"other": 1}})
    text = thread.api("GET", "/threads/t1").content.decode()
    assert '"metadata":{"n":1.10,"big":123456789012345678901,"other":1}' in text


@pytest.mark.parametrize("body", [{"metadata": None}, {"metadata": [1]}, {"title": None}])
def test_merge_patch__not_an_object_or_text__is_422(thread: Person, body: Any) -> None:
    before = thread.api("GET", "/threads/t1").json()
    assert merge(thread, body).status_code == 422
    assert thread.api("GET", "/threads/t1").json() == before


def test_merge_patch__result_is_too_large_to_store__is_422(thread: Person) -> None:
    half = {f"k{n}": n for n in range(6_000)}
    assert merge(thread, {"metadata": half}).status_code == 200
    refused = merge(thread, {"metadata": {f"l{n}": n for n in range(6_000)}})
    assert refused.status_code == 422
    assert len(metadata(thread)) == 6_002


def test_merge_patch__of_the_policy__merges_and_is_checked_as_a_whole(thread: Person) -> None:
    policy = {"min_gain_tokens": 5, "prompt": "Only prices."}
    thread.api("PATCH", "/threads/t1", {"compaction_policy": policy})
    changed = merge(thread, {"compaction_policy": {"prompt": None, "raw_suffix_messages": 3}})
    kept = {"min_gain_tokens": 5, "raw_suffix_messages": 3}
    assert changed.json()["compaction_policy"] == kept
    refused = merge(thread, {"compaction_policy": {"mode": "never"}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/compaction_policy/mode"
    assert thread.api("GET", "/threads/t1").json()["compaction_policy"] == kept
