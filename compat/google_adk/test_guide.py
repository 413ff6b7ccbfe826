from __future__ import annotations

from guides import run_example, run_guide


def test_guide__python_blocks__run() -> None:
    run_guide("google-adk")


def test_example__without_a_model__runs() -> None:
    assert "trips so far: 2" in run_example("google_adk_sessions")
