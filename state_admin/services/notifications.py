"""Notifies the workers of a job. A lost notification only delays the job: sweeps find its row.

Services never import tasks; the app installs the notifier of the deployment at start (apps.py).
"""

from __future__ import annotations

from collections.abc import Callable

Notifier = Callable[..., None]

_notifier: Notifier | None = None


def install(notifier: Notifier) -> None:
    """Set the notifier. It is called with the name of a task and its arguments, waits for the
    commit itself, and never raises."""
    global _notifier
    _notifier = notifier


def notify_worker(task: str, *arguments: str) -> None:
    """Have a worker run `task` once the current transaction has committed."""
    if _notifier is not None:
        _notifier(task, *arguments)
