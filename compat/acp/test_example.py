from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    assert "heard again: Lisbon / I heard: Lisbon" in run_example("acp_sessions")
