"""The AI SDK's paths through the real server: the reply of a run, which a client can join at any
time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from state_admin.protocols import ai_sdk
from state_admin.services import runs, threads, tickets
from state_admin.services.runs import RunChange
from tests.builders import Person, append, commit, make_run, make_state_key, make_thread, raw
from tests.protocols.test_ag_ui_events import CALL

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGES = "/threads/t1/ui-messages"
PATH = f"{MESSAGES}/stream"


@pytest.fixture(autouse=True)
def run(alice: Person) -> None:
    make_state_key(alice.actor, "plan", scope="thread")
    make_thread(alice.actor, "t1")
    make_run(alice.actor, "t1", "r1")
    commit(alice.actor, "r1", messages=[{"role": "user", "content": "find"}])


def finish(person: Person, **termination: Any) -> None:
    change = RunChange(status="done", termination_reason=termination or None)
    runs.change_run(actor=person.actor, run_id="r1", change=change)


def say(person: Person, *messages: dict[str, Any], **updates: Any) -> None:
    commit(person.actor, "r1", updates, messages=list(messages))


def wait_for_decision(person: Person) -> None:
    ticket = {"ticket_id": "k1", "tool_call_id": "c1", "tool_name": "refund", "arguments": {"n": 1}}
    waiting = {"reason": "tool_permission", "tickets": [ticket]}
    change = RunChange(status="waiting", waiting=waiting)
    runs.change_run(actor=person.actor, run_id="r1", change=change)


def chunks_in(sent: bytes) -> list[Any]:
    """The chunks that were sent, without the mark of the end."""
    return [json.loads(line[6:]) for line in sent.splitlines() if line.startswith(b"data: {")]


def rest_of(reply: ai_sdk.Reply) -> list[Any]:
    """The chunks of a reply that ends soon."""
    sent = b""
    while not reply.over:
        sent += reply.encode_changes([])
    return chunks_in(sent)


def types(chunks: list[Any]) -> list[str]:
    return [chunk if chunk == "[DONE]" else chunk["type"] for chunk in chunks]


def test_stream__thread_deleted_meanwhile__is_not_found(
    alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_thread = threads.read_thread

    def read_just_before_the_deletion(*args: Any) -> Any:
        monkeypatch.undo()
        thread = read_thread(*args)
        threads.delete_thread(actor=alice.actor, thread_id="t1")
        return thread

    monkeypatch.setattr(threads, "read_thread", read_just_before_the_deletion)
    assert alice.api("GET", PATH).status_code == 404


def test_stream__live_reply__is_sent_from_start_to_done(open_stream, alice) -> None:
    reader = open_stream(alice.token, PATH)
    begun = reader.take(2)
    say(alice, {"role": "assistant", "content": None, "tool_calls": [CALL]})
    say(alice, {"role": "tool", "tool_call_id": "c1", "content": "7"}, plan=["tell"])
    say(alice, {"role": "assistant", "content": "Seven."})
    finish(alice)
    seen = [*begun, *reader]

    assert reader.answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert reader.answer.headers["Content-Type"].startswith("text/event-stream")
    assert begun[0]["messageId"] == "reply-1"
    assert begun[0]["messageMetadata"] == {"run_id": "r1", "thread_id": "t1"}
    assert [kind for kind in types(seen) if kind != "data-state"] == [
        *("start", "start-step", "tool-input-available", "finish-step", "tool-output-available"),
        *("start-step", "text-start", "text-delta", "text-end", "finish-step", "finish", "[DONE]"),
    ]
    states = [chunk["data"] for chunk in seen if chunk != "[DONE]" and "data" in chunk]
    assert states[-1] == alice.api("GET", "/threads/t1/state").json()
    assert alice.api("GET", MESSAGES).json()[1]["id"] == "reply-1"


def test_reply__run_ends_while_it_is_read__has_the_last_state(
    alice, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = ai_sdk.Reply(alice.actor, runs.find_run(alice.actor, "r1"))
    reply.begin([])
    find_thread = threads.find_thread

    def read_just_before_the_end(*args: Any) -> Any:
        monkeypatch.undo()
        thread = find_thread(*args)
        finish(alice)
        return thread

    monkeypatch.setattr(threads, "find_thread", read_just_before_the_end)
    states = [chunk["data"] for chunk in rest_of(reply) if chunk["type"] == "data-state"]
    assert states == [alice.api("GET", "/threads/t1/state").json()]


@pytest.mark.parametrize("meanwhile", ["find_run", "find_thread"])
def test_reply__next_question_while_it_is_read__has_the_last_state_and_the_error(
    alice, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    reply = ai_sdk.Reply(alice.actor, runs.find_run(alice.actor, "r1"))
    reply.begin([])
    owner = runs if meanwhile == "find_run" else threads
    find = getattr(owner, meanwhile)

    def read_just_before_the_question(*args: Any) -> Any:
        monkeypatch.undo()
        found = find(*args)
        say(alice, {"role": "assistant", "content": "One."}, plan=["tell"])
        finish(alice, type="error", message="no money")
        append(alice.actor, "t1", {"role": "user", "content": "again"})
        return found

    monkeypatch.setattr(owner, meanwhile, read_just_before_the_question)
    chunks = rest_of(reply)
    states = [chunk["data"] for chunk in chunks if chunk["type"] == "data-state"]
    assert states[-1] == alice.api("GET", "/threads/t1/state").json()
    assert [chunk["delta"] for chunk in chunks if "delta" in chunk] == ["One."]
    assert types(chunks)[-2:] == ["error", "finish"]


@pytest.mark.parametrize("meanwhile", ["read_thread", "begin"])
def test_reply__next_run_before_it_begins__is_the_whole_reply_of_one_run(
    alice, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    say(alice, {"role": "assistant", "content": "One."})

    def go_on(*args: Any) -> Any:
        monkeypatch.undo()
        found = original(*args)
        finish(alice)
        make_run(alice.actor, "t1", "r2")
        question = {"role": "user", "content": "again"}
        commit(alice.actor, "r2", messages=[question, {"role": "assistant", "content": "Two."}])
        return found

    if meanwhile == "begin":
        reply = ai_sdk.Reply(alice.actor, runs.find_run(alice.actor, "r1"))
        original = id
        go_on(reply)
        sent = reply.begin([])
        texts = [chunk["delta"] for chunk in chunks_in(sent) if "delta" in chunk]
        assert (texts, types(chunks_in(sent))[-1]) == (["One."], "finish")
    else:
        original = threads.read_thread
        monkeypatch.setattr(threads, "read_thread", go_on)
        assert alice.api("GET", PATH).status_code == 204


def test_reply__decision_while_it_is_read__goes_on(alice, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = ai_sdk.Reply(alice.actor, runs.find_run(alice.actor, "r1"))
    reply.begin([])
    wait_for_decision(alice)
    find_run = runs.find_run

    def read_just_before_the_decision(*args: Any) -> Any:
        monkeypatch.undo()
        run = find_run(*args)
        tickets.decide_ticket(actor=alice.actor, ticket_id="k1", action="resume", payload=raw(None))
        return run

    monkeypatch.setattr(runs, "find_run", read_just_before_the_decision)
    assert "finish" not in types(chunks_in(reply.encode_changes([])))
    finish(alice)
    assert rest_of(reply)[-1] == {"type": "finish", "finishReason": "stop"}


def test_stream__joined_late__sends_the_reply_from_its_beginning(open_stream, alice) -> None:
    say(alice, {"role": "assistant", "content": "One."})
    first = open_stream(alice.token, PATH)
    first.take(6)
    first.close()
    say(alice, {"role": "assistant", "content": "Two."})
    again = open_stream(alice.token, PATH)
    say(alice, {"role": "assistant", "content": "Three."})
    finish(alice)
    texts = [chunk["delta"] for chunk in again if chunk != "[DONE]" and "delta" in chunk]
    assert texts == ["One.", "Two.", "Three."]


def test_stream__no_active_run__is_204(open_stream, alice) -> None:
    finish(alice)
    reader = open_stream(alice.token, PATH)
    assert (reader.status, reader.answer.read()) == (204, b"")


def test_stream__run_that_waits_for_a_decision__ends_with_the_request(open_stream, alice) -> None:
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    wait_for_decision(alice)
    *_, called, asked, finished, done = reader
    assert (called["toolName"], called["input"]) == ("refund", {"n": 1})
    assert (asked["approvalId"], asked["toolCallId"]) == ("k1", "c1")
    assert (finished["finishReason"], done) == ("tool-calls", "[DONE]")

    tickets.decide_ticket(actor=alice.actor, ticket_id="k1", action="resume", payload=raw(None))
    again = open_stream(alice.token, PATH)
    again.take(2)
    finish(alice)
    assert list(again)[-1] == "[DONE]"


def test_stream__next_question_in_the_same_run__ends_the_reply(open_stream, alice) -> None:
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    say(alice, {"role": "assistant", "content": "One."}, {"role": "user", "content": "and?"})
    assert types(list(reader))[-2:] == ["finish", "[DONE]"]
    assert open_stream(alice.token, PATH).take(1)[0]["messageId"] == "reply-3"


@pytest.mark.parametrize(
    ("termination", "last"),
    [
        ({"type": "error", "message": "no money"}, ["error", "finish", "[DONE]"]),
        ({"type": "cancelled"}, ["abort", "[DONE]"]),
    ],
)
def test_stream__run_that_fails__ends_with_an_error(open_stream, alice, termination, last) -> None:
    reader = open_stream(alice.token, PATH)
    reader.take(2)
    finish(alice, **termination)
    assert types(list(reader))[-len(last) :] == last


def test_messages__internal_and_empty__are_left_out(alice) -> None:
    append(alice.actor, "t1", {"role": "system", "content": "quiet", "visibility": "internal"})
    assert [each["role"] for each in alice.api("GET", MESSAGES).json()] == ["user"]
    make_thread(alice.actor, "t2")
    assert alice.api("GET", "/threads/t2/ui-messages").json() == []


def test_messages__many__are_the_newest_beginning_with_a_question(alice, monkeypatch) -> None:
    monkeypatch.setattr("state_admin.protocols.reading.MOST_MESSAGES", 4)
    turn = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    append(alice.actor, "t1", *turn, *turn, {"role": "assistant", "content": "b"})
    shown = alice.api("GET", MESSAGES).json()
    assert [(each["role"], len(each["parts"])) for each in shown] == [("user", 1), ("assistant", 4)]


def test_messages__unknown_query__is_refused(alice) -> None:
    assert alice.api("GET", MESSAGES + "?limit=3").status_code == 400
    assert alice.api("GET", PATH + "?after=3").status_code == 400
