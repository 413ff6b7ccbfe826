"""The summary that replaces the beginning of a conversation: how it is wrapped, and how text of
others in it is kept from being read as instructions (docs/adr/0011-model-summaries-are-data.md).
Not here: writing a summary (summarizers)."""

from __future__ import annotations

import re
from typing import Final

from .values import JSON

TAG: Final = "conversation-summary"
_OPENING, _CLOSING = f"<{TAG}>\n", f"\n</{TAG}>"

# C0 and C1 controls except tab and line feed, bidirectional controls, byte order marks, lone
# surrogates.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)
_CUT: Final = "…"


def wrap(text: str) -> dict[str, JSON]:
    """The message that replaces what it summarizes."""
    return {"role": "system", "content": f"{_OPENING}{text}{_CLOSING}"}


def unwrap(message: JSON) -> str:
    """The text of such a message."""
    content: str = message["content"]
    return content.removeprefix(_OPENING).removesuffix(_CLOSING)


def clean(text: str, max_tokens: int) -> str:
    """A summary as it may be stored: without control characters, unable to close or open the tags
    around it, and with at most `max_tokens` (tokens.estimate_text), cut at the end of a word."""
    text = _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = escape_tags(text, TAG).strip()
    most = 4 * max_tokens + 3
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    room = encoded[: most - len(_CUT.encode())].decode(errors="ignore")
    whole_words = room.rpartition(" ")[0] if " " in room[-80:] else room
    return whole_words.rstrip() + _CUT


def escape_tags(text: str, *tags: str) -> str:
    """`text` in which nothing can be read as one of these tags, however it is written."""
    return re.sub(rf"<(?=[\s/]*(?:{'|'.join(tags)}))", "[", text, flags=re.IGNORECASE)
