"""An async client on asyncio, for suites that import it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from statehouse import AsyncStatehouse


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def state() -> AsyncIterator[AsyncStatehouse]:
    async with AsyncStatehouse.from_env() as client:
        yield client
