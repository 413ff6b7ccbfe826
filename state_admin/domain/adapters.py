"""The names of providers that people write as `adapter`, and how each is spoken to.

Not here: the dialects themselves (summarizers/).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Adapter:
    """A dialect, and where its vendor answers when the provider's `base_url` is not given."""

    dialect: str
    base_url: str = ""


_CHAT: Final = "openai_compatible"

ADAPTERS: Final[Mapping[str, Adapter]] = {
    _CHAT: Adapter(_CHAT),
    "openai": Adapter(_CHAT, "https://api.openai.com/v1"),
    "deepseek": Adapter(_CHAT, "https://api.deepseek.com"),
    "gemini": Adapter(_CHAT, "https://generativelanguage.googleapis.com/v1beta/openai"),
    "ollama": Adapter(_CHAT, "http://localhost:11434/v1"),
    "vllm": Adapter(_CHAT, "http://localhost:8000/v1"),
    "anthropic": Adapter("anthropic", "https://api.anthropic.com"),
}


def find_adapter(name: str) -> Adapter | None:
    """By name, however its words are capitalised and joined; None: nobody we can speak to."""
    return ADAPTERS.get(name.strip().lower().replace("-", "_").replace(" ", "_"))
