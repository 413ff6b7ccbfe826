"""An async client on asyncio, for suites that import it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from commonhold import AsyncCommonhold


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def state() -> AsyncIterator[AsyncCommonhold]:
    async with AsyncCommonhold.from_env() as client:
        yield client
