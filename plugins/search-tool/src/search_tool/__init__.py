"""Web search for agents; see `docs/how-to/search-tool.md`."""

from search_tool.feature import SearchTool

__all__ = ["SearchTool"]
