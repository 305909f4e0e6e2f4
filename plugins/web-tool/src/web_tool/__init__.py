"""Web pages for agents."""

from web_tool.tool import WebTool

__all__ = ["WebTool"]
