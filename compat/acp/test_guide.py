from __future__ import annotations

from guides import run_example, run_guide


def test_guide__python_blocks__run() -> None:
    run_guide("acp")


def test_example__without_a_model__runs() -> None:
    assert "heard again: Lisbon / I heard: Lisbon" in run_example("acp_sessions")
