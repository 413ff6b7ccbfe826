"""Calls a model over HTTP: the part that all APIs share. Each API has a module beside this one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import orjson
from django.conf import settings

from state_admin import egress
from state_admin.domain import retries, summaries
from state_admin.egress import Timeout

from . import prompts
from .base import Summary, SummaryFailed, SummaryRequest

# The response contains a summary, some numbers, and possibly a model's reasoning.
MOST_ANSWER: Final = 4 * 1024 * 1024
PATIENCE: Final = Timeout(connect=5.0, read=120.0, total=180.0)
_MOST_QUOTED: Final = 300
_MOST_TOKENS: Final = 1 << 31
_KEY: Final = re.compile(r"[\x21-\x7e]*")
_MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Provider:
    """The provider of a model. `base_url` ends before the path of the API, as vendors document
    it."""

    id: str
    adapter: str
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: Timeout = PATIENCE


@dataclass(frozen=True)
class Model:
    """A model of a provider. Prices in USD per million tokens; None means unknown and counts as
    0."""

    upstream_model: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    input_price: Decimal | None = None
    output_price: Decimal | None = None

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        """The cost in USD, rounded to a millionth."""
        priced = input_tokens * (self.input_price or 0) + output_tokens * (self.output_price or 0)
        return (Decimal(priced) / _MILLION).quantize(Decimal("0.000001"))

    @property
    def priced(self) -> bool:
        return self.input_price is not None and self.output_price is not None

    def answer_tokens(self, requested: int) -> int:
        return min(requested, self.max_output_tokens or requested)


@dataclass(frozen=True)
class ChatReply:
    """The response of a model; tokens are None if it does not report them. `refused`: the model
    declined."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    refused: bool = False


class Refusal(SummaryFailed):
    """A response other than 200. `parameter`: the parameter that it names as the cause."""

    parameter: str = ""


def post(provider: Provider, path: str, headers: Mapping[str, str], body: Any) -> dict[str, Any]:
    """The JSON object in the provider's response. Raises SummaryFailed for anything else."""
    who = f"provider {provider.id}"
    if not _KEY.fullmatch(provider.api_key):
        raise SummaryFailed(f"{who}: its API key cannot be sent", retry=False, blames=True)
    try:
        reply = egress.post(
            provider.base_url.rstrip("/") + path,
            orjson.dumps(body),
            {
                "content-type": "application/json",
                "accept": "application/json",
                "accept-encoding": "identity",
                "user-agent": "Commonhold/1",
                **headers,
            },
            seconds=provider.timeout,
            allow_private=settings.WEBHOOK_ALLOW_PRIVATE,
            most=MOST_ANSWER,
        )
    except egress.Refused as refused:
        raise SummaryFailed(f"{who}: {refused}", retry=False, blames=True) from refused
    except egress.Failed as failed:
        raise SummaryFailed(f"{who}: {failed}", blames=True) from failed
    if reply.status != 200:
        raise _refusal(provider, reply)
    if not _is_json(reply):
        kind = reply.content_type or "no content type"
        raise SummaryFailed(
            f"{who} returned {kind} instead of JSON; check its base_url",
            retry=False,
            blames=True,
        )
    answer = _parsed(reply.body)
    if not isinstance(answer, dict):
        raise SummaryFailed(f"{who} returned JSON that is not an object", blames=True)
    if answer.get("error"):
        quote = _quoted(provider, answer)
        raise SummaryFailed(f"{who} returned 200 with an error", quote, blames=True)
    return answer


class ChatModel:
    """A summarizer that asks a model. A class of each API sends the prompt and reads the response."""

    name: str

    def __init__(self, provider: Provider, model: Model) -> None:
        self._provider = provider
        self._model = model

    def summarize(self, request: SummaryRequest) -> Summary:
        """Raises SummaryFailed."""
        prompt = prompts.write(request, self._model.context_window)
        answer = self._ask(prompt, self._model.answer_tokens(request.max_tokens))
        try:
            reply = self._read(answer)
        except (LookupError, TypeError, AttributeError):
            raise SummaryFailed(
                f"provider {self._provider.id} returned JSON of an unexpected shape; check its adapter",
                retry=False,
                blames=True,
                billed=True,
            ) from None
        # The text of a model is data (ADR 11).
        text = summaries.clean(reply.text, request.max_tokens)
        spent = _counted(reply.input_tokens, prompt.tokens)
        written = _counted(reply.output_tokens, request.max_tokens)
        cost = self._model.cost(spent, written)
        if reply.refused or not text:
            raise SummaryFailed(
                "the model refused to summarise this"
                if reply.refused
                else "empty summary returned",
                retry=not reply.refused,
                billed=True,
                input_tokens=spent,
                output_tokens=written,
                cost_usd=cost,
            )
        return Summary(text, self.name, self._model.upstream_model[:128], spent, written, cost)

    def _ask(self, prompt: prompts.Prompt, most: int) -> dict[str, Any]:
        raise NotImplementedError

    def _read(self, answer: dict[str, Any]) -> ChatReply:
        raise NotImplementedError


def _counted(count: Any, otherwise: int) -> int:
    return count if type(count) is int and 0 <= count < _MOST_TOKENS else otherwise


def _refusal(provider: Provider, reply: egress.Reply) -> SummaryFailed:
    status = reply.status
    message = f"provider {provider.id} returned {status}"
    if 300 <= status < 400:
        return Refusal(
            f"{message}: redirects are not followed; configure the final base_url",
            retry=False,
            blames=True,
        )
    answer = _parsed(reply.body) if _is_json(reply) else None
    quote = _quoted(provider, answer)
    if status in (408, 429) or status >= 500 or status < 300:
        after = retries.requested_seconds(reply.retry_after, time.time())
        return Refusal(message, quote, after=after, blames=True)
    refusal = Refusal(message, quote, retry=False, blames=status in (401, 402, 403, 404, 405))
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        refusal.parameter = str(answer["error"].get("param"))
    return refusal


def _is_json(reply: egress.Reply) -> bool:
    return reply.content_type == "application/json" or reply.content_type.endswith("+json")


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _quoted(provider: Provider, answer: Any) -> str:
    """The error's message in one short line, without the API key."""
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    message = error.get("message", error.get("detail")) if isinstance(error, dict) else error
    if not isinstance(message, str):
        return ""
    if provider.api_key:
        message = message.replace(provider.api_key, "***")
    line = " ".join(summaries.clean(message, _MOST_QUOTED).split())
    return line[:_MOST_QUOTED]
