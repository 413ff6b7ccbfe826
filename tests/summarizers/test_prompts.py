"""The prompt for a model: no text can close its tags, and all of it fits into the window (ADR
11)."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from state_admin.summarizers import SummaryFailed, SummaryRequest, prompts

_pieces = st.sampled_from(
    ["<", "</", " / ", ">", "message", "NEW-conversation", "existing-summary", '" from="', "\n", "x" * 400, "é😀"]
)  # fmt: skip
_text = st.lists(_pieces | st.text(max_size=5), max_size=12).map("".join)
_messages = st.lists(
    st.builds(lambda text: {"role": "user", "content": text}, _text)
    | st.builds(lambda text: {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": text}]}, _text)
    | st.builds(
        lambda name, text: {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": name, "arguments": text}}],
        },
        _text, _text,
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip
_TAG = re.compile(r"(?i)<[\s/]*(?:message|new-conversation|existing-summary|conversation-summary)")


@given(_messages, st.none() | _text)
def test_write__any_conversation__opens_and_closes_only_its_own_tags(
    messages: list[dict[str, Any]], previous: str | None
) -> None:
    try:
        user = prompts.write(SummaryRequest(messages, previous, 300)).user
    except SummaryFailed:
        return
    assert user.count("<message from=") == user.count("</message>") <= len(messages)
    assert len(_TAG.findall(user)) == 2 * user.count("</message>") + 4


@given(_messages, st.integers(1, 3_000))
def test_write__any_window__is_within_it_or_fails(
    messages: list[dict[str, Any]], window: int
) -> None:
    request = SummaryRequest(messages, None, 300)
    try:
        prompt = prompts.write(request, window)
    except SummaryFailed:
        return
    assert prompt.tokens <= window - 300
