"""Limits of a response that continues on the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from project import channel as channels
from project.channel import Answer, Channel
from tests.loops import run

STALLED = 0.2
FIRST = Answer(200, [], b"")


async def never(*_: Any) -> Any:
    await asyncio.Event().wait()


def make_channel(go_on: Any, send: Any) -> Channel:
    nothing: Any = None
    return Channel(FIRST, go_on, never, nothing, asyncio.Semaphore(1), never, send)


def test_send__client_does_not_read__response_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "STALLED_SECONDS", STALLED)
    ended: list[str] = []

    async def go_on(channel: Channel, first: Answer) -> None:
        try:
            await channel.send(b"part")
        finally:
            ended.append("cleaned up")

    async def play() -> None:
        await make_channel(go_on, never).run()

    run(play())
    assert ended == ["cleaned up"]


def test_send__long_pauses_between_parts__response_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "STALLED_SECONDS", STALLED)
    sent: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message.get("body", b""))

    async def go_on(channel: Channel, first: Answer) -> None:
        await channel.send(b"first")
        await asyncio.sleep(2 * STALLED)
        await channel.send(b"second")
        await channel.finish()

    async def play() -> None:
        await make_channel(go_on, send).run()

    run(play())
    assert sent == [b"", b"first", b"second", b""]
