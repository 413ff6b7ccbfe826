"""No worker runs here: job notifications are recorded instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state_admin.services import notifications


@pytest.fixture(autouse=True)
def sent_notifications() -> Iterator[list[tuple[str, ...]]]:
    """The notifications: task and arguments."""
    notified: list[tuple[str, ...]] = []
    previous = notifications._notifier
    notifications.install(lambda *call: notified.append(call))
    yield notified
    notifications._notifier = previous
