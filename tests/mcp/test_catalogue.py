"""The catalogue of tools: each is an operation of the contract, described for a model."""

from __future__ import annotations

import json

import pytest

from state_admin.mcp.tools import TOOLS, Tool


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool__each__accepts_what_the_operation_requires(tool: Tool) -> None:
    assert set(tool.takes["required"]) <= set(tool.takes["properties"])
    assert all("description" in json.dumps(each) for each in tool.takes["properties"].values())


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool__each__is_described_for_a_model(tool: Tool) -> None:
    assert len(tool.description) > 20
    assert tool.reads == (tool.operation.method == "GET" or tool.name == "search_state")
    assert not (tool.reads and tool.destroys)
    assert tool.validator.faults(dict.fromkeys(("nothing",), 1))
