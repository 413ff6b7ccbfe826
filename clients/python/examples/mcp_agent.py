"""An agent that works with state by MCP, as a model would: read, change, follow changes. Needs `pip install 'mcp>=2'`,
COMMONHOLD_URL and COMMONHOLD_TOKEN."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import TextContent

URL, TOKEN = os.environ["COMMONHOLD_URL"], os.environ["COMMONHOLD_TOKEN"]
NAMESPACE = "mcp_example"


async def call(mcp: Client, tool: str, arguments: dict[str, Any]) -> Any:
    """The result of a tool, as JSON. Raises RuntimeError for an error, whose text is for the
    model."""
    result = await mcp.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError([each.text for each in result.content if isinstance(each, TextContent)])
    return result.structured_content


async def work(mcp: Client) -> None:
    entry = {"namespace": NAMESPACE, "key": "mcp-example"}
    uri = f"commonhold://entry/{NAMESPACE}/mcp-example"
    async with mcp.listen(resource_subscriptions=[uri]) as changes:
        before = await call(mcp, "get_state", entry)
        expected = {"value": before["value"], "expected_version": before["version"]}
        written = await call(mcp, "put_state", {**entry, **expected, "reason": "example"})
        change = await anext(changes)
        assert isinstance(change, ResourceUpdated)  # the subscription is for this entry only
        sys.stdout.write(f"{change.uri} is at version {written['version']}\n")
    await call(mcp, "delete_state", {**entry, "reason": "example"})


async def main() -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as mcp,
    ):
        # People with the role admin register namespaces, not models.
        response = await http.put(f"{URL}/api/v1/namespaces/{NAMESPACE}", json={"default": {}})
        response.raise_for_status()
        await work(mcp)


asyncio.run(main())
