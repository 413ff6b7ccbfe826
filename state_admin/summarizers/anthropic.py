"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from .chat import ChatModel, ChatReply, post
from .prompts import Prompt

_VERSION = "2023-06-01"


class Anthropic(ChatModel):
    """`POST {base_url}/v1/messages`."""

    name = "anthropic"

    def _ask(self, prompt: Prompt, most: int) -> dict[str, Any]:
        return post(
            self._provider,
            "/v1/messages",
            {"x-api-key": self._provider.api_key, "anthropic-version": _VERSION},
            {
                "model": self._model.upstream_model,
                "max_tokens": most,
                "system": prompt.system,
                "messages": [{"role": "user", "content": prompt.user}],
            },
        )

    def _read(self, answer: dict[str, Any]) -> ChatReply:
        blocks = answer["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        usage = answer.get("usage") or {}
        refused = answer.get("stop_reason") == "refusal"
        return ChatReply(text, usage.get("input_tokens"), usage.get("output_tokens"), refused)
