"""The names of providers that users write, and the protocol of each."""

from __future__ import annotations

import pytest

from state_admin import egress
from state_admin.domain.adapters import ADAPTERS, find_adapter
from state_admin.summarizers import ADAPTERS as DIALECTS


@pytest.mark.parametrize(
    ("name", "dialect", "base_url"),
    [
        ("openai", "openai_compatible", "https://api.openai.com/v1"),
        ("OpenAI", "openai_compatible", "https://api.openai.com/v1"),
        ("deepseek", "openai_compatible", "https://api.deepseek.com"),
        ("gemini", "openai_compatible", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("ollama", "openai_compatible", "http://localhost:11434/v1"),
        ("vLLM", "openai_compatible", "http://localhost:8000/v1"),
        ("openai-compatible", "openai_compatible", ""),
        ("OpenAI compatible", "openai_compatible", ""),
        ("openai_compatible", "openai_compatible", ""),
        (" Anthropic ", "anthropic", "https://api.anthropic.com"),
    ],
)
def test_adapter__any_spelling_of_its_name__is_known(
    name: str, dialect: str, base_url: str
) -> None:
    found = find_adapter(name)
    assert found is not None
    assert (found.dialect, found.base_url) == (dialect, base_url)


@pytest.mark.parametrize("name", ["", "smoke-signals", "open ai"])
def test_adapter__unknown_name__is_none(name: str) -> None:
    assert find_adapter(name) is None


def test_adapters__each__has_a_known_protocol_and_a_valid_url() -> None:
    for adapter in ADAPTERS.values():
        assert adapter.dialect in DIALECTS
        if adapter.base_url:
            egress.check_url(adapter.base_url, allow_private=True)
