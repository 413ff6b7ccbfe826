"""Celery: take an id, call a service, decide on retry; nothing else."""

from __future__ import annotations

from . import compaction, mailbox, maintenance, webhooks

__all__ = ["compaction", "mailbox", "maintenance", "webhooks"]
