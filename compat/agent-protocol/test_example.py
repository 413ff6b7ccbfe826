from __future__ import annotations

from pathlib import Path

from examples import run_program

HERE = Path(__file__).parent


def test_example__without_a_model__runs() -> None:
    printed = run_program(HERE / "example.py").splitlines()
    assert printed == [
        "seat: {'prefers': 'window'}",
        "2: {'itinerary': ['fly', 'walk']}",
        "1: {'itinerary': ['fly']}",
    ]
