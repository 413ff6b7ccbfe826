from __future__ import annotations

from examples import run_example


def test_example__without_a_model__runs() -> None:
    assert run_example("langgraph_graph") == "Book Lisbon, aisle seat?\nbooked: True\nsteps: 4\n"
