"""The exact token estimate."""

from __future__ import annotations

import pytest

from state_admin.domain.tokens import estimate_message, estimate_text


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"role": "user", "content": "x" * 16}, 8),
        ({"role": "user", "content": "x" * 19}, 8),
        ({"role": "user", "content": "é" * 8}, 8),
        ({"role": "user", "content": ""}, 4),
        ({"role": "user", "content": None}, 4),
        ({"role": "user"}, 4),
        ({"content": [{"type": "text", "text": "x" * 6}, {"type": "text", "text": "x" * 6}]}, 7),
        ({"content": [{"type": "thinking", "thinking": "x" * 16}]}, 8),
        ({"content": [{"type": "image_url", "image_url": {"url": "x" * 999}}]}, 16),
        ({"content": [{"type": "image"}, {"type": "image"}, "xxxx"]}, 30),
        ({"content": None, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}]}, 6),
        ({"content": "", "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": 1, "b": 2}}]}, 7),
        ({"content": "xx", "tool_calls": [{"id": "c", "function": {"arguments": "xx"}}] * 3}, 6),
        ({"content": "", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}, 4),
        ({"content": "", "tool_calls": None}, 4),
    ],
)  # fmt: skip
def test_estimate_message__each_format__is_exact(message: object, tokens: int) -> None:
    assert estimate_message(message) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 0), ("abcd", 1), ("🙂", 1), ("ключ", 2)]
)
def test_estimate_text__bytes__are_divided_by_four(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens
