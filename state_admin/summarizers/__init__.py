"""The port to the outside world of models: who can summarise, by name."""

from __future__ import annotations

from collections.abc import Callable

from .base import Summarizer, Summary, SummaryFailed, SummaryRequest
from .extractive import ExtractiveSummarizer

SUMMARIZERS: dict[str, Callable[[], Summarizer]] = {"extractive": ExtractiveSummarizer}

DEFAULT_SUMMARIZER = "extractive"

__all__ = [
    "DEFAULT_SUMMARIZER",
    "SUMMARIZERS",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRequest",
]
