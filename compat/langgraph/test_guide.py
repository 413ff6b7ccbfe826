from __future__ import annotations

from guides import run_example, run_guide


def test_guide__python_blocks__run() -> None:
    run_guide("langgraph")


def test_example__without_a_model__runs() -> None:
    assert run_example("langgraph_graph") == "Book Lisbon, aisle seat?\nbooked: True\nsteps: 4\n"
