from __future__ import annotations

from examples import run_example


def test_example__runs() -> None:
    assert "mcp-example is at version" in run_example("mcp_agent")
