"""The graph of the LangGraph dev server: three channels and a list of messages; no model."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    a: dict[str, Any]
    b: dict[str, Any]
    c: dict[str, Any]
    held: dict[str, Any]
    messages: Annotated[list[Any], operator.add]


builder = StateGraph(State)
builder.add_node("step", lambda state: {})
builder.add_edge(START, "step")
builder.add_edge("step", END)
graph = builder.compile()
