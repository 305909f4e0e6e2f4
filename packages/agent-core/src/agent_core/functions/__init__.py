"""Plain Python functions as tools."""

from agent_core.functions.tool import FunctionTool, tool
from agent_core.functions.values import File, ToolReturn

__all__ = ["File", "FunctionTool", "ToolReturn", "tool"]
