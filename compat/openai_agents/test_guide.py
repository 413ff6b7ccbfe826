from __future__ import annotations

from guides import run_example, run_guide


def test_guide__python_blocks__run() -> None:
    run_guide("openai-agents")


def test_example__without_a_model__runs() -> None:
    assert "Why? -> The light. (the model saw 3 items)" in run_example("openai_agents_session")
