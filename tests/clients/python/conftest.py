"""The Python client from the source tree, and a real server for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from project.env import BASE_DIR

sys.path.insert(0, str(BASE_DIR / "clients" / "python" / "src"))

from commonhold import Commonhold, Retries

from tests.builders import Person
from tests.project.conftest import folder, start
from tests.project.running import Running
from tests.streams.conftest import web

__all__ = ["folder", "start", "web"]

# Retries with pauses too short to slow a test down.
SWIFT = Retries(first=0.001, longest=0.01)


@pytest.fixture
def state(web: Running, alice: Person) -> Iterator[Commonhold]:
    with Commonhold(f"http://127.0.0.1:{web.port}", alice.token, retries=SWIFT) as client:
        yield client
