"""A thread as AG-UI events: deltas that give exactly the next state, messages of all kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from state_admin.domain import patches, values
from state_admin.models import Message
from state_admin.protocols import ag_ui_events, parts
from tests.domain import strategies


def message_of(body: dict[str, Any], seq: int = 1) -> parts.ThreadMessage:
    row = Message(
        public_id=f"m{seq}",
        seq=seq,
        role=body["role"],
        body=values.dump(body),
        answers=body.get("tool_call_id"),
        created_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    return parts.read(row)


@given(strategies.close_values, strategies.close_values)
def test_state_change__any_two_states__is_a_valid_patch_or_a_snapshot(
    before: Any, after: Any
) -> None:
    before, after = ({"revision": n, "extensions": s} for n, s in ((1, before), (2, after)))
    (event,) = ag_ui_events.state_change(before, after)
    if event["type"] == "STATE_DELTA":
        assert values.same(patches.json_patch(before, event["delta"]), after)
    else:
        assert event == {"type": "STATE_SNAPSHOT", "snapshot": after}


def test_state_change__small_change_of_a_large_state__is_sent_as_a_delta() -> None:
    before = {"revision": 1, "extensions": {"plan": ["x" * 200, 1], "sum": 1}}
    after = {"revision": 2, "extensions": {"plan": ["x" * 200, 1], "sum": 2}}
    (event,) = ag_ui_events.state_change(before, after)
    assert event["delta"] == [
        {"op": "replace", "path": "/revision", "value": 2},
        {"op": "replace", "path": "/extensions/sum", "value": 2},
    ]
    assert ag_ui_events.state_change(after, after) == []


@pytest.mark.parametrize("name", ["__proto__", "constructor", "prototype"])
def test_state_change__name_refused_by_clients__is_sent_as_a_snapshot(name) -> None:
    before = {"revision": 1, "extensions": {"a": {"x": "y" * 500}}}
    after = {"revision": 2, "extensions": {"a": {"x": "y" * 500, name: {"polluted": True}}}}
    assert ag_ui_events.state_change(before, after)[0]["type"] == "STATE_SNAPSHOT"


def test_state_change__incorrect_patch__is_sent_as_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = [{"op": "replace", "path": "/revision", "value": 3}]
    monkeypatch.setattr(ag_ui_events.diffs, "json_patch", lambda *_: wrong)
    before, after = {"revision": 1, "pad": "x" * 99}, {"revision": 2, "pad": "x" * 99}
    assert ag_ui_events.state_change(before, after)[0]["snapshot"] == after


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}


def test_show__every_role__has_the_format_of_clients() -> None:
    log = [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "7"},
        {"role": "assistant", "reasoning_content": "hm", "content": "Seven."},
    ]
    shown = [
        each for seq, body in enumerate(log, 1) for each in ag_ui_events.show(message_of(body, seq))
    ]
    assert shown == [
        {"id": "m1", "role": "system", "content": "Be exact."},
        {"id": "m2", "role": "user", "name": "ann", "content": "hi"},
        {"id": "m3", "role": "assistant", "toolCalls": [CALL]},
        {"id": "m4", "role": "tool", "toolCallId": "c1", "content": "7"},
        {"id": "m5:reasoning", "role": "reasoning", "content": "hm"},
        {"id": "m5", "role": "assistant", "content": "Seven."},
    ]


def test_show__files__are_parts_with_a_source() -> None:
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
    ]
    (shown,) = ag_ui_events.show(message_of({"role": "user", "content": content}))
    assert shown["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
        {
            "type": "document",
            "source": {
                "type": "url",
                "value": "https://x.test/a.pdf",
                "mimeType": "application/octet-stream",
            },
        },
    ]


def test_show__url_of_another_scheme__is_a_json_block() -> None:
    block = {"type": "image_url", "image_url": {"url": "javascript:alert(1)"}}
    (shown,) = ag_ui_events.show(message_of({"role": "user", "content": [block]}))
    assert shown["content"] == [{"type": "text", "text": values.dump(block)}]


def test_message_events__call_and_result__are_in_the_order_of_the_protocol() -> None:
    log = [
        message_of({"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}, 1),
        message_of({"role": "tool", "tool_call_id": "c1", "content": "7"}, 2),
    ]
    events = ag_ui_events.message_events(log)
    assert events is not None
    assert [event["type"] for event in events] == [
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
    ]
    assert events[4]["delta"] == '{"a": 1}'


def test_message_events__inexpressible_content__requires_a_snapshot() -> None:
    assert (
        ag_ui_events.message_events([message_of({"role": "user", "content": [{"type": "x"}]})])
        is None
    )
