"""The messages of a thread: consecutive numbers, expected counts, formats and filters."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from state_admin.models import (
    Change,
    Entry,
    Message,
    Thread,
)
from state_admin.services import (
    contexts,
    messages,
    threads,
)
from state_admin.services.batches import BatchOperation
from state_admin.services.errors import (
    Conflict,
    Invalid,
    NotRegistered,
    VersionConflict,
)
from tests import builders
from tests.builders import Person, append, make_thread, make_token, raw
from tests.services.racing import race, split
from tests.services.test_threads import USER


def test_append__messages__are_consecutive_and_checked_against_the_expected_count(
    alice: Person,
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", USER)
    append(alice.actor, "t1", USER, USER)
    assert list(Message.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2, 3]
    with pytest.raises(VersionConflict) as refused:
        messages.append_messages(
            actor=alice.actor, thread_id="t1", messages=[raw(USER)], expected_message_count=2
        )
    assert refused.value.detail == "version conflict: expected 2, actual 3"
    with pytest.raises(VersionConflict) as refused:
        messages.append_messages(
            actor=alice.actor, thread_id="t1", messages=[raw(USER)], expected_message_count=0
        )
    assert refused.value.hint.startswith("The thread changed since you read it.")
    assert Thread.objects.get().message_count == 3
    assert Thread.objects.get().revision == 0


def test_append__repeated_id__is_refused_and_nothing_lands(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", {**USER, "id": "m1"})
    for batch in ([{**USER, "id": "m0"}, {**USER, "id": "m1"}], [{**USER, "id": "m2"}] * 2):
        with pytest.raises(Conflict):
            append(alice.actor, "t1", *batch)
    assert Message.objects.count() == 1
    assert Thread.objects.get().message_count == 1


@pytest.mark.parametrize(
    ("version", "identity", "refusal"),
    [(None, "m1", None), (7, "m1", VersionConflict), (None, "m0", Conflict)],
)
def test_append__operations_on_entries__are_stored_with_the_messages_or_not_at_all(
    alice: Person, version: int | None, identity: str, refusal: type[Exception] | None
) -> None:
    make_thread(alice.actor, "t1")
    builders.make_namespace(alice.actor, "notes")
    append(alice.actor, "t1", {**USER, "id": "m0"})
    operations = [
        BatchOperation("put", "notes", "a", value=raw(1)),
        BatchOperation("put", "notes", "b", value=raw(2), if_version=version),
    ]
    with nullcontext() if refusal is None else pytest.raises(refusal):
        made = messages.append_messages(
            actor=alice.actor,
            thread_id="t1",
            messages=[raw({**USER, "id": identity})],
            operations=operations,
        )
        assert [outcome.created for outcome in made.outcomes] == [True, True]
    landed = refusal is None
    assert Message.objects.count() == 1 + landed
    assert Thread.objects.get().message_count == 1 + landed
    assert Entry.objects.count() == 2 * landed
    assert Change.objects.filter(kind="entry.put").count() == 2 * landed


def test_append__inaccessible_operations__are_refused_with_all(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    builders.make_namespace(alice.actor, "notes")
    _, narrow = make_token(alice, namespaces=["other.*"])
    with pytest.raises(NotRegistered, match=r"^profile key not registered: notes"):
        messages.append_messages(
            actor=narrow,
            thread_id="t1",
            messages=[raw(USER)],
            operations=[BatchOperation("put", "notes", "a", value=raw(1))],
        )
    assert Thread.objects.get().message_count == 0


def test_append__same_id_in_another_thread__is_valid(alice: Person) -> None:
    for name in ("t1", "t2"):
        make_thread(alice.actor, name)
        append(alice.actor, name, {**USER, "id": "m1"})
    assert Message.objects.count() == 2


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"role": "wizard", "content": "x"}, "/role"),
        ({"content": "x"}, "/role"),
        ({"role": "user"}, "/content"),
        ({"role": "user", "content": 5}, "/content"),
        ({"role": "user", "content": ["x"]}, "/content/0"),
        ({"role": "tool", "content": "x"}, "/tool_call_id"),
        ({"role": "user", "content": "x", "tool_call_id": "c"}, "/tool_call_id"),
        ({"role": "user", "content": "x", "tool_calls": []}, "/tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "/tool_calls/0"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "name": "f"}] * 2}, "/tool_calls/1/id"),
        ({"role": "user", "content": "x", "visibility": "secret"}, "/visibility"),
        ({"role": "user", "content": "x", "seq": 5}, "/seq"),
        ({"role": "user", "content": "x", "id": ""}, "/id"),
        ({"role": "user", "content": "x", "id": "x" * 129}, "/id"),
        ({"role": "user", "content": "x", "id": "a\nb"}, "/id"),
        ({"role": "user", "content": "x", "id": 5}, "/id"),
    ],
)
def test_append__invalid_message__is_located(
    alice: Person, message: dict[str, Any], pointer: str
) -> None:
    make_thread(alice.actor, "t1")
    with pytest.raises(Invalid) as refused:
        append(alice.actor, "t1", USER, message)
    assert [f["pointer"] for f in refused.value.data["errors"]] == [f"/messages/1{pointer}"]
    assert Message.objects.count() == 0


def test_messages__openai_format__is_returned_unchanged(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    sent = builders.conversation(2, rounds=2)
    sent[1]["x_provider"] = {"sig": 1.10, "big": 10**25}
    append(alice.actor, "t1", *sent)
    got = alice.api("GET", "/threads/t1/messages?limit=200").json()["items"]
    assert [{name: row[name] for name in message} for message, row in zip(sent, got, strict=True)]
    assert [{k: r[k] for k in m} for m, r in zip(sent, got, strict=True)] == sent
    assert [row["seq"] for row in got] == list(range(1, len(sent) + 1))


def test_messages__filters__are_exact(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", *[{**USER, "content": str(n)} for n in range(5)])
    append(alice.actor, "t1", {**USER, "visibility": "internal"})
    builders.make_run(alice.actor, "t1", "r1")
    builders.commit(alice.actor, "r1", messages=[USER])

    def seqs(query: str) -> list[int]:
        items = alice.api("GET", f"/threads/t1/messages?{query}").json()["items"]
        return [row["seq"] for row in items]

    assert seqs("") == [1, 2, 3, 4, 5, 7]
    assert seqs("visibility=internal") == [6]
    assert seqs("visibility=all&order=desc") == [7, 6, 5, 4, 3, 2, 1]
    assert seqs("after=2&before=5") == [3, 4]
    assert seqs("run_id=r1") == [7]
    assert seqs("run_id=nobody") == []
    pages = []
    first = "/threads/t1/messages?order=desc&limit=4"
    url: str | None = first
    while url is not None:
        page = alice.api("GET", url).json()
        pages.append([row["seq"] for row in page["items"]])
        url = page["next_cursor"] and f"{first}&cursor={page['next_cursor']}"
    assert pages == [[7, 5, 4, 3], [2, 1]]


def test_threads__filters__are_exact(alice: Person) -> None:
    make_thread(alice.actor, "a1", resource_id="x")
    make_thread(alice.actor, "a2", parent_thread_id="a1")
    make_thread(alice.actor, "b1", resource_id="x")

    def ids(query: str) -> list[str]:
        return [row["id"] for row in alice.api("GET", f"/threads?{query}").json()["items"]]

    assert ids("") == ["b1", "a2", "a1"]
    assert ids("resource_id=x") == ["b1", "a1"]
    assert ids("parent_thread_id=a1") == ["a2"]
    assert ids("root=true") == ["b1", "a1"]
    assert ids("prefix=a") == ["a2", "a1"]
    assert alice.api("GET", "/threads?root=true&parent_thread_id=a1").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_race__appends__are_stored_consecutively(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    _, lost = split(race([partial(append, alice.actor, "t1", USER, USER)] * 12))
    assert lost == []
    assert list(Message.objects.order_by("seq").values_list("seq", flat=True)) == [*range(1, 25)]
    assert Thread.objects.get().message_count == 24
    tokens = sum(Message.objects.values_list("estimated_tokens", flat=True))
    assert Thread.objects.get().context_tokens == tokens


def test_context__thread_deleted_while_it_is_read__is_not_found(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_thread(alice.actor, "t1")
    append(alice.actor, "t1", USER)
    read_bodies = contexts._read_bodies

    def read_after_the_deletion(rows: Any) -> Any:
        threads.delete_thread(actor=alice.actor, thread_id="t1")
        return read_bodies(rows)

    monkeypatch.setattr(contexts, "_read_bodies", read_after_the_deletion)
    assert alice.api("GET", "/threads/t1/context").status_code == 404


def test_context__larger_than_the_limit__is_refused(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "MAX_CONTEXT_BYTES", 10_000)
    make_thread(alice.actor)
    append(alice.actor, "t1", *({"role": "user", "content": "x" * 4_000} for _ in range(3)))
    refused = alice.api("GET", "/threads/t1/context")
    assert refused.status_code == 413
    assert "the limit is 10,000 bytes" in refused.json()["detail"]
    assert "max_tokens" in refused.json()["hint"]
    context = alice.api("GET", "/threads/t1/context?max_tokens=2100").json()
    assert (len(context["messages"]), context["left_out"]) == (2, 1)
