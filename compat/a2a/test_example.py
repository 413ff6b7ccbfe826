from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    assert "Lisbon. -> Booked." in run_example("a2a_tasks")
