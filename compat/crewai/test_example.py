from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    printed = run_example("crewai_flow")
    assert "waits at draft: Lisbon in May" in printed
    assert "booked after: fine, book it" in printed
    assert "4: book" in printed
