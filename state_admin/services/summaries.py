"""Chooses the summarizer, and whether it may be called now: a circuit breaker per model, and the
daily budget of the workspace.

Not here: what is summarized, and how the summary is used (compactions).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from project import tracing
from state_admin.domain.adapters import ADAPTERS as KNOWN
from state_admin.domain.adapters import find_adapter
from state_admin.domain.config import SCHEMAS, Kind
from state_admin.domain.policies import BY_MODEL, EXTRACTIVE, Policy
from state_admin.models import ModelCircuit, model_usage
from state_admin.models.config import find_agent_window
from state_admin.models.model_usage import Circuit
from state_admin.summarizers import (
    ADAPTERS,
    DEFAULT_SUMMARIZER,
    SUMMARIZERS,
    Model,
    Provider,
    Summarizer,
    Summary,
    SummaryFailed,
    SummaryRequest,
    Timeout,
    prompts,
)
from state_admin.summarizers.chat import PATIENCE

from . import config
from .config_secrets import find_provider_secret
from .errors import NotFound, Unreadable

# The reservation is this multiple of the estimated tokens, because a model may count more.
_DOUBT = 2
_TIMEOUT_SECS: Final[int] = SCHEMAS[Kind.PROVIDERS]["properties"]["timeout_secs"]["default"]

log = structlog.get_logger()


class Closed(SummaryFailed):
    """No call is permitted now. `until`: when it will be. None: never."""

    def __init__(self, message: str, until: datetime | None) -> None:
        super().__init__(message, retry=False)
        self.until = until


@dataclass(frozen=True)
class Engine:
    """A summarizer that is ready to be called. `provider` and `model` are set if it is a model."""

    summarizer: Summarizer
    provider: Provider | None = None
    model: Model | None = None

    @property
    def seconds(self) -> float:
        """How long a call may take."""
        return self.provider.timeout.total if self.provider else 0.0


def find_engine(workspace_id: int, policy: Policy) -> Engine:
    """The summarizer that a policy names. Raises SummaryFailed with what is not configured."""
    name = policy.summarizer or DEFAULT_SUMMARIZER
    if name in SUMMARIZERS:
        return Engine(SUMMARIZERS[name]())
    if name != BY_MODEL:
        raise SummaryFailed(f"unknown summarizer: {name}", retry=False)
    if not policy.summary_model:
        raise SummaryFailed("provider not configured: the policy sets no model", retry=False)
    provider, model = find_model(workspace_id, policy.summary_model)
    return Engine(ADAPTERS[provider.adapter](provider, model), provider, model)


def find_model(workspace_id: int, model_id: str) -> tuple[Provider, Model]:
    """A model of the config registry, and its provider with key and adapter.

    Raises SummaryFailed with what is missing or cannot be decrypted. It is not retried, because
    somebody has to fix it first.
    """
    try:
        model = config.find_spec(workspace_id, Kind.MODELS, model_id)
    except NotFound:
        raise SummaryFailed(f"provider not configured: {model_id}", retry=False) from None
    name = model["provider_id"]
    try:
        provider = config.find_spec(workspace_id, Kind.PROVIDERS, name)
        key = find_provider_secret(workspace_id=workspace_id, provider_id=name)
    except NotFound:
        raise SummaryFailed(f"provider not configured: {name}", retry=False) from None
    except Unreadable as unreadable:
        raise SummaryFailed(f"provider {name}: {unreadable.detail}", retry=False) from None
    adapter = find_adapter(provider["adapter"])
    if adapter is None:
        names = ", ".join(sorted(KNOWN))
        raise SummaryFailed(
            f"provider {name}: unknown adapter {provider['adapter']}; must be one of {names}",
            retry=False,
        )
    base_url = provider.get("base_url") or adapter.base_url
    if not base_url:
        raise SummaryFailed(f"provider {name}: base_url is not set", retry=False)
    return (
        Provider(name, adapter.dialect, base_url, key or "", _patience(provider)),
        Model(
            upstream_model=model["upstream_model"],
            context_window=model.get("context_window"),
            max_output_tokens=model.get("max_output_tokens"),
            input_price=_price(model.get("input_token_price_per_million_usd")),
            output_price=_price(model.get("output_token_price_per_million_usd")),
        ),
    )


def find_warning(engine: Engine) -> str:
    """What to know before this summarizer is called; "" if nothing."""
    model = engine.model
    if model is None or model.priced:
        return ""
    cap = f"the daily budget of ${settings.SUMMARY_DAILY_USD:.2f} cannot be enforced"
    return f"no price is set: the cost of {model.upstream_model} counts as $0, so {cap}"


def find_window(workspace_id: int, agent_id: str) -> tuple[int | None, int | None]:
    """The context window and the largest answer of an agent's model. None: unknown."""
    return find_agent_window(workspace_id, agent_id) if agent_id else (None, None)


