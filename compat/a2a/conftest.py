from __future__ import annotations

from fixtures import anyio_backend, state
from fixtures import fresh_id as owner

__all__ = ["anyio_backend", "owner", "state"]
