"""Servers that are not Commonhold, and responses that are cut or have no end."""

from __future__ import annotations

import pytest
from commonhold import AsyncCommonhold, Commonhold, Unreachable

from tests.clients.python.responding import responding
from tests.loops import run

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>"


def test_watch__page_of_another_server__is_an_error_although_the_page_has_no_end() -> None:
    message = r"/api/v1/changes/stream is not a stream \(200, text/html, begins with '<html>'\)"

    async def follow(url: str) -> None:
        async with AsyncCommonhold(url, "t") as state:
            await anext(state.watch(key="k"))

    with responding(PAGE, end=False) as (url, _):
        with Commonhold(url, "t") as state, pytest.raises(Unreachable, match=message):
            next(state.watch(key="k"))
        with pytest.raises(Unreachable, match=message):
            run(follow(url))
