"""The Agent Protocol (used by LangGraph's SDK): its store and its threads."""
