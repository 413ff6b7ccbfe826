"""The Model Context Protocol at /mcp: tools and resources for agents
(docs/adr/0013-mcp-calls-the-api.md)."""
