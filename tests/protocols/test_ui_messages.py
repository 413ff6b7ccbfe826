"""Messages as UI messages of the AI SDK: whole and in chunks, with the same parts."""

from __future__ import annotations

from state_admin.domain import values
from state_admin.models import Ticket
from state_admin.protocols import ui_messages
from tests.protocols.test_ag_ui_events import CALL, message_of

ASKED = message_of({"role": "user", "content": "find"}, 1)
CALLS = message_of({"role": "assistant", "content": "Let me.", "tool_calls": [CALL]}, 2)
FOUND = message_of({"role": "tool", "tool_call_id": "c1", "content": '{"n": 7}'}, 3)
TOLD = message_of({"role": "assistant", "reasoning_content": "hm", "content": "Seven."}, 4)
TOOL = {"type": "tool-find", "toolCallId": "c1", "input": {"a": 1}}


def parts_of(*log, **tickets):
    return [part for each in ui_messages.show(log, tickets) for part in each["parts"]]


def test_show__turn_with_a_tool__is_one_assistant_message() -> None:
    user, reply = ui_messages.show([ASKED, CALLS, FOUND, TOLD], {})
    assert (user["id"], user["role"], user["parts"][0]["text"]) == ("m1", "user", "find")
    assert (reply["id"], reply["role"]) == ("reply-1", "assistant")
    assert reply["parts"] == [
        {"type": "step-start"},
        {"type": "text", "text": "Let me.", "state": "done"},
        TOOL | {"state": "output-available", "output": {"n": 7}},
        {"type": "step-start"},
        {"type": "reasoning", "id": "4-0", "text": "hm", "state": "done"},
        {"type": "text", "text": "Seven.", "state": "done"},
    ]


def test_show__tool_states__depend_on_tickets_and_results() -> None:
    def state(*more, status=None):
        ticket = Ticket(public_id="k1", tool_call_id="c1", status=status)
        return parts_of(CALLS, *more, **({"c1": ticket} if status else {}))[2]

    assert state()["state"] == "input-available"
    assert state(status="pending")["approval"] == {"id": "k1"}
    assert state(status="resumed")["approval"] == {"id": "k1", "approved": True}
    assert state(status="cancelled")["state"] == "output-denied"
    assert state(status="void")["state"] == "input-available"
    done = state(FOUND, status="resumed")
    assert (done["state"], "approval" in done) == ("output-available", False)
    failed = message_of(
        {"role": "tool", "tool_call_id": "c1", "content": "no", "is_error": True}, 3
    )
    assert state(failed)["errorText"] == "no"


def test_show__blocks__are_files_or_data() -> None:
    content = [
        {"type": "file", "file": {"file_data": "data:text/plain,x", "filename": "a.txt"}},
        {"type": "map", "lat": 1.10},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
    ]
    file, block, hostile = parts_of(message_of({"role": "user", "content": content}))
    assert file["mediaType"] == "text/plain"
    assert (file["type"], file["filename"], file["url"]) == ("file", "a.txt", "data:text/plain,x")
    assert block == {"type": "data-block", "data": {"type": "map", "lat": 1.10}}
    assert hostile["type"] == "data-block"


def test_show__numbers__keep_their_spelling() -> None:
    result = message_of({"role": "tool", "tool_call_id": "c1", "content": '{"price": 1.10}'}, 3)
    assert '"output":{"price":1.10}' in values.dump(ui_messages.show([CALLS, result], {}))


def test_show__empty_text__is_a_part() -> None:
    assert parts_of(message_of({"role": "user", "content": ""})) == [{"type": "text", "text": ""}]


def test_show__result_without_its_call__is_left_out() -> None:
    assert parts_of(FOUND) == []


def test_step__chunks__open_and_close_each_part() -> None:
    assert [chunk["type"] for chunk in [*ui_messages.step(TOLD), *ui_messages.step(CALLS)]] == [
        *("start-step", "reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-end", "finish-step"),
        *("start-step", "text-start", "text-delta", "text-end"),
        *("tool-input-available", "finish-step"),
    ]
    assert ui_messages.result(FOUND)["output"] == {"n": 7}
