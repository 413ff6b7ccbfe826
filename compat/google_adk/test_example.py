from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    assert "trips so far: 2" in run_example("google_adk_sessions")
