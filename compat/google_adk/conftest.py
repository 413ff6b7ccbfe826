from __future__ import annotations

from fixtures import anyio_backend, state
from fixtures import fresh_id as app_name

__all__ = ["anyio_backend", "app_name", "state"]
