from __future__ import annotations

import os
from pathlib import Path

import httpx
from guides import run_guide, run_program

HERE = Path(__file__).parent


def test_guide__python_blocks__run() -> None:
    httpx.put(
        f"{os.environ['COMMONHOLD_URL']}/api/v1/state-keys/itinerary",
        json={"scope": "thread"},
        headers={"Authorization": f"Bearer {os.environ['COMMONHOLD_TOKEN']}"},
    ).raise_for_status()
    made = run_guide("agent-protocol")
    state = made["client"].threads.get_state(made["thread"]["thread_id"])
    assert state["values"] == {"itinerary": ["fly"]}


def test_example__without_a_model__runs() -> None:
    printed = run_program(HERE / "example.py").splitlines()
    assert printed == [
        "seat: {'prefers': 'window'}",
        "2: {'itinerary': ['fly', 'walk']}",
        "1: {'itinerary': ['fly']}",
    ]
