from __future__ import annotations

from fixtures import anyio_backend, state
from fixtures import fresh_id as session_id

__all__ = ["anyio_backend", "session_id", "state"]
