"""Fixtures of every test: three people (tests/builders.py) and an embedded PostgreSQL."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from project.env import BASE_DIR
from tests.builders import alice, bob, mallory

# Beside the data of `make run`, never in it. The server starts with the first connection, so this
# is early enough although pytest-django has read the settings already.
os.environ.setdefault("COMMONHOLD_DATA_DIR", str(BASE_DIR / ".data" / "test"))
# A cluster for each worker: an open transaction holds back the change feed of every database of
# its cluster, so workers that shared one would wait for each other's tests.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["COMMONHOLD_DATA_DIR"] += f"/{worker}"


# A pipeline repeats itself exactly; people and `make chaos` search anew each time.
settings.register_profile("pipeline", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("pipeline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="write pictures of all pages")


__all__ = ["alice", "bob", "mallory"]
