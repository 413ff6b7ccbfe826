"""Shared fixtures: an async client on asyncio, an id that is new in each test, and lost responses."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from commonhold import AsyncCommonhold


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def state() -> AsyncIterator[AsyncCommonhold]:
    async with AsyncCommonhold.from_env() as client:
        yield client


@pytest.fixture
def fresh_id() -> str:
    return f"compat-{uuid.uuid4().hex[:8]}"


def lose_response(state: AsyncCommonhold, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Simulate a lost connection: the server processes the next POST, but the client gets a ReadError.
    Returns a list to which the lost response is added."""
    request, lost = state._http.request, []

    async def lossy(**arguments: Any) -> httpx2.Response:
        answer = await request(**arguments)
        if not lost and arguments["method"] == "POST":
            lost.append(answer)
            raise httpx2.ReadError("the answer was lost")
        return answer

    monkeypatch.setattr(state._http, "request", lossy)
    return lost
