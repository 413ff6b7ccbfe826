"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from . import chat, prompts
from .base import Summary, SummaryRequest
from .chat import ChatReply, Model, Provider

_VERSION = "2023-06-01"


class Anthropic:
    """`POST {base_url}/v1/messages`."""

    name = "anthropic"

    def __init__(self, provider: Provider, model: Model) -> None:
        self._provider = provider
        self._model = model

    def summarize(self, request: SummaryRequest) -> Summary:
        """Raises SummaryFailed."""
        prompt = prompts.write(request, self._model.context_window)
        answer = chat.post(
            self._provider,
            "/v1/messages",
            {"x-api-key": self._provider.api_key, "anthropic-version": _VERSION},
            {
                "model": self._model.upstream_model,
                "max_tokens": self._model.answer_tokens(request.max_tokens),
                "system": prompt.system,
                "messages": [{"role": "user", "content": prompt.user}],
            },
        )
        reply = self._read(answer)
        return chat.summary_of(self.name, self._model, reply, prompt.tokens, request.max_tokens)

    def _read(self, answer: dict[str, Any]) -> ChatReply:
        try:
            blocks = answer["content"]
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            usage = answer.get("usage") or {}
            refused = answer.get("stop_reason") == "refusal"
            return ChatReply(text, usage.get("input_tokens"), usage.get("output_tokens"), refused)
        except (LookupError, TypeError, AttributeError):
            raise chat.wrong_shape(self._provider) from None
