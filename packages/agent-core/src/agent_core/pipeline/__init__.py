"""What happens to a session on its way to the model and back.

A request that calls no tool does without the modules of tool calls, so these are loaded when one is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_core.pipeline.ready_call import ToolHost, preview_call
    from agent_core.pipeline.tools import run_tool_calls, stream_tool_items

__all__ = ["ToolHost", "preview_call", "run_tool_calls", "stream_tool_items"]

HOMES = {
    "agent_core.pipeline.ready_call": ("ToolHost", "preview_call"),
    "agent_core.pipeline.tools": ("run_tool_calls", "stream_tool_items"),
}
__getattr__ = lazy_names(__name__, HOMES)
