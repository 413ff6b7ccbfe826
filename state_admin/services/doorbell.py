"""Wakes a background job by name. Losing a ring only delays: sweeps find the row.

Services never import tasks; the app installs the deployment's bell at start (apps.py).
"""

from __future__ import annotations

from collections.abc import Callable

Ringer = Callable[..., None]

_ringer: Ringer | None = None


def install(ringer: Ringer) -> None:
    """Set what rings: called with a task's name and its arguments; waits for the commit itself
    and never raises."""
    global _ringer
    _ringer = ringer


def ring(task: str, *arguments: str) -> None:
    """Wake `task` once the present transaction has committed."""
    if _ringer is not None:
        _ringer(task, *arguments)
