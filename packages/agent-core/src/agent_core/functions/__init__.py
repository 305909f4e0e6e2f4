"""Plain Python functions as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_core.functions.function_tool import FunctionTool, tool
    from agent_core.functions.values import File, ToolReturn

__all__ = ["File", "FunctionTool", "ToolReturn", "tool"]

# A name is loaded when it is first used: many programs have no function as a tool.
HOMES = {
    "agent_core.functions.function_tool": ("FunctionTool", "tool"),
    "agent_core.functions.values": ("File", "ToolReturn"),
}
__getattr__ = lazy_names(__name__, HOMES)
