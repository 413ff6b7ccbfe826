"""Language models for summaries: the summarizers by name."""

from __future__ import annotations

from collections.abc import Callable

from state_admin.domain.policies import EXTRACTIVE
from state_admin.egress import Timeout

from . import prompts
from .anthropic import Anthropic
from .base import Summarizer, Summary, SummaryFailed, SummaryRequest
from .chat import Model, Provider
from .extractive import ExtractiveSummarizer
from .openai_compatible import OpenAICompatible

SUMMARIZERS: dict[str, Callable[[], Summarizer]] = {EXTRACTIVE: ExtractiveSummarizer}
DEFAULT_SUMMARIZER = EXTRACTIVE
# By the `adapter` of a provider's configuration.
ADAPTERS: dict[str, Callable[[Provider, Model], Summarizer]] = {
    "openai_compatible": OpenAICompatible,
    "anthropic": Anthropic,
}

__all__ = [
    "Model",
    "Provider",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRequest",
    "Timeout",
    "prompts",
]
