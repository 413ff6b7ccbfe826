"""LangGraph on Commonhold: a checkpointer and a store. Needs `pip install commonhold[langgraph]`."""

from __future__ import annotations

from commonhold.langgraph.saver import CommonholdSaver
from commonhold.langgraph.store import CommonholdStore

__all__ = ["CommonholdSaver", "CommonholdStore"]
