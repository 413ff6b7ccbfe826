"""The names of providers that users write as `adapter`, and the protocol of each.

Not here: the protocols themselves (summarizers/).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Adapter:
    """A protocol, and the vendor's URL, used if the provider has no `base_url`."""

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
    """The adapter by name, ignoring case and whether words are joined by spaces, `-` or `_`. None
    if it is unknown."""
    return ADAPTERS.get(name.strip().lower().replace("-", "_").replace(" ", "_"))
