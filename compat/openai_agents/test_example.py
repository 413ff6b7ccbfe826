from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    assert "Why? -> The light. (the model saw 3 items)" in run_example("openai_agents_session")
