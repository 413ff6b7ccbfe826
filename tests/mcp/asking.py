"""Clients of /mcp: the official one with both protocol versions, and plain POSTs for invalid
requests."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from tests.loops import run
from tests.patience import PATIENCE

SESSIONS, STATELESS = "legacy", "2026-07-28"
ERAS = (SESSIONS, STATELESS)


@dataclass(frozen=True)
class MCP:
    port: int

    @asynccontextmanager
    async def client(self, token: str, era: str = STATELESS) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
            transport = streamable_http_client(
                f"http://127.0.0.1:{self.port}/mcp", http_client=http
            )
            async with Client(transport, mode=era) as client:
                yield client

    def do(self, token: str, work: Callable[[Client], Awaitable[Any]], era: str = STATELESS) -> Any:
        async def go() -> Any:
            async with self.client(token, era) as client:
                try:
                    return await work(client)
                except MCPError as error:  # outside the task groups of the client
                    return error

        result = run(go())
        if isinstance(result, MCPError):
            raise result
        return result

    def call(self, token: str, tool: str, era: str = STATELESS, **arguments: Any) -> CallToolResult:
        result: CallToolResult = self.do(token, lambda c: c.call_tool(tool, arguments), era)
        return result

    def post(
        self, body: bytes, token: str = "", method: str = "POST", path: str = "/mcp", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"Authorization": f"Bearer {token}"} if token else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def raw(self, token: str, tool: str, arguments: str, **headers: str) -> dict[str, Any]:
        """A tools/call with this text as its arguments; returns a problem or a result."""
        params = '{"name":"%s","arguments":%s}' % (tool, arguments)  # noqa: UP031
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
        status, _, content = self.post(body.encode(), token, **headers)
        assert status == 200, content
        told: dict[str, Any] = json.loads(json.loads(content)["result"]["content"][0]["text"])
        return told


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def problem_of(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error, result
    told: dict[str, Any] = json.loads(text_of(result))
    return told


def pointers(problem: dict[str, Any]) -> set[str]:
    return {fault["pointer"] for fault in problem["errors"]}
