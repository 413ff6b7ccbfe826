"""An MCP server as an ASGI application: the access check, then both versions of the transport.

Does not depend on Django, so that the server of the conformance suite can use it too (compat/mcp).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from state_admin.contract.base import PROBLEM_TYPE
from state_admin.services.errors import MethodNotAllowed, NotFound, Problem
from state_admin.services.problem_statuses import problem_of_status

from .host import Caller, Message, Receive, Send

Gate = Callable[[Message], Awaitable[Any]]

PATH = "/mcp"
# Seconds after which a client that does not read is disconnected.
_STALLED = 60.0


class Mount:
    """Serves `server` at PATH to requests for which `gate` returns None and not a refusal
    (gate.py).

    `sessions`: keep the sessions of the older protocol versions, in this process. Without it each
    request is independent and can be served by any process, and the response to a call is plain
    JSON.
    """

    def __init__(
        self, server: Server[Any], gate: Gate, *, max_body: int, sessions: bool = False
    ) -> None:
        self.gate, self.sessions = gate, sessions
        self.manager = StreamableHTTPSessionManager(
            server,
            stateless=not sessions,
            json_response=not sessions,
            max_request_body_size=max_body,
        )
        self._life: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["path"].removesuffix("/") != PATH:
            return await refuse(send, NotFound("path not found"), uuid.uuid4().hex)
        refusal = await self.gate(scope)
        if refusal is not None:
            return await refuse(send, refusal.problem, refusal.request_id, refusal.headers)
        if scope["method"] != "POST" and not self.sessions:
            request_id = scope[Caller.KEY].actor.request_id
            problem = MethodNotAllowed(
                f"{scope['method']} is not allowed on {PATH}",
                hint="Send POST: there are no sessions.",
            )
            return await refuse(send, problem, request_id, {"allow": "POST"})
        await self._live()
        return await self.manager.handle_request(scope, receive, _patient(scope, send))

    async def _live(self) -> None:
        """Start the session manager with the first request. It runs until the process ends."""
        if self._life is None:

            async def live() -> None:
                async with self.manager.run():
                    self._ready.set()
                    await asyncio.Event().wait()

            self._life = asyncio.get_running_loop().create_task(
                live(), name="mcp", context=contextvars.Context()
            )
        await self._ready.wait()


async def refuse(
    send: Send, problem: Problem, request_id: str, headers: Mapping[str, str] | None = None
) -> None:
    """Send a problem document (RFC 9457) as the response."""
    body = json.dumps(problem.document(request_id)).encode()
    fields = {
        "content-type": PROBLEM_TYPE,
        "content-length": str(len(body)),
        "x-request-id": request_id,
        **(headers or {}),
    }
    encoded = [(name.encode(), text.encode()) for name, text in fields.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _patient(scope: Message, send: Send) -> Send:
    """`send` with a timeout for clients that do not read, and with the id of the request. An error
    that the SDK reports in plain text becomes a problem document."""
    caller = scope.get(Caller.KEY)
    request_id = caller.actor.request_id if caller is not None else uuid.uuid4().hex
    failed: Message | None = None
    text = bytearray()

    async def sending(message: Message) -> None:
        nonlocal failed
        if message["type"] == "http.response.start" and _is_plain_error(message):
            failed = message
            return
        if failed:
            text.extend(message.get("body", b""))
            if not message.get("more_body"):
                await _refuse_plain(send, failed, text.decode(errors="replace"), request_id)
            return
        if message["type"] == "http.response.start" and caller is not None:
            header = (b"x-request-id", caller.actor.request_id.encode())
            message = {**message, "headers": [*message["headers"], header]}
        async with asyncio.timeout(_STALLED):
            await send(message)

    return sending


def _is_plain_error(start: Message) -> bool:
    kind = dict(start.get("headers", ())).get(b"content-type", b"")
    return start["status"] >= 400 and not kind.startswith(b"application/")


async def _refuse_plain(send: Send, start: Message, text: str, request_id: str) -> None:
    problem = problem_of_status(start["status"], text or HTTPStatus(start["status"]).phrase)
    allow = dict(start["headers"]).get(b"allow")
    async with asyncio.timeout(_STALLED):
        await refuse(send, problem, request_id, {"allow": allow.decode()} if allow else None)
