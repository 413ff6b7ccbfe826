from __future__ import annotations

import uuid

import pytest
from fixtures import anyio_backend, state

__all__ = ["anyio_backend", "state"]


@pytest.fixture
def app_name() -> str:
    return f"compat-{uuid.uuid4().hex[:8]}"
