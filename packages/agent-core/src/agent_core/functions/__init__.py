"""Plain Python functions as tools."""

from agent_core.functions.tool import FunctionTool, tool

__all__ = ["FunctionTool", "tool"]
