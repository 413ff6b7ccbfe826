"""LangGraph on Statehouse: a checkpointer and a store. Needs `pip install statehouse[langgraph]`."""

from __future__ import annotations

from statehouse.langgraph.saver import StatehouseSaver
from statehouse.langgraph.store import StatehouseStore

__all__ = ["StatehouseSaver", "StatehouseStore"]
