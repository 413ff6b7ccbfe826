"""The Chat Completions API of OpenAI, DeepSeek, Gemini, Ollama, vLLM and many others."""

from __future__ import annotations

from typing import Any

from . import chat, prompts
from .base import Summary, SummaryRequest
from .chat import ChatReply, Model, Provider, Refusal


class OpenAICompatible:
    """`POST {base_url}/chat/completions`."""

    name = "openai_compatible"

    def __init__(self, provider: Provider, model: Model) -> None:
        self._provider = provider
        self._model = model

    def summarize(self, request: SummaryRequest) -> Summary:
        """Raises SummaryFailed."""
        prompt = prompts.write(request, self._model.context_window)
        body = {
            "model": self._model.upstream_model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }
        most = self._model.answer_tokens(request.max_tokens)
        try:
            answer = self._ask({**body, "max_tokens": most})
        except Refusal as refusal:
            # OpenAI's newer models accept only max_completion_tokens; other models only max_tokens.
            if refusal.parameter != "max_tokens":
                raise
            answer = self._ask({**body, "max_completion_tokens": most})
        reply = self._read(answer)
        return chat.summary_of(self.name, self._model, reply, prompt.tokens, request.max_tokens)

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        key = self._provider.api_key
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return chat.post(self._provider, "/chat/completions", headers, body)

    def _read(self, answer: dict[str, Any]) -> ChatReply:
        try:
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
        except (LookupError, TypeError, AttributeError):
            raise chat.wrong_shape(self._provider) from None