def _patience(provider: Mapping[str, Any]) -> Timeout:
    """Return the timeout of the provider's configuration. It is also the read timeout, because a
    model may send nothing until its response is complete."""
    seconds = float(provider.get("timeout_secs", _TIMEOUT_SECS))
    return Timeout(connect=min(PATIENCE.connect, seconds), read=seconds, total=seconds)


def _price(price: float | None) -> Decimal | None:
    return None if price is None else Decimal(str(price))


def fallback_engine() -> Engine:
    return Engine(SUMMARIZERS[EXTRACTIVE]())


def ask(workspace_id: int, engine: Engine, request: SummaryRequest) -> Summary:
    """The summary. Raises SummaryFailed; Closed, before anything is sent, if the circuit of the
    model is open or the daily budget is spent. An internal error is a SummaryFailed that is not
    retried. Must be called outside any transaction."""
    if engine.provider is None or engine.model is None:
        with _failing():
            return engine.summarizer.summarize(request)
    provider, model = engine.provider, engine.model
    circuit = Circuit(workspace_id, provider.id, model.upstream_model[:128])
    with _failing():
        prompt = prompts.write(request, model.context_window)
    most = model.cost(prompt.tokens * _DOUBT, model.answer_tokens(request.max_tokens))
    with transaction.atomic():
        spending = _reserve(workspace_id, most)
        if not model_usage.admit(circuit, seconds=engine.seconds):
            raise _open(ModelCircuit.objects.get(**circuit._asdict()))
    try:
        with _failing(), _span(provider, model, request) as span:
            summary = engine.summarizer.summarize(request)
            span.set(
                {
                    "gen_ai.usage.input_tokens": summary.input_tokens,
                    "gen_ai.usage.output_tokens": summary.output_tokens,
                }
            )
    except SummaryFailed as failed:
        if failed.cost_usd is None:
            failed.cost_usd = most if failed.billed else Decimal(0)
        model_usage.settle(spending, reserved=most, cost=failed.cost_usd)
        if failed.blames:
            model_usage.note_failure(circuit, str(failed))
        else:  # the model responds, although the request failed: this does not open the circuit
            model_usage.note_success(circuit)
        raise
    model_usage.settle(spending, reserved=most, cost=summary.cost_usd)
    model_usage.note_success(circuit)
    return summary


def _span(
    provider: Provider, model: Model, request: SummaryRequest
) -> contextlib.AbstractContextManager[tracing.Span]:
    """A span by OpenTelemetry's semantic conventions for generative AI, without the prompt and the
    response."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.id,
        "gen_ai.request.model": model.upstream_model,
        "gen_ai.request.max_tokens": model.answer_tokens(request.max_tokens),
        "server.address": urlsplit(provider.base_url).hostname or "",
    }
    return tracing.span(f"chat {model.upstream_model}", attributes, kind="client")


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Convert any exception to SummaryFailed. Its message has only the type of the error, because
    it is shown to users and the text may contain data. The call counts as paid, because the model
    may have responded."""
    try:
        yield
    except SummaryFailed:
        raise
    except Exception as broken:
        log.exception("summary.failed")
        kind = type(broken).__name__
        raise SummaryFailed(
            f"the summarizer failed: {kind}", retry=False, blames=True, billed=True
        ) from broken


def _reserve(workspace_id: int, most: Decimal) -> int:
    cap = settings.SUMMARY_DAILY_USD
    spending = model_usage.reserve(workspace_id=workspace_id, cost=most, cap=cap)
    if spending is not None:
        return spending
    if most > cap:
        raise Closed(
            (
                f"cost cap: the summary could cost ${most:.2f}, more than the daily model budget "
                f"(${cap:.2f})"
            ),
            None,
        )
    raise Closed(
        f"cost cap: daily model budget (${cap:.2f}) exhausted; resets at 00:00 UTC",
        model_usage.next_day(),
    )


def _open(circuit: ModelCircuit) -> Closed:
    until = circuit.open_until or timezone.now()
    return Closed(
        f"circuit open: {circuit} failed {circuit.failures} times in a row; last error: "
        f"{circuit.last_error}; next attempt at {until:%H:%M:%S} UTC",
        until,
    )
