from __future__ import annotations

from fixtures import anyio_backend, state

__all__ = ["anyio_backend", "state"]
