from __future__ import annotations

import asyncio
from typing import Any

from guides import run_example, run_guide
from test_client import api, client


def test_guide__python_blocks__run_and_follow_a_resource() -> None:
    api("PUT", "/namespaces/notes", {"default": {}})
    made = run_guide("mcp")
    assert made["told"].structured_content["namespace"] == "notes"

    async def go() -> Any:
        printed: asyncio.Queue[Any] = asyncio.Queue()
        made["print"] = printed.put_nowait
        async with client("2026-07-28") as mcp:
            following = asyncio.create_task(made["follow"](mcp))
            try:
                while printed.empty():  # written before it listens: write again
                    place = {"namespace": "notes", "key": "global"}
                    written = await mcp.call_tool("put_state", {**place, "value": {"seen": 1}})
                    assert not written.is_error
                    done, _ = await asyncio.wait([following], timeout=0.5)
                    assert not done, following.exception()
            finally:
                following.cancel()
        return printed.get_nowait()

    read = asyncio.run(go())
    assert '"seen"' in read.contents[0].text


def test_example__runs() -> None:
    assert "mcp-example is at version" in run_example("mcp_agent")
