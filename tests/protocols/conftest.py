"""A real server for the tests of the protocols' streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.project.running import Running
from tests.protocols.listening import Reader
from tests.streams.conftest import folder, start, web

__all__ = ["folder", "start", "web"]


@pytest.fixture
def open_stream(web: Running) -> Iterator[Callable[..., Reader]]:
    opened: list[Reader] = []

    def begin(token: str, path: str, body: Any = None, **options: Any) -> Reader:
        opened.append(Reader(web.port, token, path, body, **options))
        return opened[-1]

    yield begin
    for reader in opened:
        reader.close()
