"""AG-UI through the real server: the events of observers and participants, and resuming."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from state_admin.domain import patches
from state_admin.domain.access import Role
from state_admin.models import Revision, feed_sql
from state_admin.models.feed_sql import FeedFilter, FeedRow, change_of_run
from state_admin.models.tickets import TicketQuerySet
from state_admin.protocols.ag_ui import RunEventEncoder, ThreadEventEncoder
from state_admin.protocols.following import begin_at
from state_admin.services import runs, threads, tickets
from state_admin.services.runs import RunChange
from state_admin.services.tokens import revoke_token
from tests.builders import (
    Person,
    append,
    commit,
    make_run,
    make_state_key,
    make_thread,
    make_token,
    raw,
)
from tests.feeding import wait_for_feed

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/threads/t1/ag-ui/stream"
INPUT = {"threadId": "t1", "runId": "r1", "messages": [], "tools": [], "context": []}
HI = {"role": "user", "content": "hi"}


@pytest.fixture(autouse=True)
def thread(alice: Person) -> None:
    make_thread(alice.actor, "t1")
    make_state_key(alice.actor, "sum", reducer="add", merge="commutative", scope="thread")
    make_state_key(alice.actor, "plan", scope="thread")
    make_state_key(alice.actor, "secret", persistent=False)


def finish(person: Person, run_id: str = "r1", **termination: Any) -> None:
    change = RunChange(status="done", termination_reason=termination or None)
    runs.change_run(actor=person.actor, run_id=run_id, change=change)


def wait_for_decision(person: Person) -> None:
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "reason": "refund?"}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change = RunChange(status="waiting", waiting=waiting)
    runs.change_run(actor=person.actor, run_id="r1", change=change)


def changes_of(run_id: str) -> list[FeedRow]:
    """The start and the end of a run in the feed."""
    return [change_of_run(kind, "t1", run_id) for kind in ("run.start", "run.done")]


def runs_in(*sent: bytes) -> list[tuple[str, str]]:
    """The starts and ends of runs that were sent."""
    lines = b"".join(sent).decode().splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    return [(each["type"], each["runId"]) for each in events if each["type"].startswith("RUN_")]


def follow(state: Any, events: list[Any]) -> Any:
    """The state of a client after the events."""
    for event in events:
        if event["type"] == "STATE_SNAPSHOT":
            state = event["snapshot"]
        if event["type"] == "STATE_DELTA":
            state = patches.json_patch(state, event["delta"])
    return state


def state_of(person: Person) -> Any:
    return person.api("GET", "/threads/t1/state").json()


def until(reader: Any, kind: str) -> list[Any]:
    """The events up to the first of a kind."""
    seen = []
    for event in reader:
        seen.append(event)
        if event["type"] == kind:
            return seen
    raise AssertionError(f"the stream ended without {kind}: {seen}")


def types(events: list[Any]) -> list[str]:
    return [event["type"] for event in events]


# Looking on ----------------------------------------------------------------------------------


def test_onlooker__connected__gets_the_state_then_messages(open_stream, alice) -> None:
    append(alice.actor, "t1", HI)
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"sum": 2, "secret": 1})
    reader = open_stream(alice.token, PATH)

    state, messages, started = reader.take(3)

    held = state_of(alice)
    del held["extensions"]["secret"]
    assert state == {"type": "STATE_SNAPSHOT", "snapshot": held}
    assert [each["content"] for each in messages["messages"]] == ["hi"]
    assert started["type"] == "RUN_STARTED"
    assert (started["threadId"], started["runId"]) == ("t1", "r1")
    assert reader.answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"


def test_onlooker__live_run__gets_events_between_start_and_finish(open_stream, alice) -> None:
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    reader.settle()
    make_run(alice.actor, "t1", "r1")
    seen = until(reader, "STATE_SNAPSHOT")
    commit(alice.actor, "r1", {"plan": "x" * 900}, messages=[HI])
    seen += until(reader, "TEXT_MESSAGE_END")
    commit(alice.actor, "r1", {"sum": 1})
    seen += until(reader, "STATE_DELTA")
    finish(alice)
    seen += until(reader, "RUN_FINISHED")

    assert types(seen)[0] == "RUN_STARTED"
    assert seen[-1]["outcome"] == {"type": "success"}
    assert seen[-1]["result"] == {"termination_reason": {"type": "natural_end"}}
    assert follow({"revision": 0, "extensions": {}}, seen) == state_of(alice)


def test_onlooker__last_event_id__gets_the_state_and_missed_runs(open_stream, alice) -> None:
    first = open_stream(alice.token, PATH)
    first.take(2)
    last_id = first.settle()
    first.close()
    make_run(alice.actor, "t1", "r1")
    finish(alice, type="error", message="no money")
    make_run(alice.actor, "t1", "r2")

    again = open_stream(alice.token, PATH, last_event_id=last_id)

    seen = again.take(5)
    assert types(seen) == [
        *("STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_STARTED", "RUN_ERROR", "RUN_STARTED")
    ]
    assert seen[3] == {"type": "RUN_ERROR", "message": "no money", "code": "error"}
    assert (seen[2]["runId"], seen[4]["runId"]) == ("r1", "r2")


def test_onlooker__run_waits_for_a_decision__ends_with_an_interrupt_and_starts_again(
    open_stream, alice
) -> None:
    make_run(alice.actor, "t1", "r1")
    reader = open_stream(alice.token, PATH)
    reader.take(3)
    wait_for_decision(alice)
    (interrupt,) = until(reader, "RUN_FINISHED")[-1]["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"]) == ("k1", "c1")
    assert interrupt["reason"] == "refund?"

    tickets.decide_ticket(actor=alice.actor, ticket_id="k1", action="resume", payload=raw(None))
    assert until(reader, "RUN_STARTED")[-1]["runId"] == "r1"


def test_onlooker__internal_message__is_not_sent(open_stream, alice) -> None:
    append(alice.actor, "t1", {"role": "system", "content": "quiet", "visibility": "internal"})
    reader = open_stream(alice.token, PATH)
    assert reader.take(2)[1]["messages"] == []


def test_onlooker__thread_deleted__is_closed_with_the_reason(open_stream, alice) -> None:
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    threads.delete_thread(actor=alice.actor, thread_id="t1")
    last = list(reader)[-1]
    assert (last["type"], last["name"]) == ("CUSTOM", "commonhold.closed")
    assert last["value"]["type"] == "/problems/not-found"


def test_onlooker__token_revoked__is_closed(open_stream, alice) -> None:
    token, actor = make_token(alice, Role.VIEWER)
    reader = open_stream(token, PATH)
    reader.take(2)
    revoke_token(actor=alice.actor, token_id=int(actor.id))
    assert list(reader)[-1]["value"]["type"] == "/problems/unauthenticated"


def test_onlooker__other_thread_changes__gets_nothing(open_stream, alice) -> None:
    make_thread(alice.actor, "t2")
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    reader.settle()
    append(alice.actor, "t2", {"role": "user", "content": "elsewhere"})
    append(alice.actor, "t1", HI)
    assert reader.take(3)[1]["delta"] == "hi"


def test_onlooker__many_commits_while_it_does_not_read__gets_the_last_state(
    open_stream, alice
) -> None:
    make_run(alice.actor, "t1", "r1")
    reader = open_stream(alice.token, PATH)
    state = follow(None, reader.take(3))
    for _ in range(60):
        commit(alice.actor, "r1", {"sum": 1, "plan": "x" * 2000})
    for event in reader:
        state = follow(state, [event])
        if state["extensions"].get("sum") == 60:
            break
    assert state == state_of(alice)


@pytest.mark.parametrize(
    ("cursor", "status", "member", "text"),
    [
        ("nonsense", 400, "detail", "Last-Event-ID must be an id that this stream sent"),
        ("WzEsMSwxXQ", 410, "hint", "Connect again without Last-Event-ID."),
    ],
    ids=["foreign", "expired"],
)
def test_onlooker__malformed_last_event_id__is_refused(
    open_stream, alice, cursor, status, member, text
) -> None:
    stream = open_stream(alice.token, PATH, last_event_id=cursor)
    assert stream.status == status
    assert stream.problem()[member] == text


def test_stream__server_cannot_stream__sends_the_current_state_and_ends(alice) -> None:
    answer = alice.api("GET", PATH)
    lines = answer.content.decode().split("\n")
    assert sum(line.startswith("data: ") for line in lines) == 3
    assert "commonhold.closed" in answer.content.decode()


def test_onlooker__short_run__ends_once(alice) -> None:
    encoder = ThreadEventEncoder(alice.actor, "t1")
    encoder.begin([])
    make_run(alice.actor, "t1", "r1")
    finish(alice)
    sent = [encoder.encode_changes([change]) for change in changes_of("r1")]
    assert runs_in(*sent) == [("RUN_STARTED", "r1"), ("RUN_FINISHED", "r1")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_onlooker__next_run_while_it_connects__gets_each_start_and_end_once(
    alice, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    make_run(alice.actor, "t1", "r1")
    encoder = ThreadEventEncoder(alice.actor, "t1")
    read_thread = threads.read_thread

    def read_at_the_next_run(*args: Any) -> Any:
        monkeypatch.undo()
        thread = read_thread(*args)
        finish(alice)
        make_run(alice.actor, "t1", "r2")
        return read_thread(*args) if when == "before" else thread

    monkeypatch.setattr(threads, "read_thread", read_at_the_next_run)
    begun = encoder.begin(changes_of("r1")[:1])
    news = encoder.encode_changes([*changes_of("r1")[1:], *changes_of("r2")[:1]])
    assert runs_in(begun, news) == [
        *(("RUN_STARTED", "r1"), ("RUN_FINISHED", "r1"), ("RUN_STARTED", "r2"))
    ]


def test_onlooker__next_run_while_it_reconnects__gets_the_end_of_the_previous_one(alice) -> None:
    make_run(alice.actor, "t1", "r1")
    wait_for_feed(alice.workspace.pk)
    at = feed_sql.read_end(alice.workspace.pk).position
    encoder = ThreadEventEncoder(alice.actor, "t1")
    finish(alice)
    make_run(alice.actor, "t1", "r2")
    begun = begin_at(at, encoder, alice.actor, FeedFilter(thread="t1"), at)
    news = encoder.encode_changes([*changes_of("r1")[1:], *changes_of("r2")[:1]])
    assert runs_in(begun, news) == [("RUN_FINISHED", "r1"), ("RUN_STARTED", "r2")]


@pytest.mark.parametrize("encoder_of", [ThreadEventEncoder, partial(RunEventEncoder, run_id="r1")])
def test_decision_while_events_are_encoded__run_goes_on(
    alice, monkeypatch: pytest.MonkeyPatch, encoder_of: Any
) -> None:
    make_run(alice.actor, "t1", "r1")
    encoder = encoder_of(alice.actor, "t1")
    begun = encoder.begin([])
    wait_for_decision(alice)
    find_thread, pending = threads.find_thread, TicketQuerySet.pending

    def decide() -> None:
        monkeypatch.undo()
        tickets.decide_ticket(actor=alice.actor, ticket_id="k1", action="resume", payload=raw(None))

    def find_just_before_the_decision(*args: Any) -> Any:
        thread = find_thread(*args)
        decide()
        return thread

    def pending_just_after_the_decision(rows: TicketQuerySet) -> TicketQuerySet:
        decide()
        return pending(rows)

    if encoder_of is ThreadEventEncoder:  # which encodes runs before it reads the thread
        monkeypatch.setattr(TicketQuerySet, "pending", pending_just_after_the_decision)
    else:
        monkeypatch.setattr(threads, "find_thread", find_just_before_the_decision)
    news = [encoder.encode_changes([change_of_run("run.waiting", "t1", "r1")])]
    finish(alice)
    news.append(encoder.encode_changes(changes_of("r1")[1:]))
    assert runs_in(begun, *news) == [("RUN_STARTED", "r1"), ("RUN_FINISHED", "r1")]


def test_onlooker__last_event_id_of_a_run_that_waits__gets_one_start_and_interrupt(alice) -> None:
    make_run(alice.actor, "t1", "r1")
    wait_for_decision(alice)
    sent = ThreadEventEncoder(alice.actor, "t1").begin(changes_of("r1")[:1])
    assert runs_in(sent) == [("RUN_STARTED", "r1"), ("RUN_FINISHED", "r1")]


# Taking part ---------------------------------------------------------------------------------


def test_participant__active_run__is_streamed_until_it_ends(open_stream, alice) -> None:
    make_run(alice.actor, "t1", "r1")
    reader = open_stream(alice.token, PATH, INPUT | {"runId": "of-the-client"})
    first = reader.take(3)
    commit(alice.actor, "r1", {"sum": 1}, messages=[{"role": "assistant", "content": "yes"}])
    finish(alice)

    seen = [*first, *reader]

    assert types(first) == ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    assert first[0]["runId"] == "r1"
    assert types(seen)[-1] == "RUN_FINISHED"
    assert [each["delta"] for each in seen if each["type"] == "TEXT_MESSAGE_CONTENT"] == ["yes"]
    assert follow(None, seen) == state_of(alice)


@pytest.mark.parametrize("encoder_of", [ThreadEventEncoder, partial(RunEventEncoder, run_id="r1")])
def test_run_ends_while_events_are_encoded__its_messages_come_before_its_end(
    alice, monkeypatch: pytest.MonkeyPatch, encoder_of: Any
) -> None:
    make_run(alice.actor, "t1", "r1")
    encoder = encoder_of(alice.actor, "t1")
    encoder.begin([])
    commit(alice.actor, "r1", {"sum": 1})
    done = RunChange(status="done")
    reply = [{"role": "assistant", "content": "yes"}]
    find_thread = threads.find_thread

    def find_just_before_the_end(actor: Any, thread_id: str, **options: Any) -> Any:
        thread = find_thread(actor, thread_id, **options)
        monkeypatch.undo()
        commit(alice.actor, "r1", {"sum": 1}, messages=reply, run=done)
        return thread

    monkeypatch.setattr(threads, "find_thread", find_just_before_the_end)
    changes = [change_of_run(kind, "t1", "r1") for kind in ("run.commit", "run.done")]
    encoded = b"".join(encoder.encode_changes([change]) for change in changes)

    seen = [json.loads(line[6:]) for line in encoded.decode().splitlines() if line]
    ends = [types(seen).index(kind) for kind in ("TEXT_MESSAGE_END", "RUN_FINISHED")]
    assert ends == sorted(ends)


def test_participant__no_run__gets_the_current_thread(open_stream, alice) -> None:
    seen = list(open_stream(alice.token, PATH, INPUT))
    assert types(seen) == ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert seen[0]["runId"] == seen[-1]["runId"] == "r1"


def test_participant__cancelled_run__gets_an_error(open_stream, alice) -> None:
    make_run(alice.actor, "t1", "r1")
    runs.cancel_run(actor=alice.actor, run_id="r1")
    assert list(open_stream(alice.token, PATH, INPUT))[-1]["outcome"] == {"type": "cancelled"}


def test_participant__run_of_another_thread__is_not_shown(open_stream, alice) -> None:
    make_thread(alice.actor, "t2")
    make_run(alice.actor, "t2", "r1")
    seen = list(open_stream(alice.token, PATH, INPUT))
    assert types(seen)[-1] == "RUN_FINISHED"


def test_participant__what_the_client_sends__is_not_stored(open_stream, alice) -> None:
    sent = INPUT | {"state": {"extensions": {"sum": 9}}, "messages": [{"id": "x", **HI}]}
    list(open_stream(alice.token, PATH, sent))
    assert state_of(alice) == {"revision": 0, "extensions": {}}
    assert alice.api("GET", "/threads/t1/messages").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([], 400),
        ({}, 422),
        ({"threadId": "t1", "runId": 1}, 422),
        ({"threadId": "t1", "runId": ""}, 422),
        ({"threadId": "t2", "runId": "r1"}, 422),
        ({"threadId": "t1", "runId": "a\0b"}, 422),
    ],
)
def test_participant__invalid_input__is_refused_with_its_place(alice, body, status) -> None:
    answer = alice.api("POST", PATH, body)
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_stream__idempotency_key__is_refused(alice) -> None:
    answer = alice.api("POST", PATH, INPUT, Idempotency_Key="k")
    assert answer.status_code == 400


def test_stream__unknown_query__is_refused(alice) -> None:
    assert alice.api("GET", PATH + "?after=1").status_code == 400


def test_state__sent_revision_was_removed__is_sent_whole(alice) -> None:
    encoder = ThreadEventEncoder(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", {"plan": "x" * 900})
    encoder.begin([])
    commit(alice.actor, "r1", {"sum": 1})
    assert b"STATE_DELTA" in encoder.encode_changes([])
    commit(alice.actor, "r1", {"sum": 1})
    Revision.objects.filter(number=3).update(dropped=True)
    assert b"STATE_SNAPSHOT" in encoder.encode_changes([])
    assert encoder.encode_changes([]) == b""


def test_state__too_large_while_it_is_followed__ends_the_stream(open_stream, alice) -> None:
    make_run(alice.actor, "t1", "r1")
    reader = open_stream(alice.token, PATH)
    reader.take(3)
    reader.settle()
    for number in range(5):
        make_state_key(alice.actor, f"large{number}")
    commit(alice.actor, "r1", {f"large{number}": "x" * 7_000_000 for number in range(5)})
    assert "too large to send" in until(reader, "CUSTOM")[-1]["value"]["detail"]
