"""The interface of summarizers. Not here: when and what is summarized (services)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol


@dataclass(frozen=True)
class SummaryRequest:
    """Messages in order as they were stored (`content` is text, None or a list of blocks), the text
    of the previous summary, the maximum length of the new one in estimated tokens, and the
    instructions of a policy ("": the built-in ones)."""

    messages: list[dict[str, Any]]
    previous_summary: str | None
    max_tokens: int
    instructions: str = ""


@dataclass(frozen=True)
class Summary:
    """A summary of the messages and of the previous summary, which it replaces.

    `text` is without the `<conversation-summary>` tags; tokens are as the summarizer counts them;
    `model` is "" if no model was called.
    """

    text: str
    summarizer: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal


class SummaryFailed(Exception):
    """There is no summary. `str(e)` may be shown and stored, so it contains no secret.

    `quote` is the provider's error message, for readers of this conversation only. `retry`: another
    attempt may succeed, not before `after` seconds. `blames`: the provider or its configuration
    failed, not this conversation. `billed`: the model did respond; it used so many tokens, and
    `cost_usd`, None if unknown.
    """

    def __init__(
        self,
        message: str,
        quote: str = "",
        *,
        retry: bool = True,
        after: float | None = None,
        blames: bool = False,
        billed: bool = False,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: Decimal | None = None,
    ) -> None:
        super().__init__(message)
        self.quote = quote
        self.retry = retry
        self.after = after
        self.blames = blames
        self.billed = billed
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.cost_usd = cost_usd


class Summarizer(Protocol):
    """A summarizer. Called outside any transaction; may block, keeps no state."""

    name: str

    def summarize(self, request: SummaryRequest) -> Summary:
        """Raises SummaryFailed."""
        ...
