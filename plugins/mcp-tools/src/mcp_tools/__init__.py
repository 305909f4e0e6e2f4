"""Tools of MCP servers, for agents; see `docs/how-to/mcp-tools.md`."""

from mcp_tools.feature import McpTools

__all__ = ["McpTools"]
