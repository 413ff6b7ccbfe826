"""No worker listens here: what would ring the doorbell is noted instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state_admin.services import doorbell


@pytest.fixture(autouse=True)
def rings() -> Iterator[list[tuple[str, ...]]]:
    """The bells that were rung: task and arguments."""
    rung: list[tuple[str, ...]] = []
    before = doorbell._ringer
    doorbell.install(lambda *call: rung.append(call))
    yield rung
    doorbell._ringer = before
