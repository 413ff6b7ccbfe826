"""The catalogue of tools against the API's own document: one source, two surfaces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from project.env import BASE_DIR
from state_admin.mcp.tools import TOOLS, Tool

DOCUMENT = json.loads((BASE_DIR / "docs/openapi.json").read_text())


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def operation(tool: Tool) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"]["/api/v1" + tool.path][tool.method.lower()]
    return found


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool__each__is_a_call_that_the_api_documents(tool: Tool) -> None:
    parameters = {parameter["name"] for parameter in operation(tool)["parameters"]}
    assert {*tool.in_path, *tool.query} <= parameters
    if tool.body:
        content = operation(tool)["requestBody"]["content"]["application/json"]
        body = resolve(content["schema"])
        assert set(tool.body) <= set(body["properties"])
        assert set(body.get("required", ())) <= set(tool.required)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool__each__is_described_for_a_model(tool: Tool) -> None:
    assert tool.title
    assert len(tool.description) > 20
    assert tool.reads == (tool.method == "GET" or tool.name == "search_state")
    assert not (tool.reads and tool.destroys)
    assert tool.validator.faults(dict.fromkeys(("nothing",), 1))
