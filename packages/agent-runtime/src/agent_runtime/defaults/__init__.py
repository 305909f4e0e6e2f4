"""The plugins that every agent has: nothing can switch them off."""

from agent_runtime.defaults.loop_actions import LoopActionHandlersPlugin
from agent_runtime.defaults.max_rounds import MaxRoundsPlugin

__all__ = ["LoopActionHandlersPlugin", "MaxRoundsPlugin"]
