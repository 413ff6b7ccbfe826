"""The official Python client against the running server, with and without sessions."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextResourceContents

URL, TOKEN = os.environ["COMMONHOLD_URL"], os.environ["COMMONHOLD_TOKEN"]
ERAS = ("legacy", "2026-07-28")
NAMESPACE = f"mcp.{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module", autouse=True)
def namespace() -> None:
    api("PUT", f"/namespaces/{NAMESPACE}", {"default": {"count": 0}})


def api(method: str, path: str, body: object) -> None:
    request = urllib.request.Request(
        f"{URL}/api/v1{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        method=method,
    )
    urllib.request.urlopen(request, timeout=30).close()


@asynccontextmanager
async def client(era: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    # The first call of a server process imports the SDK.
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{URL}/mcp", http_client=http)
        async with Client(transport, mode=era) as connected:
            yield connected


@pytest.mark.parametrize("era", ERAS)
def test_a_value_is_written_read_and_restored(era: str) -> None:
    async def go() -> None:
        place = {"namespace": NAMESPACE, "key": f"thread::{era}"}
        async with client(era) as mcp:
            first = await mcp.call_tool("put_state", {**place, "value": {"count": 1}})
            await mcp.call_tool("patch_state", {**place, "patch": {"count": 2}})
            late = await mcp.call_tool(
                "put_state", {**place, "value": {}, "expected_version": 1, "reason": "too late"}
            )
            await mcp.call_tool("restore_state", {**place, "version": 1})
            now = await mcp.call_tool("get_state", place)
        assert first.structured_content["version"] == 1
        assert late.is_error
        assert (now.structured_content["value"], now.structured_content["version"]) == (
            {"count": 1},
            3,
        )

    asyncio.run(go())


@pytest.mark.parametrize("era", ERAS)
def test_a_hundred_concurrent_increments_lose_nothing(era: str) -> None:
    async def go() -> None:
        place = {"namespace": NAMESPACE, "key": f"count::{era}"}
        add = {**place, "kind": "update", "patch": {"op": "add", "path": "/count", "value": 1}}
        async with client(era) as mcp:
            made = await asyncio.gather(*(mcp.call_tool("patch_state", add) for _ in range(100)))
            now = await mcp.call_tool("get_state", place)
        assert not any(result.is_error for result in made)
        assert now.structured_content["value"] == {"count": 100}

    asyncio.run(go())


@pytest.mark.parametrize("era", ERAS)
def test_an_entry_is_a_resource(era: str) -> None:
    async def go() -> None:
        api("PUT", f"/state/{NAMESPACE}/a%2Fb", {"value": [1, 2]})
        async with client(era) as mcp:
            listed = [resource.uri for resource in (await mcp.list_resources()).resources]
            uri = f"commonhold://entry/{NAMESPACE}/a%2Fb"
            held = (await mcp.read_resource(uri)).contents[0]
        assert uri in listed
        assert isinstance(held, TextResourceContents)
        assert json.loads(held.text) == [1, 2]

    asyncio.run(go())


def test_a_change_made_elsewhere_is_told_to_who_subscribed() -> None:
    async def go() -> None:
        uri = f"commonhold://entry/{NAMESPACE}/watched"
        async with client("2026-07-28") as mcp, mcp.listen(resource_subscriptions=[uri]) as told:
            await asyncio.to_thread(api, "PUT", f"/state/{NAMESPACE}/watched", {"value": 1})
            event = await asyncio.wait_for(anext(told), 30)
        assert getattr(event, "uri", "") == uri

    asyncio.run(go())
