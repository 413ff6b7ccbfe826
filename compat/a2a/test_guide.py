from __future__ import annotations

from guides import run_example, run_guide


def test_guide__python_blocks__run() -> None:
    run_guide("a2a")


def test_example__without_a_model__runs() -> None:
    assert "Lisbon. -> Booked." in run_example("a2a_tasks")
