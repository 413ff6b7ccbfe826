"""The application that granian serves: streams natively, everything else through the bridge."""

from __future__ import annotations

import asyncio
import functools
import importlib

from django.conf import settings

from project.bridge import Bridge, Stream
from project.channel import Message, Receive, Send
from project.postgres.aio import connect
from project.wsgi import application as django
from state_admin.services import token_cache
from state_admin.services.traffic import counter
from state_admin.streams.hub import ENVIRON, Hub

token_cache.cache.enabled = True

# Path prefix → native ASGI application, for answers that stay open. Asked before Django.
STREAMS: dict[str, Stream] = {}

HUB = Hub(functools.partial(connect, "commonhold feed"))

application = Bridge(
    django,
    streams=STREAMS,
    threads=settings.WEB_THREADS,
    max_body=settings.MAX_BODY_BYTES,
    trust_proxy=settings.TRUST_PROXY_HEADERS,
    # What lets views follow the change feed without a thread (state_admin/api/waiting.py).
    environ={ENVIRON: HUB},
    chore=counter.flush,
)


@functools.cache
def _mcp() -> Stream:
    build = importlib.import_module("state_admin.mcp.server").build
    mount: Stream = build(application, HUB)
    return mount


async def mcp(scope: Message, receive: Receive, send: Send) -> None:
    """The SDK is half a second of imports and thirty megabytes: not before somebody asks."""
    if not _mcp.cache_info().currsize:
        await asyncio.to_thread(importlib.import_module, "state_admin.mcp.server")
    await _mcp()(scope, receive, send)


STREAMS["/mcp"] = mcp
