"""The token estimate. Integer arithmetic only, so that all implementations compute the same number.

Not here: the tokens that a provider bills.
"""

from __future__ import annotations

from typing import Final

from state_admin.domain.values import JSON, dump

MESSAGE_TOKENS: Final = 4
BLOCK_BYTES: Final = 50

# The members with the text of a text block of OpenAI or Anthropic, and of a thinking block.
_TEXTS: Final = ("text", "thinking")


def estimate_text(text: str) -> int:
    """`floor(UTF-8 bytes / 4)`."""
    return _bytes(text) // 4


def estimate_message(message: JSON) -> int:
    """`4 + floor(bytes / 4)`; bytes = text and tool-call arguments, and 50 per other block.

    `content` is text, None or a list of blocks; tool calls are in OpenAI's format
    (`function.arguments`, a string) or in that of the reference implementation (`arguments`, any
    JSON).
    """
    content = message.get("content")
    total = 0
    if isinstance(content, str):
        total = _bytes(content)
    elif isinstance(content, list):
        total = sum(map(_block, content))
    for call in message.get("tool_calls") or ():
        total += _arguments(call)
    return MESSAGE_TOKENS + total // 4


def _block(block: JSON) -> int:
    if isinstance(block, str):
        return _bytes(block)
    for name in _TEXTS:
        if isinstance(block, dict) and isinstance(block.get(name), str):
            return _bytes(block[name])
    return BLOCK_BYTES


def _arguments(call: JSON) -> int:
    if not isinstance(call, dict):
        return 0
    function = call.get("function")
    arguments = (function if isinstance(function, dict) else call).get("arguments")
    if arguments is None:
        return 0
    return _bytes(arguments if isinstance(arguments, str) else dump(arguments))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
