"""A real server of two processes: either may serve a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.mcp.asking import MCP
from tests.project.conftest import folder, start
from tests.project.running import Running
from tests.streams.listening import run_web_process

__all__ = ["folder", "start"]

MAX_BODY = 200_000


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Running]:
    env = {"WEB_WORKERS": "2", "WEB_THREADS": "2", "MAX_BODY_BYTES": str(MAX_BODY)}
    with run_web_process(tmp_path_factory.mktemp("mcp"), django_db_blocker, **env) as web:
        yield web


@pytest.fixture
def mcp(server: Running) -> MCP:
    return MCP(server.port)
