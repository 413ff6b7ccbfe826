"""An agent that works with state by MCP, as a model would: look, change, be told. Needs `pip install mcp`,
COMMONHOLD_URL and COMMONHOLD_TOKEN."""

from __future__ import annotations

import asyncio
import os
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN = os.environ["COMMONHOLD_URL"], os.environ["COMMONHOLD_TOKEN"]
NAMESPACE = "mcp_example"


async def work(mcp: Client) -> None:
    place = {"namespace": NAMESPACE, "key": "mcp-example"}
    uri = f"commonhold://entry/{NAMESPACE}/mcp-example"
    async with mcp.listen(resource_subscriptions=[uri]) as changes:
        before = await mcp.call_tool("get_state", place)
        entry = before.structured_content
        written = await mcp.call_tool(
            "put_state",
            {
                **place,
                "value": entry["value"],
                "expected_version": entry["version"],
                "reason": "example",
            },
        )
        if written.is_error:
            sys.exit(written.content[0].text)
        change = await anext(changes)
        sys.stdout.write(f"{change.uri} is at version {written.structured_content['version']}\n")
    await mcp.call_tool("delete_state", {**place, "reason": "example"})


async def main() -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as mcp,
    ):
        # Namespaces are made by people with the role admin, not by models.
        response = await http.put(f"{URL}/api/v1/namespaces/{NAMESPACE}", json={"default": {}})
        response.raise_for_status()
        await work(mcp)


asyncio.run(main())
