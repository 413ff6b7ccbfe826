from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commonhold import Commonhold
from fixtures import fresh_id as flow_id

# Before crewai is imported: no telemetry, no question about traces, and
# nothing in the home folder.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_TESTING": "true",
    "XDG_DATA_HOME": str(Path(__file__).parents[2] / ".compat" / "crewai-data"),
}

from commonhold.crewai import CommonholdFlowPersistence

__all__ = ["flow_id", "other", "other_process", "persistence", "state"]


@pytest.fixture
def state() -> Iterator[Commonhold]:
    with Commonhold.from_env() as client:
        yield client


@pytest.fixture
def other_process() -> Iterator[Commonhold]:
    """A client of its own, as another process has."""
    with Commonhold.from_env() as client:
        yield client


@pytest.fixture
def persistence(state: Commonhold) -> CommonholdFlowPersistence:
    return CommonholdFlowPersistence(state)


@pytest.fixture
def other(other_process: Commonhold) -> CommonholdFlowPersistence:
    return CommonholdFlowPersistence(other_process)
