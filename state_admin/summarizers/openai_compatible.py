"""The Chat Completions API of OpenAI, DeepSeek, Gemini, Ollama, vLLM and many others."""

from __future__ import annotations

from typing import Any

from .chat import ChatModel, ChatReply, Refusal, post
from .prompts import Prompt


class OpenAICompatible(ChatModel):
    """`POST {base_url}/chat/completions`."""

    name = "openai_compatible"

    def _ask(self, prompt: Prompt, most: int) -> dict[str, Any]:
        body = {
            "model": self._model.upstream_model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }
        try:
            return self._post({**body, "max_tokens": most})
        except Refusal as refusal:
            # OpenAI's newer models accept only max_completion_tokens; other models only max_tokens.
            if refusal.parameter != "max_tokens":
                raise
            return self._post({**body, "max_completion_tokens": most})

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        key = self._provider.api_key
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return post(self._provider, "/chat/completions", headers, body)

    def _read(self, answer: dict[str, Any]) -> ChatReply:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        usage = answer.get("usage") or {}
        refused = message.get("refusal") or choice.get("finish_reason") == "content_filter"
        return ChatReply(
            content + "",
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            bool(refused),
        )
