"""For tests of agents and of what uses them: a clock that stands still until it is told otherwise."""

from agent_runtime.testing.clock import ManualClock

__all__ = ["ManualClock"]
