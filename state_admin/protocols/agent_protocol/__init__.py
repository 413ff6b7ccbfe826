"""The Agent Protocol (LangGraph's SDK speaks it): its store and its threads over our state."""
