"""How much text of a run a page shows: long texts are shortened, and what does not fit is behind a link."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import escape

CLIP = 1200  # characters of arguments and of a result
# Escaped bytes of texts on a page. What does not fit is behind a link.
_MOST_BYTES = 110_000
# Bytes of markup around a text.
_MARKUP = 350


@dataclass(frozen=True)
class TraceText:
    """A text, perhaps shortened."""

    text: str
    clipped: bool = False


class TextBudget:
    """The bytes left on the page."""

    def __init__(self) -> None:
        self.left = _MOST_BYTES

    def text(self, text: str) -> TraceText:
        """As much of the text as may be shown; nothing of it if the budget is used up."""
        excerpt = text[:CLIP]
        self.left -= len(escape(excerpt).encode())
        if self.left < 0:
            return TraceText("", clipped=bool(text))
        return TraceText(excerpt, clipped=len(text) > CLIP)

    def has(self, *texts: str) -> bool:
        self.left -= _MARKUP + sum(len(escape(text).encode()) for text in texts)
        return self.left >= 0
