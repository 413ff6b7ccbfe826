"""Messages: which are valid, what is read from them, and the text of each fault."""

from __future__ import annotations

import pytest

from state_admin.domain.messages import SERVER_FIELDS, MessageRefused, ParsedMessage, parse_message
from state_admin.domain.values import JSON, Raw, dump

ROLES = "must be one of system, user, assistant, tool"
BLOCK = "a block must be an object with a type"
CALL_ID = "a tool call must have an id"
CALL_NAME = "a tool call must have a name (name or function.name)"
ANSWERS = "a tool message must have the tool_call_id of its call"


def parse(message: JSON, pointer: str = "") -> ParsedMessage:
    return parse_message(Raw(dump(message), message), pointer)


def faults(message: JSON, pointer: str = "") -> list[tuple[str, str]]:
    with pytest.raises(MessageRefused) as refused:
        parse(message, pointer)
    return [(fault.pointer, fault.message) for fault in refused.value.faults]


def test_parse__smallest_message__has_defaults() -> None:
    message = {"role": "user", "content": "x" * 16}
    assert parse(message) == ParsedMessage(
        id=None,
        role="user",
        visibility="all",
        opens=(),
        answers=None,
        tokens=8,
        body=dump(message),
    )


def test_parse__assistant_with_calls__opens_them_in_order() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "c2", "name": "g", "arguments": {}},
    ]
    parsed = parse({"id": "m", "role": "assistant", "visibility": "internal", "tool_calls": calls})
    assert (parsed.id, parsed.visibility) == ("m", "internal")
    assert parsed.opens == ("c1", "c2")


@pytest.mark.parametrize("identity", ["c", "c" * 256])
def test_parse__tool_message__answers_its_call(identity: str) -> None:
    parsed = parse({"role": "tool", "tool_call_id": identity, "content": "done"})
    assert parsed.answers == identity


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image"}]},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "user", "content": "x", "tool_calls": None},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "c" * 256, "name": "f"}]},
    ],
)
def test_parse__valid_formats__are_accepted(message: JSON) -> None:
    assert parse(message).role == message["role"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("hello", [("", "a message must be an object")]),
        ({}, [("/role", ROLES)]),
        ({"role": "robot", "visibility": "x", "content": 1}, [("/role", ROLES)]),
        (
            {"role": "user", "content": "x", "visibility": "nobody"},
            [("/visibility", "must be all or internal")],
        ),
        ({"role": "user", "content": "x", "id": 7}, [("/id", "the id has 0 bytes; it must have 1 to 128 bytes of UTF-8")]),
        ({"role": "user", "content": "x", "id": ".."}, [("/id", "an id cannot be '..': HTTP clients remove it from a path")]),
        (
            {"role": "user"},
            [("/content", "must be a string or a list of blocks; only assistant messages may omit it")],
        ),
        ({"role": "user", "content": 7}, [("/content", "must be a string or a list of blocks")]),
        ({"role": "assistant", "content": {}}, [("/content", "must be a string or a list of blocks")]),
        (
            {"role": "user", "content": [{"type": "text"}, "x", {"type": 1}]},
            [("/content/1", BLOCK), ("/content/2", BLOCK)],
        ),
        ({"role": "tool", "content": "x"}, [("/tool_call_id", ANSWERS)]),
        ({"role": "tool", "content": "x", "tool_call_id": ""}, [("/tool_call_id", ANSWERS)]),
        ({"role": "tool", "content": "x", "tool_call_id": "c" * 257}, [("/tool_call_id", ANSWERS)]),
        (
            {"role": "user", "content": "x", "tool_call_id": "c"},
            [("/tool_call_id", "only a tool message can have tool_call_id")],
        ),
        (
            {"role": "user", "content": "x", "tool_calls": []},
            [("/tool_calls", "only an assistant message can have tool_calls")],
        ),
        ({"role": "assistant", "tool_calls": {}}, [("/tool_calls", "must be a list")]),
        (
            {"role": "assistant", "tool_calls": [7, {"id": "c", "name": "f"}, {"id": "c", "name": "f"}]},
            [
                ("/tool_calls/0", "a tool call must be an object"),
                ("/tool_calls/2/id", "duplicate tool call id c"),
            ],
        ),
        ({"role": "assistant", "tool_calls": [{"name": "f"}]}, [("/tool_calls/0/id", CALL_ID)]),
        ({"role": "assistant", "tool_calls": [{"id": "", "name": "f"}]}, [("/tool_calls/0/id", CALL_ID)]),
        ({"role": "assistant", "tool_calls": [{"id": "c" * 257, "name": "f"}]}, [("/tool_calls/0/id", CALL_ID)]),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, [("/tool_calls/0", CALL_NAME)]),
        ({"role": "assistant", "tool_calls": [{"id": "c", "name": ""}]}, [("/tool_calls/0", CALL_NAME)]),
        ({"role": "assistant", "tool_calls": [{"id": "c", "name": 7}]}, [("/tool_calls/0", CALL_NAME)]),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "function": {}}]},
            [("/tool_calls/0", CALL_NAME)],
        ),
    ],
)  # fmt: skip
def test_parse__invalid_message__reports_each_fault(
    message: JSON, expected: list[tuple[str, str]]
) -> None:
    assert faults(message) == expected


@pytest.mark.parametrize("name", SERVER_FIELDS)
def test_parse__field_of_the_server__is_refused(name: str) -> None:
    expected = [(f"/{name}", "is set by the server; do not send it")]
    assert faults({"role": "user", "content": "x", name: None}) == expected


def test_parse__below_a_pointer__reports_complete_pointers() -> None:
    assert faults("x", "/messages/3") == [("/messages/3", "a message must be an object")]
    assert faults({}, "/messages/3") == [("/messages/3/role", ROLES)]
