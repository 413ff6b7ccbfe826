"""The ASGI application that uvicorn serves: native ASGI applications for streams, and the bridge to
Django for everything else."""

from __future__ import annotations

import asyncio
import functools
import importlib

from project.wsgi import application as django

# isort: split
# All other modules need the apps that the line above has loaded.

from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest

from project import log_context, tracing
from project.bodies import Headers, Limits
from project.bridge import Bridge, Stream
from project.channel import Message, Receive, Send, headers_of, send_answer
from project.lane import Lane, finish
from project.postgres.aio import connect
from project.postgres.sessions import Sessions
from state_admin.services import actors, token_cache
from state_admin.services.errors import Problem
from state_admin.services.traffic import counter
from state_admin.streams.client_counts import HUB_CONNECTION
from state_admin.streams.hub import ENVIRON, Hub
from state_admin.web.health import healthz

token_cache.cache.enabled = True

# Path prefix → native ASGI application, for responses that stay open. Checked before Django.
STREAMS: dict[str, Stream] = {}

HUB = Hub(functools.partial(connect, HUB_CONNECTION))


async def identify(headers: Headers) -> str:
    """Return the owner of the token in `headers`, or "" without a valid one. Agent Protocol clients
    send the token as `x-api-key`."""
    presented = headers.get(b"authorization", b"").decode("latin-1").partition(" ")[2].strip()
    token = presented or headers.get(b"x-api-key", b"").decode("latin-1")
    if not token:
        return ""
    credential = actors.cached_credential(token)
    actor = credential.actor if credential else None
    if actor is None:
        try:
            actor = await bridge.in_thread(lambda: actors.actor_of_token(token))
        # the request itself will fail in the same way and return a problem document
        except (DatabaseError, Problem):
            return ""
    return f"token:{actor.id}" if actor else ""


# After the fork, because a thread sends the spans.
tracing.start()

bridge = Bridge(
    django,
    streams=STREAMS,
    threads=settings.WEB_THREADS,
    limits=Limits(
        one=settings.MAX_BODY_BYTES,
        total=settings.BODY_MEMORY_BYTES,
        idle_seconds=settings.BODY_IDLE_SECONDS,
        min_rate=settings.BODY_MIN_RATE,
    ),
    identify=identify,
    trust_proxy=settings.TRUST_PROXY_HEADERS,
    # Lets views follow the change feed without a thread (state_admin/streams).
    environ={ENVIRON: HUB},
    chore=counter.flush,
)


bridge.lane = Lane(Sessions("commonhold lane").take).answer
application = tracing.trace_requests(bridge)


@functools.cache
def _mcp() -> Stream:
    build = importlib.import_module("state_admin.mcp.server").build
    mount: Stream = build(bridge, HUB)
    return mount


async def mcp(scope: Message, receive: Receive, send: Send) -> None:
    """The MCP endpoint. Importing the SDK takes half a second and thirty megabytes, so the first
    request does it."""
    if not _mcp.cache_info().currsize:
        await asyncio.to_thread(importlib.import_module, "state_admin.mcp.server")
    await _mcp()(scope, receive, send)


STREAMS["/mcp"] = mcp


async def answer_liveness(scope: Message, receive: Receive, send: Send) -> None:
    """/healthz, on the event loop: all threads may be waiting for a PostgreSQL that hangs."""
    request = HttpRequest()
    request.method = scope["method"]
    response = healthz(request)
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    headers = headers_of(response.headers)
    request_id = log_context.choose_request_id(given)
    await send_answer(finish(response.status_code, headers, response.content, request_id), send)


bridge.probes["/healthz"] = answer_liveness
