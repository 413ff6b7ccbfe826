"""Celery tasks: each takes an id, calls a service and decides about a retry."""

from __future__ import annotations

from . import compaction, reverts, sweeps, webhooks

__all__ = ["compaction", "reverts", "sweeps", "webhooks"]
